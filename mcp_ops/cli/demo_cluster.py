"""Which cluster `mcp-ops demo` reads when none is named: the demo's own, if it answers. Never the ambient one."""

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mcp_ops.cli import complain
from mcp_ops.evaluation.config import RunConfig
from mcp_ops.evaluation.session.cluster import Cluster, find_cluster, reading
from mcp_ops.gate import Result
from mcp_ops.ops.tools.cluster import run_kubectl
from mcp_ops.text import one_line


def demo_kubeconfigs(environ: Mapping[str, str]) -> list[Path]:
    """Return where `make cluster-up` and `make k8s-up` write the kubeconfig of the tools' account, in this order."""
    state = Path.home() / ".local" / "state" / "pytest-opsagent"
    k3d = Path(environ.get("OPS_DEMO_STATE") or state)
    no_docker = Path(environ.get("OPS_K8S_RUN") or state / "no-docker")
    return [k3d / "ops-demo.kubeconfig", no_docker / "reader.kubeconfig"]


async def with_cluster(config: RunConfig) -> RunConfig:
    """Return the configuration with the demo's cluster in it, if none was named and one answers; say which it is."""
    named = [config]
    if not config.cluster_named:
        there = [path for path in demo_kubeconfigs(os.environ) if path.is_file()]
        named = [replace(config, kubeconfig=path) for path in there]
    with tempfile.TemporaryDirectory(prefix="mcp-ops-demo-") as scratch:
        for candidate in named:
            cluster = await find_cluster(candidate, Path(scratch))
            if cluster is not None and cluster.uid is not None:
                version = await _version(cluster, Path(scratch))
                which = f"context {cluster.name}, Kubernetes {version}, uid {cluster.uid}"
                complain(f"what comes from a cluster is real: {which}")
                return candidate
            if cluster is not None:
                complain(f"no cluster answers to {cluster.kubeconfig}: {cluster.reason}")
    return config


async def _version(cluster: Cluster, scratch: Path) -> str:
    context = reading(cluster.kubeconfig, cluster.context, scratch)
    answer = await run_kubectl(context, ["version", "--output=json"])
    if not isinstance(answer, Result):
        try:
            return one_line(str(json.loads(answer.stdout)["serverVersion"]["gitVersion"]), 40)
        except (ValueError, KeyError, TypeError):
            pass
    return "of unknown version"
