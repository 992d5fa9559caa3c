"""The MCP Inspector, a client that is not ours, works with the servers: `make inspector` installs it from npm."""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from githubserved import TOKEN, github_on_loopback
from httpserver import http_child

ROOT = Path(__file__).parent.parent
PROGRAM = str(Path(sys.executable).with_name("mcp-ops"))
HTTP_TOKEN = "a-token-of-24-characters"
SECONDS = 120

pytestmark = pytest.mark.covers("A1", "D6")


def installed() -> Path:
    """Return the folder that `make inspector` fills; the Makefile names the version."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    (name,) = re.findall(r"^INSPECTOR := \$\(CACHE\)/(inspector-[\d.]+)$", makefile, re.MULTILINE)
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "pytest-opsagent" / name


@pytest.fixture
def inspector() -> list[str]:
    folder = installed()
    if not (folder / ".installed").exists():
        sentence = f"the MCP Inspector is not in {folder}; make inspector installs it from npm"
        if os.environ.get("REQUIRE_INSPECTOR") == "1":
            pytest.fail(sentence)
        pytest.skip(sentence)
    modules = folder / "node_modules"
    return [
        str(modules / ".bin/node"),
        str(modules / "@modelcontextprotocol/inspector/clients/cli/build/index.js"),
    ]


@asynccontextmanager
async def server(name: str, transport: str, workspace: Path) -> AsyncIterator[list[str]]:
    """Yield the words that tell the Inspector where a server is."""
    async with github_on_loopback() as env:
        words = [name] if name == "github" else [name, "--workspace", str(workspace)]
        if transport == "stdio":
            entry = {"type": "stdio", "command": PROGRAM, "args": ["serve", *words], "env": env}
        else:
            held = http_child(*words, env={**env, "MCP_HTTP_TOKEN": HTTP_TOKEN})
            child = await asyncio.to_thread(held.__enter__)
            headers = {"Authorization": f"Bearer {HTTP_TOKEN}"}
            entry = {"type": "streamable-http", "url": child.url, "headers": headers}
        try:
            config = workspace.parent / "inspector.json"
            config.write_text(json.dumps({"mcpServers": {"it": entry}}))
            yield ["--config", str(config), "--server", "it"]
        finally:
            if transport == "http":
                await asyncio.to_thread(held.__exit__, None, None, None)


async def ask(inspector: Sequence[str], where: Sequence[str], method: str, *more: str, home: Path) -> Any:
    process = await asyncio.create_subprocess_exec(
        *inspector,
        *where,
        "--method",
        method,
        *more,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "MCP_INSPECTOR_SECRET_STORE": "memory"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(SECONDS):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    assert TOKEN not in (out + err).decode()
    return json.loads(out)


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_it_lists_what_the_ops_server_has_and_calls_a_tool(
    inspector: list[str], transport: str, tmp_path: Path
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "notes.md").write_text("The cache is full.\n")
    async with server("ops", transport, workspace) as where:
        tools = await ask(inspector, where, "tools/list", home=tmp_path)
        arguments = ("--tool-name", "read_file", "--tool-arg", "path=notes.md")
        executed = await ask(inspector, where, "tools/call", *arguments, home=tmp_path)
        assert (await ask(inspector, where, "resources/list", home=tmp_path))["resources"] == []
        assert (await ask(inspector, where, "prompts/list", home=tmp_path))["prompts"] == []
    assert {"read_file", "run_shell", "kubectl_get"} <= {tool["name"] for tool in tools["tools"]}
    assert executed["structuredContent"]["state"] == "executed"
    assert "The cache is full." in executed["content"][0]["text"]


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_it_lists_tools_resources_and_prompts_of_the_github_server_and_calls_a_tool(
    inspector: list[str], transport: str, tmp_path: Path
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    async with server("github", transport, workspace) as where:
        tools = await ask(inspector, where, "tools/list", home=tmp_path)
        resources = await ask(inspector, where, "resources/list", home=tmp_path)
        prompts = await ask(inspector, where, "prompts/list", home=tmp_path)
        arguments = ("--tool-name", "list_open_pull_requests", "--tool-arg", "owner=acme", "repo=web")
        executed = await ask(inspector, where, "tools/call", *arguments, home=tmp_path)
        watched = await ask(inspector, where, "resources/read", "--uri", "devops://watchlist", home=tmp_path)
    assert {"list_open_pull_requests", "create_issue"} <= {tool["name"] for tool in tools["tools"]}
    assert "devops://watchlist" in {resource["uri"] for resource in resources["resources"]}
    assert {prompt["name"] for prompt in prompts["prompts"]} == {"morning_standup", "pr_review_brief"}
    assert "Reduce checkout latency" in json.dumps(executed)
    assert "acme" in json.dumps(watched)
