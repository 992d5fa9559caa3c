from pathlib import Path
from typing import Any

import pytest
from calls import Reply, ask, context_of

from mcp_ops.ops.context import ClusterAccess, OpsContext
from mcp_ops.ops.guards.kubectl import KINDS
from mcp_ops.ops.tools import kubectl
from mcp_ops.ops.tools.child import Ended
from mcp_ops.ops.tools.kubectl import KUBECTL_DESCRIBE, KUBECTL_GET, KUBECTL_LOGS
from mcp_ops.ops.workspace import Workspace

Asked = list[list[str]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """The argument lists that would have reached kubectl."""
    seen: Asked = []

    async def instead(_: OpsContext, arguments: list[str]) -> Ended:
        seen.append(arguments)
        return Ended(b"{}", b"", 2, 0)

    monkeypatch.setattr(kubectl, "run_kubectl", instead)
    return seen


@pytest.fixture
def context(tmp_path: Path) -> OpsContext:
    return OpsContext(Workspace(tmp_path), ClusterAccess(tmp_path / "kubeconfig", "demo", Path("/nowhere/kubectl")))


async def get(context: OpsContext, resource: object = "pods", **others: Any) -> Reply:
    return await ask(KUBECTL_GET, context, {"resource": resource, **others})


@pytest.mark.covers("A12")
@pytest.mark.parametrize(
    "resource",
    [
        *("secret", "secrets", "Secret", "SECRETS", "sEcReTs", "secrets.v1.", "secret.v1", "secrets.", "Secret.v1."),
        *("secret/db", "secrets/db", "SECRET/db", "pods,secrets", "secrets,pods", "pods, secret", "secret db"),
        *("pods/web secrets", "secrets\n", " secrets", "ſecrets", "v1/secrets", "core:secrets"),
    ],
)
@pytest.mark.parametrize("tool", [KUBECTL_GET, KUBECTL_DESCRIBE], ids=lambda tool: tool.name)
async def test_secrets_are_denied_in_every_spelling_by_every_tool(
    context: OpsContext, asked: Asked, tool: Any, resource: str
) -> None:
    reply = await ask(tool, context, {"resource": resource})
    assert reply.verdict == "kubectl.secret"
    assert asked == []


@pytest.mark.covers("A5", "A10")
@pytest.mark.parametrize(
    "resource",
    [
        *("sealedsecrets.bitnami.com", "externalsecrets", "certificates", "vaultstaticsecrets", "helmreleases"),
        *("all", "pods,services", "pods services", "pods/web", "deploy/web", "pods.v1.", "deployments.v1.apps"),
        *("po.v1", "deploy.apps", "services.apps", "deployments.batch", "deployments.apps.", "deployments.apps/web"),
        *("--raw=/api", "-A", "--help", "pods --all", "pods;delete", "$(x)", "рods", "pods\n", " pods", "pods\0"),
        *("roles", "clusterroles", "customresourcedefinitions", "componentstatuses", "x" * 10_000, "٣"),
    ],
)
@pytest.mark.parametrize("tool", [KUBECTL_GET, KUBECTL_DESCRIBE], ids=lambda tool: tool.name)
async def test_what_is_no_listed_kind_is_denied_by_every_tool(
    context: OpsContext, asked: Asked, tool: Any, resource: str
) -> None:
    reply = await ask(tool, context, {"resource": resource})
    assert reply.verdict == "kubectl.kind"
    assert asked == []


@pytest.mark.parametrize(
    ("resource", "hint"),
    [
        ("all", "Name one kind a call, such as pods, then deployments, then services."),
        ("pods/web", "Put the kind into resource and the name into name."),
        ("pods,services", "Name one kind a call."),
    ],
)
async def test_the_hint_fits_the_mistake(context: OpsContext, resource: str, hint: str) -> None:
    assert (await get(context, resource)).reading.hint == hint


async def test_an_unlisted_kind_is_answered_with_the_list(context: OpsContext) -> None:
    reason = (await get(context, "helmreleases")).reading.reason
    assert all(kind in reason for kind in KINDS)


@pytest.mark.covers("A5")
@pytest.mark.parametrize(
    ("resource", "kind"),
    [
        *(("pods", "pods"), ("Pod", "pods"), ("po", "pods"), ("DEPLOY", "deployments"), ("svc", "services")),
        *(
            ("cm", "configmaps"),
            ("ev", "events"),
            ("no", "nodes"),
            ("ns", "namespaces"),
            ("hpa", "horizontalpodautoscalers"),
        ),
        *(("ingress", "ingresses"), ("networkpolicy", "networkpolicies"), ("pvc", "persistentvolumeclaims")),
        *(("deployments.apps", "deployments"), ("Deployment.apps", "deployments"), ("job.batch", "jobs")),
        ("ingress.networking.k8s.io", "ingresses"),
    ],
)
async def test_a_listed_kind_reaches_kubectl_as_its_plural(
    context: OpsContext, asked: Asked, resource: str, kind: str
) -> None:
    assert (await get(context, resource)).verdict == "executed"
    assert asked == [["get", "--", kind]]


BAD_NAMES = [
    *("", "-", "--raw=/api/v1/namespaces/demo/secrets/db", "-o=yaml", "--server=https://192.0.2.9", "web secrets"),
    *("..", ".", "web?x=1", "web/log", "web%2f", "web\n", "\nweb", "web\0", "Web", "WEB", "wéb", "web_1", "web."),
    *(".web", "web-", "-web", "a..b", "secret/db", "web,db", "web;x", "$(x)", "٣", "а", "x" * 254, "\ud800"),
]


@pytest.mark.covers("A5", "A10")
@pytest.mark.parametrize("name", BAD_NAMES)
async def test_what_is_no_object_name_is_denied_by_every_tool(context: OpsContext, asked: Asked, name: str) -> None:
    pods = {"resource": "pods", "name": name}
    for tool, arguments in ((KUBECTL_GET, pods), (KUBECTL_DESCRIBE, pods), (KUBECTL_LOGS, {"pod": name})):
        assert (await ask(tool, context, arguments)).verdict == "kubectl.name"
    assert asked == []


@pytest.mark.covers("A5")
@pytest.mark.parametrize("namespace", [*BAD_NAMES, "x" * 64, "a.b", "default --server=https://192.0.2.9", "*", "Demo"])
async def test_what_is_no_namespace_is_denied_by_every_tool(context: OpsContext, asked: Asked, namespace: str) -> None:
    pods = {"resource": "pods", "namespace": namespace}
    logs = {"pod": "web", "namespace": namespace}
    for tool, arguments in ((KUBECTL_GET, pods), (KUBECTL_DESCRIBE, pods), (KUBECTL_LOGS, logs)):
        assert (await ask(tool, context, arguments)).verdict == "kubectl.namespace"
    assert asked == []


@pytest.mark.covers("A5", "A10")
@pytest.mark.parametrize(
    "output",
    [
        *("go-template-file=/etc/hostname", "jsonpath-file=/etc/passwd", "custom-columns-file=/x", "jsonpath={.data}"),
        *("go-template={{.}}", "template", "JSON", "json ", "yaml\n", "", "wide,json", "kyaml", "custom-columns=A:.a"),
    ],
)
async def test_an_output_that_is_not_listed_is_denied(context: OpsContext, asked: Asked, output: str) -> None:
    assert (await get(context, output=output)).verdict == "kubectl.output"
    assert asked == []


@pytest.mark.covers("A5")
async def test_slots_are_filled_behind_fixed_flags_and_operands_stand_behind_a_double_dash(
    context: OpsContext, asked: Asked
) -> None:
    slots = {"resource": "po", "name": "web-1.x", "namespace": "demo"}
    for output in ("default", "wide", "name", "json", "yaml"):
        await ask(KUBECTL_GET, context, {**slots, "output": output})
    await ask(KUBECTL_DESCRIBE, context, slots)
    await ask(KUBECTL_LOGS, context, {"pod": "web", "namespace": "demo", "tail": 7})
    await ask(KUBECTL_LOGS, context, {"pod": "web"})
    assert asked == [
        ["get", "--namespace=demo", "--", "pods", "web-1.x"],
        ["get", "--namespace=demo", "--output=wide", "--", "pods", "web-1.x"],
        ["get", "--namespace=demo", "--output=name", "--", "pods", "web-1.x"],
        ["get", "--namespace=demo", "--output=json", "--", "pods", "web-1.x"],
        ["get", "--namespace=demo", "--output=json", "--", "pods", "web-1.x"],
        ["describe", "--namespace=demo", "--", "pods", "web-1.x"],
        ["logs", "--namespace=demo", "--tail=7", "--", "web"],
        ["logs", "--tail=100", "--", "web"],
    ]


@pytest.mark.covers("A5")
async def test_names_of_the_longest_allowed_length_pass(context: OpsContext, asked: Asked) -> None:
    assert (await get(context, name="x" * 253, namespace="y" * 63)).verdict == "executed"
    assert len(asked) == 1


@pytest.mark.covers("A16")
@pytest.mark.parametrize("tail", [0, -1, 1001, "7", 7.0, 7.5, True, "7 --follow"])
async def test_a_tail_that_is_no_integer_in_range_is_an_invalid_argument(
    context: OpsContext, asked: Asked, tail: object
) -> None:
    assert (await ask(KUBECTL_LOGS, context, {"pod": "web", "tail": tail})).verdict == "args.invalid"
    assert asked == []


@pytest.mark.covers("A10", "A16")
@pytest.mark.parametrize(
    "key", ["flags", "args", "v", "profile_output", "all_namespaces", "server", "kubeconfig", "raw"]
)
async def test_no_flag_has_a_slot(context: OpsContext, asked: Asked, key: str) -> None:
    for tool, needed in ((KUBECTL_GET, "resource"), (KUBECTL_DESCRIBE, "resource"), (KUBECTL_LOGS, "pod")):
        assert (await ask(tool, context, {needed: "pods", key: "9"})).verdict == "args.invalid"
    assert asked == []


@pytest.mark.covers("A16")
async def test_null_slots_are_left_out(context: OpsContext, asked: Asked) -> None:
    await get(context, name=None, namespace=None, output=None)
    assert asked == [["get", "--", "pods"]]


@pytest.mark.covers("A12")
async def test_secrets_are_denied_without_a_cluster_too(tmp_path: Path) -> None:
    assert (await get(context_of(tmp_path), "secrets")).verdict == "kubectl.secret"


@pytest.mark.parametrize(
    ("rule", "arguments", "argv"),
    [
        ("kubectl.secret", {"resource": "secrets"}, ["get", "--", "secrets"]),
        ("kubectl.kind", {"resource": "helmreleases"}, ["get", "--", "helmreleases"]),
        ("kubectl.name", {"resource": "pods", "name": "--raw=/x"}, ["get", "--", "pods", "--raw=/x"]),
        ("kubectl.namespace", {"resource": "pods", "namespace": "*"}, ["get", "--namespace=*", "--", "pods"]),
        ("kubectl.output", {"resource": "pods", "output": "x=y"}, ["get", "--output=x=y", "--", "pods"]),
    ],
)
async def test_with_its_rule_off_a_slot_is_passed_on(
    context: OpsContext, asked: Asked, rule: str, arguments: dict[str, Any], argv: list[str]
) -> None:
    assert (await ask(KUBECTL_GET, context, arguments)).verdict == rule
    assert (await ask(KUBECTL_GET, context, arguments, off=[rule])).verdict == "executed"
    assert asked == [argv]
