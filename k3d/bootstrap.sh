#!/usr/bin/env bash
# Creates the demo cluster ops-demo with k3d, or completes what is there. Asks nothing; run it as often as you like.
#
#   k3d/bootstrap.sh
#
# Environment, all optional:
#   OPS_DEMO_BIN    where k3d and kubectl go when they are missing   (~/.local/bin)
#   OPS_DEMO_STATE  where the kubeconfigs of the demo cluster go     (~/.local/state/pytest-opsagent)
#
# Your own kubeconfig and its current context stay as they are.
set -euo pipefail

readonly CLUSTER=ops-demo
readonly NAMESPACE=demo
readonly READER=ops-reader
readonly K3S_IMAGE=rancher/k3s:v1.35.5-k3s1@sha256:2074403abe1bded11ef3dde09d457e13be8e0b64c218b1c4f8269b4565cfbc65

readonly K3D_VERSION=v5.9.0
readonly KUBECTL_VERSION=v1.35.9

# A new version needs new checksums: they stand beside each release, as checksums.txt and as kubectl.sha256.
checksum() {
  case $1-$2 in
    k3d-amd64) echo 06d8f25bc3a971c4eb29e0ff08429b180402db0f4dec838c9eac427e296800a0 ;;
    k3d-arm64) echo 03cde5cf23e6e8e67de5a039ecf26e5b85aca82fba3e5d13dadf904cd218a250 ;;
    kubectl-amd64) echo 3cfeaf80be482b435b0aa214aff6e0b2c312ee23c0ff20810c75517b6004c6eb ;;
    kubectl-arm64) echo 39c98bca82875d9a9ddfb6f3c5ab17c3f78ea0801230683e538a67d5c053308d ;;
    *) return 1 ;;
  esac
}

caller_path=$PATH
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=${OPS_DEMO_BIN:-$HOME/.local/bin}
state=${OPS_DEMO_STATE:-$HOME/.local/state/pytest-opsagent}
admin=$state/$CLUSTER-admin.kubeconfig
reader=$state/$CLUSTER.kubeconfig

say() { printf '%s\n' "k3d/bootstrap.sh: $*" >&2; }
stop() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
admin_kubectl() { kubectl --kubeconfig "$admin" "$@"; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; elif have sudo; then sudo -n "$@"; else return 1; fi
}

# --- the three programs ------------------------------------------------------------------------------------------

machine() {
  case $(uname -m) in
    x86_64 | amd64) echo amd64 ;;
    aarch64 | arm64) echo arm64 ;;
    *) stop "no k3d is known for the machine $(uname -m); install k3d and kubectl yourself and run this again" ;;
  esac
}

# fetch NAME ARCH URL: puts a checked program into $bin
fetch() {
  local name=$1 url=$3 sha256 part
  sha256=$(checksum "$name" "$2")
  mkdir -p "$bin"
  part=$(mktemp "$bin/.$name.XXXXXX")
  say "installing $name from $url"
  if ! curl --fail --silent --show-error --location --proto '=https' --retry 3 --output "$part" "$url"; then
    rm -f "$part"
    stop "$name could not be downloaded"
  fi
  if ! printf '%s  %s\n' "$sha256" "$part" | sha256sum --check --status; then
    rm -f "$part"
    stop "$name from $url has not the checksum $sha256: it was thrown away"
  fi
  chmod 0755 "$part"
  mv "$part" "$bin/$name"
  hash -r
}

install_docker() {
  say "installing docker"
  if have apt-get; then
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update || return 1
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install -y docker.io
  elif have dnf; then
    as_root dnf -q install -y moby-engine
  elif have zypper; then
    as_root zypper --non-interactive install docker
  elif have pacman; then
    as_root pacman -S --noconfirm --needed docker
  else
    return 1
  fi
}

need_docker() {
  if ! have docker; then
    install_docker || stop "docker is missing and could not be installed without a password: install it and run this again"
  fi
  if docker info >/dev/null 2>&1; then return; fi
  as_root systemctl start docker >/dev/null 2>&1 || as_root service docker start >/dev/null 2>&1 || true
  local left
  for left in 4 3 2 1 0; do
    if docker info >/dev/null 2>&1; then return; fi
    if [ "$left" != 0 ]; then sleep 1; fi
  done
  stop "docker does not answer to $(id -un): start it, or join the group docker and log in again, then run this again"
}

