"""Starts and stops a real Kubernetes on loopback, without a container engine.

    python3 cluster.py up [--control-plane]   start it, with the demo's workloads; what runs already is left alone
    python3 cluster.py status                 say what runs
    python3 cluster.py down                   stop it and remove what it wrote

The control plane (etcd, API server, controllers, scheduler) runs as any user. The node (containerd, kubelet, pods)
needs root; without root, or with --control-plane, no pod runs. `build.sh` makes the programs.

Environment, all optional:
  OPS_K8S_HOME  where build.sh put them                            (~/.cache/mcp-ops/k8s-1.20.2)
  OPS_K8S_RUN   where a running cluster keeps everything of its    (~/.local/state/pytest-opsagent/no-docker)
"""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from control_plane import api, start_control_plane
from credentials import make_credentials, write_kubeconfig
from node import remove_what_pods_left, start_node
from places import CONTROL_PLANE, NODE, ClusterError, Places, missing_programs, places_from, ports_of, program
from processes import is_alive, run, stop, wait_for

HERE = Path(__file__).resolve().parent


def up(places: Places, *, node: bool) -> None:
    """Start what does not run yet, and bring the demo's workloads into it.

    Raises:
        ClusterError: A program is missing, or did not come up.
    """
    if missing := missing_programs(places):
        raise ClusterError(f"missing: {', '.join(missing)}; run `make k8s-real`, and have kubectl on your PATH")
    for folder in ("log", "pids", "pki"):
        (places.run / folder).mkdir(parents=True, exist_ok=True, mode=0o700)
    ports = ports_of(places)
    if not is_alive(places, "kube-apiserver"):
        make_credentials(places, ports["api"])
        start_control_plane(places, ports)
    if node and not is_alive(places, NODE):
        start_node(places, ports)
    apply_demo(places)


def apply_demo(places: Places) -> None:
    """Create namespace, workloads and the tools' account, and write the kubeconfig of that account."""
    kubectl(places, "apply", "--kustomize", str(HERE))
    wait_for(
        "the tools' account",
        lambda: bool(api(places, "/api/v1/namespaces/demo/serviceaccounts/ops-reader")),
        places,
        "kube-controller-manager",
    )
    token = kubectl(places, "--namespace=demo", "create", "token", "ops-reader", "--duration=24h").strip()
    write_kubeconfig(places, "reader", token, ports_of(places)["api"])


def kubectl(places: Places, *arguments: str) -> str:
    """Run kubectl as the admin and return what it says.

    Raises:
        ClusterError: It fails.
    """
    fixed = [program("kubectl") or "kubectl", f"--kubeconfig={places.kubeconfig('admin')}"]
    return run([*fixed, f"--cache-dir={places.run / 'kubectl-cache'}", *arguments])


def down(places: Places) -> None:
    """Stop everything that was started, and remove everything that it wrote."""
    # Killing the node's first process takes its namespaces down, with every pod.
    stop(places, NODE, at_once=True)
    for name in reversed(CONTROL_PLANE):
        stop(places, name)
    if os.geteuid() == 0:
        remove_what_pods_left()
    shutil.rmtree(places.run, ignore_errors=True)


def status(places: Places) -> str:
    """Return a line for each process, and where the kubeconfigs are."""
    lines = [f"{name}: {'runs' if is_alive(places, name) else 'does not run'}" for name in (*CONTROL_PLANE, NODE)]
    if is_alive(places, "kube-apiserver"):
        lines += [f"{account}: {places.kubeconfig(account)}" for account in ("admin", "reader")]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> str:
    """Do what the command line says and return what to print.

    Raises:
        ClusterError: It cannot be done.
    """
    parser = argparse.ArgumentParser(prog="cluster.py", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("up", "down", "status"))
    parser.add_argument(
        "--control-plane", action="store_true", help="no node: nothing runs in pods, and no root is needed"
    )
    asked = parser.parse_args(arguments)
    places = places_from(os.environ)
    if asked.what == "down":
        down(places)
        return "the cluster is gone"
    if asked.what == "up":
        up(places, node=not asked.control_plane and os.geteuid() == 0)
        reader = places.kubeconfig("reader")
        return (
            f"{status(places)}\n"
            "The account `reader` reads everything but Secrets; its token is good for 24 hours, then run this again.\n"
            f"run: pytest --ops-mode=mock scenarios --ops-kubeconfig={reader}"
        )
    return status(places)


if __name__ == "__main__":
    try:
        sys.stdout.write(main(sys.argv[1:]) + "\n")
    except ClusterError as error:
        sys.exit(f"no-docker/cluster.py: {error}")
