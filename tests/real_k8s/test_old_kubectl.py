"""The three kubectl tools with the oldest kubectl in use: what they ask of it, it must know."""

from pathlib import Path

import pytest
from calls import ask
from realcluster import OLD_KUBECTL, RealCluster

from mcp_ops.ops.context import ClusterAccess, OpsContext
from mcp_ops.ops.tools.kubectl import KUBECTL_DESCRIBE, KUBECTL_GET, KUBECTL_LOGS
from mcp_ops.ops.workspace import Workspace


@pytest.fixture
def old(cluster: RealCluster, tmp_path: Path) -> OpsContext:
    """What the tools get, with an old kubectl."""
    assert "v1.20" in cluster.attempt("version", "--client", kubectl=OLD_KUBECTL).stdout
    return OpsContext(Workspace(tmp_path), ClusterAccess(cluster.reader, None, OLD_KUBECTL), "", "")


@pytest.mark.parametrize("output", ["default", "wide", "name", "json", "yaml"])
async def test_every_output_of_get_works(old: OpsContext, output: str) -> None:
    asked = {"resource": "deployments", "name": "redis", "namespace": "demo", "output": output}
    reply = await ask(KUBECTL_GET, old, asked)
    assert reply.verdict == "executed"
    assert reply.reading.exit_code == 0
    assert "redis" in reply.text


async def test_describe_works(old: OpsContext) -> None:
    asked = {"resource": "deploy", "name": "payments-api", "namespace": "demo"}
    reply = await ask(KUBECTL_DESCRIBE, old, asked)
    assert (reply.verdict, reply.reading.exit_code) == ("executed", 0)
    assert "Replicas:" in reply.text


async def test_logs_of_a_crashing_pod_come(old: OpsContext, pods: RealCluster) -> None:
    shown = pods.until(
        "the pause after a crash",
        lambda: pods.kubectl("--namespace=demo", "get", "pods", "--selector=app=payments-api", "--no-headers"),
        lambda text: "CrashLoopBackOff" in text,
    )
    reply = await ask(KUBECTL_LOGS, old, {"pod": shown.split()[0], "namespace": "demo"})
    assert "FATAL payments-api cannot start" in reply.text


async def test_what_is_not_there_and_what_is_forbidden_are_told_apart(old: OpsContext) -> None:
    for asked in ({"resource": "pod", "name": "nosuch"}, {"resource": "pods", "namespace": "nosuch-namespace"}):
        assert (await ask(KUBECTL_GET, old, {"namespace": "demo", **asked})).verdict == "cluster.not_found"
    assert (await ask(KUBECTL_GET, old, {"resource": "secrets"})).verdict == "kubectl.secret"
