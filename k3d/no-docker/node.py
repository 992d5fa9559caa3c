"""The node: containerd, the kubelet and real pods, in process and mount namespaces of their own."""

import os
import string
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from control_plane import api
from credentials import NODE_NAME
from places import NODE, ClusterError, Places
from processes import start, wait_for

CONFIG = Path(__file__).resolve().parent / "config"
BRIDGE = "opsk8s0"


def start_node(places: Places, ports: Mapping[str, int]) -> None:
    """Start containerd and the kubelet in namespaces of their own, and wait until the node is ready."""
    if os.geteuid() != 0:
        raise ClusterError("pods need root; run this as root, or with --control-plane for an API server without pods")
    if Path(f"/sys/class/net/{BRIDGE}").exists():
        raise ClusterError(
            f"the network bridge {BRIDGE} is there: another node runs on this machine; stop that one first"
        )
    folder = places.run / "node"
    (folder / "cni").mkdir(parents=True, exist_ok=True)
    values = {
        "run": str(places.run),
        "debian": str(places.debian),
        "home": str(places.home),
        "bridge": BRIDGE,
        "node_name": NODE_NAME,
        "snapshotter": os.environ.get("OPS_K8S_SNAPSHOTTER", "overlayfs"),
        "kubelet_port": str(ports["kubelet"]),
    }
    for source, target in (
        ("containerd.toml", folder / "containerd.toml"),
        ("kubelet.yaml", folder / "kubelet.yaml"),
        ("bridge.conflist", folder / "cni" / "10-bridge.conflist"),
    ):
        text = (CONFIG / source).read_text(encoding="utf-8")
        target.write_text(string.Template(text).substitute(values), encoding="utf-8")
    namespaces = [
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child=SIGKILL",
        "--mount-proc",
        "--propagation=private",
    ]
    start(places, NODE, [*namespaces, "bash", CONFIG / "node.sh"], {**os.environ, **values})
    wait_for("the node", lambda: b'"KubeletReady"' in api(places, f"/api/v1/nodes/{NODE_NAME}"), places, NODE)


def remove_what_pods_left() -> None:
    """Remove the network bridge and the control groups, which outlive the namespaces."""
    subprocess.run(["/usr/bin/env", "ip", "link", "delete", BRIDGE], stderr=subprocess.DEVNULL, check=False)
    for group in (*Path("/sys/fs/cgroup").glob("*/kubepods"), Path("/sys/fs/cgroup/kubepods")):
        for folder, _, _ in os.walk(group, topdown=False):
            with suppress(OSError):
                Path(folder).rmdir()
