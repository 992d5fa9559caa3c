"""What must not come out of a real cluster."""

import json
from typing import Any

import pytest
from calls import ask
from realcluster import RealCluster
from workloads import SLEEP, busybox, config_map, pod, secret

from mcp_ops.ops.context import OpsContext
from mcp_ops.ops.tools.kubectl import KUBECTL_DESCRIBE, KUBECTL_GET, KUBECTL_LOGS

CANARY = "k8s-canary-Zq81-77c1"
SPELLINGS = (
    "secret",
    "secrets",
    "Secret",
    "SECRETS",
    "secrets.v1.",
    "secret/db",
    "pods,secrets",
    "secrets.",
    "ſecrets",
)


@pytest.fixture
def secretive(cluster: RealCluster, namespace: str) -> str:
    """A namespace whose every object holds the canary where credentials are found in real life."""
    environment = [{"name": "DB_PASSWORD", "value": CANARY}, {"name": "LOG_LEVEL", "value": "debug"}]
    talking = busybox(f"echo connecting with password={CANARY}; {SLEEP}", env=environment, args=[f"--token={CANARY}"])
    cluster.apply(
        namespace,
        secret("db", CANARY),
        config_map(
            "app", {"password": CANARY, "app.properties": f"level=info\ndb.password={CANARY}\n", "PORT": "8080"}
        ),
        pod("talking", talking),
    )
    return namespace


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("tool", [KUBECTL_GET, KUBECTL_DESCRIBE], ids=["get", "describe"])
async def test_no_spelling_reads_a_secret(
    tool: Any, spelling: str, context: OpsContext, cluster: RealCluster, secretive: str
) -> None:
    before = len(cluster.audited())
    reply = await ask(tool, context, {"resource": spelling, "namespace": secretive})
    assert reply.reading.state.value == "denied"
    assert CANARY not in reply.text
    assert [entry["requestURI"] for entry in cluster.audited()[before:]] == []


@pytest.mark.parametrize("output", ["default", "wide", "name", "json", "yaml"])
@pytest.mark.parametrize("kind", ["configmaps", "pods"])
async def test_values_that_look_like_credentials_are_redacted_in_every_output(
    kind: str, output: str, context: OpsContext, secretive: str
) -> None:
    reply = await ask(KUBECTL_GET, context, {"resource": kind, "namespace": secretive, "output": output})
    assert reply.verdict == "executed"
    assert CANARY not in reply.text + json.dumps(reply.structured)


async def test_a_harmless_value_beside_a_redacted_one_is_shown(context: OpsContext, secretive: str) -> None:
    asked = {"resource": "configmap", "name": "app", "namespace": secretive, "output": "yaml"}
    reply = await ask(KUBECTL_GET, context, asked)
    assert "8080" in reply.text
    assert "level=info" in reply.text


@pytest.mark.parametrize(("kind", "name"), [("configmap", "app"), ("pod", "talking")])
async def test_a_description_is_redacted(kind: str, name: str, context: OpsContext, secretive: str) -> None:
    reply = await ask(KUBECTL_DESCRIBE, context, {"resource": kind, "name": name, "namespace": secretive})
    assert reply.verdict == "executed"
    assert CANARY not in reply.text


async def test_a_log_is_redacted(context: OpsContext, pods: RealCluster, secretive: str) -> None:
    asked = ("-n", secretive, "logs", "talking")
    pods.until("the log", lambda: pods.attempt(*asked).stdout, lambda text: CANARY in text)
    reply = await ask(KUBECTL_LOGS, context, {"pod": "talking", "namespace": secretive})
    assert "connecting with" in reply.text
    assert CANARY not in reply.text
