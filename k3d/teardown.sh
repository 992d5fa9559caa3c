#!/usr/bin/env bash
# Deletes the demo cluster ops-demo and the kubeconfigs that bootstrap.sh wrote. Programs that it installed stay.
set -euo pipefail

readonly CLUSTER=ops-demo
state=${OPS_DEMO_STATE:-$HOME/.local/state/pytest-opsagent}
PATH=${OPS_DEMO_BIN:-$HOME/.local/bin}:$PATH

say() { printf '%s\n' "k3d/teardown.sh: $*" >&2; }

if ! command -v k3d >/dev/null 2>&1; then
  say "k3d is not installed, so there is no cluster $CLUSTER"
elif k3d cluster list --no-headers 2>/dev/null | awk '{print $1}' | grep -qx "$CLUSTER"; then
  k3d cluster delete "$CLUSTER"
  say "cluster $CLUSTER is gone"
else
  say "there is no cluster $CLUSTER"
fi
rm -f "$state/$CLUSTER.kubeconfig" "$state/$CLUSTER-admin.kubeconfig"
