#!/usr/bin/env bash
# The node. It is process 1 of its own process and mount namespaces: whoever kills it ends containerd, the kubelet and
# every pod, and their mounts go with it. cluster.py starts it; $run, $debian, $home and $node_name come from there.
set -euo pipefail
: "${run:?}" "${debian:?}" "${home:?}" "${node_name:?}" "${snapshotter:?}"

for folder in log lib; do
  mkdir -p "$run/node/var/$folder"
  mount --bind "$run/node/var/$folder" "/var/$folder"
done
mkdir -p "$run/node/opt"
mount --bind "$run/node/opt" /opt
mount -t tmpfs tmpfs /run
mount --make-rshared /

export PATH=$debian/usr/bin:$debian/usr/sbin:$PATH
socket=$run/node/containerd.sock
containerd --config "$run/node/containerd.toml" >"$run/log/containerd" 2>&1 &
for _ in $(seq 100); do
  if ctr --address "$socket" version >/dev/null 2>&1; then break; fi
  sleep 0.1
done
for image in "$home"/images/*.tar; do
  ctr --address "$socket" --namespace k8s.io image import --snapshotter "$snapshotter" "$image" >/dev/null
done
"$home/bin/kubelet" --config="$run/node/kubelet.yaml" --kubeconfig="$run/node.kubeconfig" \
  --hostname-override="$node_name" --root-dir="$run/node/kubelet" --cert-dir="$run/node/kubelet/pki" \
  --container-runtime=remote --container-runtime-endpoint="unix://$socket" --runtime-cgroups=/ --kubelet-cgroups=/ \
  --volume-plugin-dir="$run/node/kubelet/plugins" >"$run/log/kubelet" 2>&1 &
wait -n