need_programs() {
  PATH=$bin:$PATH
  if [ "$(uname -s)" = Darwin ]; then
    local missing=() name
    for name in docker k3d kubectl; do have "$name" || missing+=("$name"); done
    if [ ${#missing[@]} != 0 ]; then
      stop "missing: ${missing[*]}. Run: brew install k3d kubectl && brew install --cask docker, start Docker, then run this again"
    fi
    docker info >/dev/null 2>&1 || stop "docker does not answer: start Docker, then run this again"
    return
  fi
  if ! have k3d || ! have kubectl; then
    have curl || stop "curl is missing: install it and run this again"
  fi
  local arch
  if ! have kubectl; then
    arch=$(machine)
    fetch kubectl "$arch" "https://dl.k8s.io/release/$KUBECTL_VERSION/bin/linux/$arch/kubectl"
  fi
  if ! have k3d; then
    arch=$(machine)
    fetch k3d "$arch" "https://github.com/k3d-io/k3d/releases/download/$K3D_VERSION/k3d-linux-$arch"
  fi
  need_docker
}

# --- the cluster -------------------------------------------------------------------------------------------------

need_cluster() {
  if k3d cluster list --no-headers 2>/dev/null | awk '{print $1}' | grep -qx "$CLUSTER"; then
    say "cluster $CLUSTER is there"
    k3d cluster start "$CLUSTER" --wait --timeout 180s
  else
    say "creating cluster $CLUSTER"
    k3d cluster create "$CLUSTER" --image "$K3S_IMAGE" --servers 1 --agents 0 --no-lb \
      --k3s-arg "--disable=traefik@server:0" --k3s-arg "--disable=metrics-server@server:0" \
      --kubeconfig-update-default=false --kubeconfig-switch-context=false --wait --timeout 180s
  fi
  (umask 077 && mkdir -p "$state" && k3d kubeconfig get "$CLUSTER" >"$admin.part" && mv "$admin.part" "$admin")
}

need_workloads() {
  admin_kubectl apply -k "$here/manifests"
  admin_kubectl -n "$NAMESPACE" rollout status deployment/web --timeout=180s
  admin_kubectl -n "$NAMESPACE" rollout status deployment/redis --timeout=180s
  say "waiting until payments-api crash-loops, as it should"
  admin_kubectl -n "$NAMESPACE" wait pod -l app=payments-api --timeout=180s \
    --for=jsonpath='{.status.containerStatuses[0].state.waiting.reason}'=CrashLoopBackOff
}

# The tools get an account that can read everything but Secrets, not the admin's.
write_reader_kubeconfig() {
  local server ca token
  server=$(admin_kubectl config view --raw --minify -o jsonpath='{.clusters[0].cluster.server}')
  ca=$(admin_kubectl config view --raw --minify -o jsonpath='{.clusters[0].cluster.certificate-authority-data}')
  token=$(admin_kubectl -n "$NAMESPACE" create token "$READER" --duration=24h)
  (umask 077 && cat >"$reader.part" && mv "$reader.part" "$reader") <<KUBECONFIG
apiVersion: v1
kind: Config
current-context: k3d-$CLUSTER
clusters:
  - name: k3d-$CLUSTER
    cluster:
      server: $server
      certificate-authority-data: $ca
contexts:
  - name: k3d-$CLUSTER
    context: {cluster: k3d-$CLUSTER, user: $READER, namespace: $NAMESPACE}
users:
  - name: $READER
    user: {token: $token}
KUBECONFIG
}

need_programs
need_cluster
need_workloads
write_reader_kubeconfig

say "ready. The tools' account reads everything but Secrets; its token is good for 24 hours, then run this again."
if [ -e "$bin/kubectl" ]; then
  case :$caller_path: in *:"$bin":*) ;; *) say "add $bin to your PATH: kubectl is there" ;; esac
fi
printf '%s\n' "kubeconfig: $reader" "run:        pytest --ops-mode=mock scenarios --ops-kubeconfig=$reader"
