import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from apidouble import TOKEN, write_kubeconfig
from calls import OUTSIDE, SECRET, make_lab
from mcp.client import Client
from mcp_types import CallToolResult

from mcp_ops.gate import GATE_RULES, AuditRecord, Refuse, State, ToolClass
from mcp_ops.servers import ops
from mcp_ops.servers.ops import INSTRUCTIONS, RULES, TOOLS, create_server

SNAPSHOT = Path(__file__).parent / "data" / "ops_tools.json"


def listing() -> str:
    shown = [tool.definition.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in TOOLS]
    return json.dumps(shown, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


@pytest.mark.covers("A1")
def test_the_tool_list_is_the_snapshot() -> None:
    """Whatever a client sees of a tool is a contract: a change has to be meant."""
    if os.environ.get("UPDATE_SNAPSHOTS") == "1":
        SNAPSHOT.write_text(listing(), encoding="utf-8")
    assert SNAPSHOT.exists(), f"{SNAPSHOT.name} is missing: run UPDATE_SNAPSHOTS=1 pytest {__file__} and commit it"
    assert listing() == SNAPSHOT.read_text(encoding="utf-8"), (
        f"what tools/list says differs from {SNAPSHOT.name}: if that is meant, "
        f"run UPDATE_SNAPSHOTS=1 pytest {__file__}, read the difference and commit it"
    )


@pytest.mark.covers("A2", "A3", "A5")
def test_the_tools_are_the_six_with_their_arguments() -> None:
    arguments = {tool.name: tuple(tool.arguments.model_fields) for tool in TOOLS}
    assert arguments == {
        "search_files": ("pattern", "glob"),
        "read_file": ("path", "max_lines"),
        "run_shell": ("command",),
        "kubectl_get": ("resource", "name", "namespace", "output"),
        "kubectl_describe": ("resource", "name", "namespace"),
        "kubectl_logs": ("pod", "namespace", "tail"),
    }


@pytest.mark.covers("A6")
def test_every_tool_is_read_only_and_says_so() -> None:
    for tool in TOOLS:
        assert tool.classification is ToolClass.READ_ONLY
        annotations = tool.definition.annotations
        assert annotations is not None
        assert (annotations.read_only_hint, annotations.destructive_hint) == (True, False)
        assert annotations.open_world_hint is tool.name.startswith("kubectl_")


def test_every_argument_has_a_description() -> None:
    for tool in TOOLS:
        for name, schema in tool.definition.input_schema["properties"].items():
            assert schema.get("description"), f"{tool.name}.{name}"


def test_rules_are_named_once_in_the_agreed_form_with_a_meaning_and_a_way_forward() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    assert set(GATE_RULES) < set(RULES)
    for rule in RULES:
        assert re.fullmatch(r"[a-z]+\.[a-z]+(_[a-z]+)*", rule.name)
        assert rule.meaning.endswith("."), rule.name
        assert rule.state is not State.EXECUTED
        if rule.state in (State.DENIED, State.UNAVAILABLE):
            assert rule.hint, f"{rule.name}: a denial without a way forward ends a run"


def test_the_domains_rules_have_the_agreed_names_and_states() -> None:
    by_state: dict[str, set[str]] = {}
    for rule in RULES:
        if rule.name.partition(".")[0] in ("path", "search", "kubectl", "cluster"):
            by_state.setdefault(rule.state, set()).add(rule.name)
    assert by_state == {
        "denied": {
            *("path.outside", "path.secret", "path.special", "path.hardlink", "path.too_large"),
            *("search.pattern", "search.glob"),
            *("kubectl.kind", "kubectl.secret", "kubectl.name", "kubectl.namespace", "kubectl.output"),
        },
        "failed": {
            *("path.not_found", "path.is_directory", "path.binary"),
            *("cluster.unauthorized", "cluster.forbidden", "cluster.not_found", "cluster.tls", "cluster.error"),
        },
        "unavailable": {
            *("cluster.unavailable", "cluster.kubectl_missing", "cluster.kubeconfig_missing"),
            "cluster.context_missing",
        },
    }


@pytest.mark.covers("A1")
@pytest.mark.parametrize("workspace", ["", None, "nothing-here", "a-file"])
def test_a_server_without_a_workspace_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workspace: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a-file").touch()
    with pytest.raises(ValueError, match=r"existing folder$") as error:
        create_server(workspace)
    assert "\n" not in str(error.value)


def test_a_context_needs_a_kubeconfig(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the context 'prod' was given without a kubeconfig; name the kubeconfig too"):
        create_server(tmp_path, kube_context="prod")


@pytest.mark.covers("A1")
async def test_the_server_introduces_itself(tmp_path: Path) -> None:
    async with Client(create_server(str(tmp_path))) as client:
        tools = (await client.list_tools()).tools
        introduced = (client.server_info.name, client.instructions)
    assert introduced == ("ops", INSTRUCTIONS)
    assert tools == [tool.definition for tool in TOOLS]


def text(reply: CallToolResult) -> str:
    return reply.content[0].text  # type: ignore[union-attr]


EVERY_READ: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": "secrets/staging.env"}),
    ("read_file", {"path": "innocent.txt"}),
    ("read_file", {"path": "link_file"}),
    ("read_file", {"path": "double.kubeconfig"}),
    ("search_files", {"pattern": "."}),
    ("search_files", {"pattern": "CANARY|token", "glob": "**/*"}),
    ("run_shell", {"command": "cat .env"}),
    ("run_shell", {"command": "grep -rn CANARY ."}),
    ("run_shell", {"command": "cat link_dir/outside.txt"}),
    ("run_shell", {"command": "env"}),
    ("kubectl_get", {"resource": "secrets", "output": "yaml"}),
    ("kubectl_describe", {"resource": "secret"}),
    ("kubectl_logs", {"pod": "--kubeconfig=/x"}),
]


@pytest.mark.covers("A12", "A13")
async def test_no_tool_shows_a_secret_a_credential_or_anything_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check sits in each tool's one guard; that none was forgotten is seen from the client's end."""
    monkeypatch.setenv("OPENROUTER_API_KEY", SECRET)
    ws = make_lab(tmp_path)
    kubeconfig = write_kubeconfig(ws, "http://127.0.0.1:9")
    records: list[AuditRecord] = []
    async with Client(create_server(ws, kubeconfig=kubeconfig, audit=records.append)) as client:
        replies = [await client.call_tool(name, arguments) for name, arguments in EVERY_READ]
    for (name, arguments), reply in zip(EVERY_READ, replies, strict=True):
        shown = text(reply) + json.dumps(reply.structured_content)
        for hidden in (SECRET, OUTSIDE, TOKEN):
            assert hidden not in shown, (name, arguments)
    assert [(record.tool, record.arguments) for record in records] == EVERY_READ
    assert records[0].rule == "path.secret"


@pytest.mark.covers("A11")
async def test_without_a_cluster_the_rest_of_the_server_works_on(tmp_path: Path) -> None:
    ws = make_lab(tmp_path)
    async with Client(create_server(ws)) as client:
        cluster = await client.call_tool("kubectl_get", {"resource": "pods"})
        file = await client.call_tool("read_file", {"path": "runbooks/restart.md"})
    assert text(cluster) == "cluster_unavailable: no cluster was named when the server was made"
    assert cluster.structured_content is not None
    assert cluster.structured_content["state"] == "unavailable"
    assert text(file).startswith("# Restart payments-api")


@pytest.mark.covers("A24")
async def test_a_server_with_a_cluster_that_is_gone_says_so_and_shows_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    async with Client(
        create_server(tmp_path / "ws", kubeconfig=tmp_path / "none", kubectl=Path("/bin/true"))
    ) as client:
        reply = await client.call_tool("kubectl_get", {"resource": "pods"})
    assert text(reply).startswith("cluster_kubeconfig_missing: the kubeconfig cannot be read")


async def test_a_rule_that_is_off_is_off_in_the_whole_server(tmp_path: Path) -> None:
    ws = make_lab(tmp_path)
    async with Client(create_server(ws, refuse=Refuse(frozenset({"path.secret"})))) as client:
        assert SECRET in text(await client.call_tool("read_file", {"path": ".env"}))


async def test_hard_links_are_the_operators_choice(tmp_path: Path) -> None:
    ws = make_lab(tmp_path)
    async with Client(create_server(ws, allow_hardlinks=True)) as client:
        assert OUTSIDE in text(await client.call_tool("read_file", {"path": "hardlink.txt"}))


def test_walls_and_network_can_be_asked_for() -> None:
    assert ops.children_network() in ("isolated", "unchecked")
    assert ops.describe_second_wall()
