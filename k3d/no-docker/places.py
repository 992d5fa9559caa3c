"""Where a cluster and its build are."""

import json
import shutil
import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
NODE = "node"


class ClusterError(Exception):
    """What cannot be done, in one sentence."""


@dataclass(frozen=True)
class Places:
    """Where everything is."""

    home: Path
    """The build."""
    run: Path
    """What a running cluster writes. It goes with the cluster."""

    @property
    def debian(self) -> Path:
        """Unpacked Debian packages."""
        return self.home / "debian"

    @property
    def audit_log(self) -> Path:
        """One JSON object for each request that the API server answered."""
        return self.run / "log" / "audit"

    def kubeconfig(self, account: str) -> Path:
        """Kubeconfig of an account: `admin`, and `reader` for the tools."""
        return self.run / f"{account}.kubeconfig"

    def pid_file(self, name: str) -> Path:
        """File that holds a process' number and its start time."""
        return self.run / "pids" / name


def places_from(environ: Mapping[str, str]) -> Places:
    """Return the places that the environment names, or the usual ones."""
    user = Path.home()
    return Places(
        home=Path(environ.get("OPS_K8S_HOME") or user / ".cache" / "mcp-ops" / "k8s-1.20.2").absolute(),
        run=Path(environ.get("OPS_K8S_RUN") or user / ".local" / "state" / "pytest-opsagent" / "no-docker").absolute(),
    )


def missing_programs(places: Places) -> list[str]:
    """Return what has to be there and is not."""
    built = [places.home / "bin" / name for name in (*CONTROL_PLANE[1:], "kubelet")]
    built += [places.debian / "usr" / "bin" / "etcd", places.home / "images" / "pause.tar"]
    found = [str(path) for path in built if not path.exists()]
    return found + [name for name in ("openssl", "kubectl") if program(name) is None]


def ports_of(places: Places) -> dict[str, int]:
    """Return the cluster's ports: free ones, chosen when it is started first."""
    file = places.run / "ports.json"
    if file.exists():
        known: dict[str, int] = json.loads(file.read_text(encoding="utf-8"))
        return known
    names = ("api", "etcd", "etcd_peer", "kubelet", "controllers", "scheduler")
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in names]
        ports = {name: each.getsockname()[1] for name, each in zip(names, sockets, strict=True)}
    file.write_text(json.dumps(ports) + "\n", encoding="utf-8")
    return ports


def program(name: str) -> str | None:
    """Return a program: beside this Python, as in a virtual environment, or on PATH."""
    return shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
