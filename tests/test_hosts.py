"""The page of hosts: each block starts what it says, and the tokens go where the page says."""

import asyncio
import json
import os
import re
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from githubserved import TOKEN, github_on_loopback
from httpserver import SECONDS, http_child
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/hosts.md").read_text("utf-8")
PROGRAM = str(Path(sys.executable).with_name("mcp-ops"))
HTTP_TOKEN = "a-token-of-24-characters"
FILLED_IN = re.compile(r"\$\{(?:env:|input:)?([\w-]+)\}|github_pat_…")
VALUES = {"GITHUB_TOKEN": TOKEN, "github-token": TOKEN, "MCP_HTTP_TOKEN": HTTP_TOKEN, "http-token": HTTP_TOKEN}


def entries() -> list[Any]:
    """Every server of every block, with the heading above it."""
    found = []
    for section in PAGE.split("\n## ")[1:]:
        heading = section.splitlines()[0]
        for block in re.findall(r"^```json\n(.*?)^```$", section, re.MULTILINE | re.DOTALL):
            read = json.loads(block)
            servers = read["servers" if heading == "VS Code" else "mcpServers"]
            for name, entry in servers.items():
                kind = "http" if "url" in entry else "stdio"
                found.append(pytest.param(entry, read, id=f"{heading}-{name}-{kind}"))
    return found


def filled_in(text: str) -> str:
    """Do what the host does with its references."""
    return FILLED_IN.sub(lambda found: VALUES[found[1] or "GITHUB_TOKEN"], text)


def test_every_host_of_the_page_has_both_servers_over_stdio() -> None:
    ids = [str(entry.id) for entry in entries()]
    for host in ("Claude Desktop", "Claude Code", "Cursor", "VS Code"):
        assert {f"{host}-ops-stdio", f"{host}-github-stdio"} <= set(ids)
    assert len([each for each in ids if each.endswith("-http")]) == 3


@pytest.mark.covers("A1", "D6")
@pytest.mark.parametrize(("entry", "block"), entries())
async def test_a_block_starts_a_server_whose_tool_answers(entry: Any, block: Any, tmp_path: Path) -> None:
    asked = {each["id"] for each in block.get("inputs", [])}
    assert set(re.findall(r"\$\{input:([\w-]+)\}", json.dumps(entry))) <= asked
    (tmp_path / "notes.md").write_text("The cache is full.\n")
    async with asyncio.timeout(SECONDS), AsyncExitStack() as stack:
        served = await stack.enter_async_context(github_on_loopback())
        client = await stack.enter_async_context(Client(await connection(entry, served, tmp_path, stack)))
        if "github" in entry.get("args", ()):
            reply = await client.call_tool("list_open_pull_requests", {"owner": "acme", "repo": "web"})
            expected = "Reduce checkout latency"
        else:
            reply = await client.call_tool("read_file", {"path": "notes.md"})
            expected = "The cache is full."
    assert reply.is_error is not True, reply
    assert expected in reply.model_dump_json()
    assert TOKEN not in reply.model_dump_json()


async def connection(entry: Any, served: dict[str, str], workspace: Path, stack: AsyncExitStack) -> Any:
    if "url" not in entry:
        assert entry["command"] == "/opt/venv/bin/mcp-ops"
        args = [str(workspace) if word == "/srv/runbooks" else word for word in entry["args"]]
        assert not FILLED_IN.search(" ".join(args))
        env = {name: filled_in(value) for name, value in entry.get("env", {}).items()}
        if env:
            assert env["GITHUB_TOKEN"] == TOKEN
            env["GITHUB_API_URL"] = served["GITHUB_API_URL"]
        return StdioServerParameters(command=PROGRAM, args=args, env={"PATH": os.environ["PATH"], **env})
    assert entry["url"] == "http://127.0.0.1:3333/mcp"
    (shown,) = re.findall(r"^mcp-ops (serve .*--http)$", PAGE, re.MULTILINE)
    words = shown.replace("/srv/runbooks", str(workspace)).split()[1:-1]
    child = stack.enter_context(http_child(*words, env={"MCP_HTTP_TOKEN": HTTP_TOKEN}))
    headers = {name: filled_in(value) for name, value in entry["headers"].items()}
    http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers))
    return streamable_http_client(child.url, http_client=http)


def test_the_default_port_of_the_page_is_the_default() -> None:
    from mcp_ops.cli.arguments import HTTP_PORT

    assert set(re.findall(r"127\.0\.0\.1:(\d+)", PAGE)) == {str(HTTP_PORT)}
