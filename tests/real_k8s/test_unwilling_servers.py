"""An API server that refuses, fails, cannot be trusted or does not answer: inside the deadline, structured, and nothing
of kubectl stays. Every answer here comes from a real API server.
"""

import asyncio
import base64
import json
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from apidouble import CERTIFICATE, unused_url
from apiservers import (
    Line,
    expired_certificate,
    further_server,
    line_to,
    signed_token,
    without_authority,
)
from calls import Reply, ask
from leftovers import processes_with
from realcluster import RealCluster

from mcp_ops.ops.context import ClusterAccess, OpsContext
from mcp_ops.ops.tools.cluster import SECONDS, find_kubectl
from mcp_ops.ops.tools.kubectl import KUBECTL_DESCRIBE, KUBECTL_GET, KUBECTL_LOGS
from mcp_ops.ops.workspace import Workspace

pytestmark = pytest.mark.covers("A11")

QUESTIONS = (
    (KUBECTL_GET, {"resource": "configmaps"}),
    (KUBECTL_GET, {"resource": "configmaps", "output": "yaml"}),
    (KUBECTL_DESCRIBE, {"resource": "configmaps"}),
    (KUBECTL_LOGS, {"pod": "web"}),
)
DEADLINE = 10.0
"""Within so many seconds each reply is due, on a machine that has nothing else to do."""
HANGS = 60.0
"""After so many seconds without a reply a tool hangs, whatever else the machine does."""

Asked = Callable[[Path], Any]


@pytest.fixture
def asked(cluster: RealCluster, namespace: str, tmp_path: Path) -> Asked:
    """Uses every tool with a kubeconfig, all at once; whatever comes back names no credential and leaves nothing."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()

    async def ask_all(kubeconfig: Path, questions: Any = QUESTIONS) -> list[Reply]:
        access = ClusterAccess(kubeconfig, None, find_kubectl(workspace, None))
        context = OpsContext(Workspace(workspace), access, "", "")
        asking = [ask(tool, context, {**slots, "namespace": namespace}) for tool, slots in questions]
        async with asyncio.timeout(HANGS):
            replies = await asyncio.gather(*asking)
        assert processes_with(str(kubeconfig)) == {}
        for reply in replies:
            for hidden in (cluster.token(), str(tmp_path), str(cluster.run), "Traceback", "memcache.go"):
                assert hidden not in reply.text + json.dumps(reply.structured)
        return replies

    return ask_all


def verdicts(replies: list[Reply]) -> set[tuple[str, str]]:
    return {(reply.structured["state"], reply.verdict) for reply in replies}


async def test_a_willing_server_answers_the_same_questions(cluster: RealCluster, asked: Asked, tmp_path: Path) -> None:
    replies = await asked(cluster.altered(tmp_path, port=cluster.ports["api"]), QUESTIONS[:3])
    assert verdicts(replies) == {("executed", "executed")}


@pytest.mark.parametrize("spoiled", ["another", "expired", "of another issuer", "unsigned"])
async def test_a_token_that_is_not_good_is_unauthorized(
    spoiled: str, cluster: RealCluster, asked: Asked, tmp_path: Path
) -> None:
    token, key = cluster.token(), cluster.run / "pki" / "accounts.key"
    bad = {
        "another": lambda: "0123456789abcdef0123456789abcdef",
        "expired": lambda: signed_token({"iat": 1_000_000_000, "nbf": 1_000_000_000, "exp": 1_000_000_600}, key, token),
        "of another issuer": lambda: signed_token({"iss": "https://elsewhere.example"}, key, token),
        "unsigned": lambda: token.rpartition(".")[0] + ".AAAA",
    }[spoiled]()
    replies = await asked(cluster.altered(tmp_path, token=bad))
    assert verdicts(replies) == {("failed", "cluster.unauthorized")}
    assert not any(bad in reply.text for reply in replies)


async def test_a_token_that_was_signed_anew_without_a_change_is_good(
    cluster: RealCluster, asked: Asked, tmp_path: Path
) -> None:
    """Otherwise the tests above would show no more than a signature that is wrong."""
    same = signed_token({}, cluster.run / "pki" / "accounts.key", cluster.token())
    assert verdicts(await asked(cluster.altered(tmp_path, token=same), QUESTIONS[:3])) == {("executed", "executed")}


async def test_an_account_without_permissions_is_forbidden_and_the_answer_says_what(
    cluster: RealCluster, namespace: str, asked: Asked, tmp_path: Path
) -> None:
    cluster.kubectl("-n", namespace, "create", "serviceaccount", "stranger")
    token = cluster.kubectl("-n", namespace, "create", "token", "stranger").strip()
    replies = await asked(cluster.altered(tmp_path, token=token))
    assert verdicts(replies) == {("failed", "cluster.forbidden")}
    assert all("cannot list resource" in reply.text or "cannot get resource" in reply.text for reply in replies)
    assert not any(token in reply.text for reply in replies)


async def test_the_tools_account_is_forbidden_what_its_role_leaves_out(
    cluster: RealCluster, context: OpsContext, namespace: str
) -> None:
    """With the guard's rule off the API server is the wall."""
    reply = await ask(
        KUBECTL_GET, context, {"resource": "secrets", "namespace": namespace}, off=["kubectl.secret", "kubectl.kind"]
    )
    assert (reply.structured["state"], reply.verdict) == ("failed", "cluster.forbidden")
    assert 'cannot list resource "secrets"' in reply.text


