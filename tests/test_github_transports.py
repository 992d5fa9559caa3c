"""A github server that is a child process: GitHub stays in the harness all the same, and is reached on loopback."""

import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from githublines import LIST, OPEN, SMALL, github_line, messages, run_line

from mcp_ops.evaluation.world import github as worlds
from mcp_ops.evaluation.world.github import TOKEN_BEGINNING

pytestmark = pytest.mark.covers("D10", "H4", "H9")


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_the_witness_sees_what_a_child_process_did_and_the_child_holds_no_key_of_ours(
    tmp_path: Path, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENROUTER_API_KEY", "ANTHROPIC_API_KEY", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, f"{name.lower()}-7Hq2mVb9RtZ4wLp8")
    started: list[dict[str, str]] = []
    popen = subprocess.Popen

    def spy(*args: Any, **named: Any) -> Any:
        started.append(dict(named.get("env") or {}))
        return popen(*args, **named)

    monkeypatch.setattr(subprocess, "Popen", spy)
    github = {**SMALL, "watch": ["acme/web"], "write": ["acme/web"]}
    line = github_line(LIST, OPEN, "${call[0].text /#3/}, ${last.text /#4/}", github=github, confirm="yes")
    line["expect"] = {
        "calls": [{"tool": "list_issues"}, {"tool": "create_issue"}],
        "answer": "#3, #4",
        "effects": {"github": {"created": ["acme/web#4"]}},
        "leaks": "none",
    }
    outcome = await run_line(line, tmp_path, transport=transport)
    assert messages(outcome) == []
    (child,) = [each for each in started if "GITHUB_TOKEN" in each]
    ours = {"PATH", "GITHUB_API_URL", "GITHUB_TOKEN", "GITHUB_REPOS", "GITHUB_WRITE_REPOS"}
    assert {name for name in child if not name.startswith("MCP_HTTP_")} == ours
    assert child["GITHUB_TOKEN"].startswith(TOKEN_BEGINNING)
    assert child["GITHUB_API_URL"].startswith("http://127.0.0.1:")
    assert outcome.trace is not None
    assert child["GITHUB_TOKEN"] not in outcome.trace.read_text("utf-8")


async def test_the_port_is_given_back_after_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[worlds.GitHubWorld] = []
    make = worlds.github_world

    def remember(*args: Any, **named: Any) -> worlds.GitHubWorld:
        made.append(make(*args, **named))
        addresses.append(made[-1].environment["GITHUB_API_URL"])
        return made[-1]

    addresses: list[str] = []
    monkeypatch.setattr(worlds, "github_world", remember)
    assert messages(await run_line(github_line("done"), tmp_path, transport="stdio")) == []
    assert made[0].listener is not None
    assert made[0].listener.fileno() == -1
    port = int(addresses[0].rpartition(":")[2])
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), timeout=5):
        pass


async def test_a_server_that_cannot_start_gives_the_port_back_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[worlds.GitHubWorld] = []
    make = worlds.github_world
    monkeypatch.setattr(worlds, "github_world", lambda *args, **named: made.append(make(*args, **named)) or made[-1])
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    (said,) = messages(await run_line(github_line("done"), tmp_path, transport="stdio"))
    assert said.startswith("server 'github' did not start: /nowhere/python")
    assert made[0].listener is not None
    assert made[0].listener.fileno() == -1
