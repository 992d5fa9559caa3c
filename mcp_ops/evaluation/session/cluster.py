"""The one cluster that a run may read: only when it was named, and known by the uid of its kube-system namespace."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from mcp_ops.evaluation.config import RunConfig
from mcp_ops.gate import Result
from mcp_ops.ops.context import ClusterAccess, OpsContext
from mcp_ops.ops.tools.child import Ended
from mcp_ops.ops.tools.cluster import find_kubectl, run_kubectl
from mcp_ops.ops.workspace import Workspace
from mcp_ops.text import one_line


@dataclass(frozen=True)
class Cluster:
    """What is known of the named cluster."""

    kubeconfig: Path
    context: str | None
    name: str
    """Its context's name."""
    uid: str | None
    """Uid of its kube-system namespace; None when it did not tell."""
    reason: str = ""
    """Why it did not tell."""

    def __str__(self) -> str:
        return f"{self.name} ({self.uid})" if self.uid else f"{self.name} (not reached: {self.reason})"


async def find_cluster(config: RunConfig, scratch: Path) -> Cluster | None:
    """Ask the named cluster who it is, read-only; return None when none was named.

    Args:
        config: Names the cluster.
        scratch: An existing folder of ours; no kubectl inside it is used.
    """
    if not config.cluster_named:
        return None
    kubeconfig = kubeconfig_of(config)
    context = reading(kubeconfig, config.kube_context, scratch)
    name = config.kube_context or await _current_context(context) or kubeconfig.name
    namespace = await run_kubectl(context, ["get", "--output=json", "--", "namespaces", "kube-system"])
    uid, reason = _uid(namespace)
    return Cluster(kubeconfig, config.kube_context, one_line(name, 80), uid, reason)


def reading(kubeconfig: Path, kube_context: str | None, folder: Path) -> OpsContext:
    """Return what kubectl is run with; no kubectl inside `folder` is used."""
    inside = Workspace(folder)
    return OpsContext(inside, ClusterAccess(kubeconfig, kube_context, find_kubectl(inside.root)))


def kubeconfig_of(config: RunConfig) -> Path:
    """Return the kubeconfig that was named; for a context that was named alone, the one kubectl would look it up in."""
    if config.kubeconfig is not None:
        return config.kubeconfig.expanduser().absolute()
    named = [Path(path) for path in os.environ.get("KUBECONFIG", "").split(os.pathsep) if path]
    return next((path.absolute() for path in named if path.is_file()), Path.home() / ".kube" / "config")


async def _current_context(context: OpsContext) -> str:
    answer = await run_kubectl(context, ["config", "current-context"])
    return "" if isinstance(answer, Result) else answer.stdout.decode("utf-8", "replace").strip()


def _uid(answer: Ended | Result) -> tuple[str | None, str]:
    if isinstance(answer, Result):
        return None, one_line(answer.text, 200)
    try:
        uid = json.loads(answer.stdout)["metadata"]["uid"]
    except (ValueError, KeyError, TypeError):
        return None, "its kube-system namespace cannot be read"
    return one_line(str(uid), 60), ""