@pytest.mark.parametrize("broken", ["authority", "no authority", "name"])
async def test_a_certificate_that_is_not_trusted_is_a_tls_failure(
    broken: str, cluster: RealCluster, asked: Asked, tmp_path: Path
) -> None:
    kubeconfig = {
        "authority": lambda: cluster.altered(tmp_path, certificate_authority=str(CERTIFICATE)),
        "no authority": lambda: cluster.altered(tmp_path),
        "name": lambda: cluster.altered(tmp_path, tls_server_name="elsewhere.example"),
    }[broken]()
    if broken == "no authority":
        without_authority(kubeconfig)
    before = len(cluster.audited())
    assert verdicts(await asked(kubeconfig)) == {("failed", "cluster.tls")}
    assert cluster.audited()[before:] == [], "the token was sent to a server that is not trusted"


async def test_a_certificate_that_ended_yesterday_is_a_tls_failure(
    cluster: RealCluster, asked: Asked, tmp_path: Path
) -> None:
    with further_server(cluster, tmp_path, certificate=expired_certificate(cluster, tmp_path)) as server:
        replies = await asked(cluster.altered(tmp_path, port=server.port))
    assert verdicts(replies) == {("failed", "cluster.tls")}
    assert all("certificate has expired" in reply.text for reply in replies)


@pytest.fixture
def undecodable(cluster: RealCluster, namespace: str) -> Iterator[str]:
    """The name of a ConfigMap of which the store holds no more than garbage: the API server fails at it."""
    place = base64.b64encode(f"/registry/configmaps/{namespace}/garbage".encode()).decode()
    store(cluster, "put", {"key": place, "value": base64.b64encode(b"garbage").decode()})
    yield "garbage"
    store(cluster, "deleterange", {"key": place})


def store(cluster: RealCluster, operation: str, body: dict[str, str]) -> None:
    """Speak to the cluster's etcd, behind the API server's back."""
    url = f"http://127.0.0.1:{cluster.ports['etcd']}/v3/kv/{operation}"
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode())) as answer:
        assert answer.status == 200


async def test_a_server_that_fails_itself_says_so_and_is_not_taken_for_an_answer(
    undecodable: str, cluster: RealCluster, namespace: str, asked: Asked, tmp_path: Path
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/{undecodable}"
    assert '"code": 500' in cluster.attempt("get", "-v=8", f"--raw={path}").stderr
    one = {"resource": "configmaps", "name": undecodable}
    questions = (*QUESTIONS[:3], (KUBECTL_GET, one), (KUBECTL_DESCRIBE, one))
    replies = await asked(cluster.altered(tmp_path), questions)
    assert verdicts(replies) == {("failed", "cluster.error")}


async def test_a_port_where_nothing_listens_is_unavailable(cluster: RealCluster, asked: Asked, tmp_path: Path) -> None:
    port = int(unused_url().rpartition(":")[2])
    replies = await asked(cluster.altered(tmp_path, port=port))
    assert verdicts(replies) == {("unavailable", "cluster.unavailable")}


async def test_a_server_that_was_stopped_is_unavailable(cluster: RealCluster, asked: Asked, tmp_path: Path) -> None:
    with further_server(cluster, tmp_path) as server:
        kubeconfig = cluster.altered(tmp_path, port=server.port)
        before = await asked(kubeconfig, QUESTIONS[:3])
        server.kill()
        after = await asked(kubeconfig)
    assert verdicts(before) == {("executed", "executed")}
    assert verdicts(after) == {("unavailable", "cluster.unavailable")}


async def test_a_server_that_stands_still_is_given_up_on_within_the_deadline(
    cluster: RealCluster, asked: Asked, tmp_path: Path
) -> None:
    """kubectl's own limits are no bound: only the clock around it and the end of its process group are."""
    assert SECONDS < DEADLINE
    with further_server(cluster, tmp_path) as server:
        server.freeze()
        replies = await asked(cluster.altered(tmp_path, port=server.port))
    assert verdicts(replies) == {("unavailable", "cluster.unavailable")}
    assert any("the API server did not answer within 9.5 s" in reply.text for reply in replies)


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        (Line(pause=0.02), ("executed", "executed")),
        (Line(pause=0.05, piece=16), ("unavailable", "cluster.unavailable")),
        (Line(ends_after=0), ("unavailable", "cluster.unavailable")),
        (Line(ends_after=3000), ("unavailable", "cluster.unavailable")),
    ],
    ids=["slow", "too-slow", "hangs-up-at-once", "breaks-off"],
)
async def test_a_bad_line_delays_an_answer_or_makes_the_server_unavailable(
    line: Line, verdict: tuple[str, str], cluster: RealCluster, asked: Asked, tmp_path: Path
) -> None:
    async with line_to(cluster.ports["api"], line) as port:
        replies = await asked(cluster.altered(tmp_path, port=port), QUESTIONS[:3])
    assert verdicts(replies) == {verdict}


async def test_what_a_credential_program_started_goes_with_the_process_group(
    cluster: RealCluster, asked: Asked, tmp_path: Path
) -> None:
    plugin, child = tmp_path / "credentials", tmp_path / "started"
    plugin.write_text(f"#!/bin/sh\nsh -c 'echo > {child}; sleep 600' {tmp_path} &\nsleep 600\n", encoding="utf-8")
    plugin.chmod(0o755)
    api = "client.authentication.k8s.io/v1"
    named = {"apiVersion": api, "command": str(plugin), "interactiveMode": "Never"}
    replies = await asked(cluster.altered(tmp_path, exec=named))
    assert {reply.verdict for reply in replies} == {"cluster.unavailable"}
    assert child.exists()
    assert processes_with(str(tmp_path)) == {}
