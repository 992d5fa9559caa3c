"""Nobody but the code that builds a server can switch a rule off: no setting, no line, no call, no command."""

import argparse
import ast
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from opsproject import Project, denied, script

from mcp_ops.cli import main
from mcp_ops.cli.arguments import build_parser
from mcp_ops.evaluation.config import Limits, RunConfig, ServerSpec
from mcp_ops.evaluation.line.parse import parse_line
from mcp_ops.evaluation.line.scenario import BadLine, ScenarioLine
from mcp_ops.gate import Refuse
from mcp_ops.servers.ops import TOOLS, create_server
from pytest_opsagent.options import OPTIONS

pytestmark = pytest.mark.covers("H26")

ROOT = Path(__file__).parent.parent
SPELLINGS = ("rules_off", "rules-off", "off", "refuse", "rehearse", "disable", "guards_off")
"""How somebody would ask for it."""


def calls_of(name: str) -> Iterator[tuple[str, ast.Call]]:
    """Every call of a name in the shipped code, with its module."""
    for package in ("mcp_ops", "pytest_opsagent"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == name:
                    yield str(path.relative_to(ROOT)), node


def given(call: ast.Call, name: str) -> str | None:
    return next((ast.unparse(each.value) for each in call.keywords if each.arg == name), None)


def test_rules_are_named_off_in_one_place_of_the_code_and_asked_for_in_one_other() -> None:
    makes = [(path, ast.unparse(call)) for path, call in calls_of("Refuse") if call.args or call.keywords]
    assert makes == [("mcp_ops/evaluation/run.py", "Refuse(rules_off, rehearse=True)")]
    asks = [(path, given(call, "rules_off")) for path, call in calls_of("run") if given(call, "rules_off")]
    assert asks == [("mcp_ops/evaluation/measuring/mutation.py", "frozenset({rule})")]


def test_only_the_harness_hands_a_server_another_way_to_say_no() -> None:
    hands_on = {path for path, call in calls_of("create_server") if given(call, "refuse")}
    assert hands_on == {"mcp_ops/evaluation/session/servers.py"}
    built = {path for path, call in calls_of("build_server") if given(call, "refuse")}
    assert built == {"mcp_ops/servers/ops.py", "mcp_ops/servers/github.py"}
    assert {path for path, call in calls_of("server_targets") if given(call, "refuse")} == {"mcp_ops/evaluation/run.py"}


def test_no_module_reads_it_from_the_environment() -> None:
    assert Refuse() == Refuse(frozenset(), rehearse=False)
    for path in (ROOT / "mcp_ops/gate").glob("*.py"):
        assert "environ" not in path.read_text("utf-8")


def test_no_option_no_setting_of_a_run_and_no_key_of_a_line_names_it() -> None:
    options = {word for option in OPTIONS for word in (option.key, option.env or "")}
    settings = {field.name for kind in (RunConfig, Limits, ServerSpec) for field in dataclasses.fields(kind)}
    keys = set(_keys(ScenarioLine.model_json_schema()))
    arguments = {name for tool in TOOLS for name in tool.arguments.model_fields}
    commands = {option for parser in _parsers(build_parser()) for option in parser._option_string_actions}
    for names in (options, settings, keys, arguments, commands):
        assert names
        assert {name for name in names if name.lstrip("-").replace("ops_", "", 1).lower() in SPELLINGS} == set()
        assert {name for name in names if "off" in name.replace("_", "-").split("-")} == set()


def _keys(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for value in schema.values():
            yield from _keys(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _keys(value)


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _parsers(inner)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_line_that_asks_for_it_is_a_bad_line(spelling: str) -> None:
    for line in (
        denied(**{spelling: ["shell.binary"]}),
        denied(world={spelling: ["shell.binary"]}),
        denied(server={"name": "ops", spelling: ["shell.binary"]}),
    ):
        assert isinstance(parse_line(json.dumps(line), ROOT / "scenarios.jsonl", 1), BadLine)


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_a_call_that_asks_for_it_is_denied(spelling: str, tmp_path: Path) -> None:
    async with Client(create_server(tmp_path)) as client:
        for arguments in ({"command": "rm x", spelling: ["shell.binary"]}, {"command": f"rm x --{spelling}"}):
            reply = await client.call_tool("run_shell", arguments)
            assert reply.structured_content is not None
            assert reply.structured_content["state"] == "denied"
        reply = await client.session.call_tool("run_shell", {"command": "rm x"}, meta={spelling: ["shell.binary"]})
        assert reply.structured_content is not None
        assert reply.structured_content["rule"] == "shell.binary"


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_command_line_that_asks_for_it_is_refused(
    spelling: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["serve", "ops", "--workspace", str(tmp_path), f"--{spelling}=shell.binary"])
    assert ended.value.code == 2
    assert "unrecognized arguments" in capsys.readouterr().err


def test_neither_environment_nor_ini_file_can_ask_for_it(project: Project) -> None:
    action = {"tool": "run_shell", "args": {"command": "rm x"}}
    expect = {"calls": [{"tool": "run_shell", "state": "denied", "rule": "shell.binary"}]}
    project.write(denied(mock=script(action, "No."), expect=expect))
    for spelling in SPELLINGS:
        for prefix in ("OPS_", "MCP_OPS_", "OPSAGENT_", "PYTEST_OPS_"):
            project.monkeypatch.setenv(prefix + spelling.upper().replace("-", "_"), "shell.binary")
    assert project.run().counts == {"passed": 1}
    for spelling in SPELLINGS:
        project.file("pytest.ini", f"[pytest]\nops_{spelling} = shell.binary\n")
        asked = project.run("--strict-config")
        assert (asked.code, asked.counts if asked.code == 0 else {}) == (4, {})
        assert f"Unknown config option: ops_{spelling}" in asked.err
        assert project.run(f"--ops-{spelling}=shell.binary", "-c", "/dev/null").code == 4
