"""The ops server over every way to talk to it, and the facts about the SDK that its design stands on."""

import ast
import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from calls import make_lab
from mcp import StdioServerParameters
from mcp.client import Client
from mcp_types import CallToolResult

import mcp_ops
from mcp_ops.gate import Arguments, Refuse, Result, Tool, build_server, executed
from mcp_ops.servers.ops import TOOLS, create_server

SECONDS = 60
"""A deadline for what would otherwise hang; nothing is measured with it."""

Connect = Callable[[Path], Any]


def in_process(workspace: Path) -> Any:
    return create_server(workspace)


def over_stdio(workspace: Path) -> Any:
    command = ["-m", "mcp_ops.cli", "serve", "ops", "--workspace", str(workspace)]
    return StdioServerParameters(command=sys.executable, args=command)


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    return make_lab(tmp_path)


def text(reply: CallToolResult) -> str:
    return reply.content[0].text  # type: ignore[union-attr]


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": "runbooks/restart.md"}),
    ("read_file", {"path": "secrets/staging.env"}),
    ("read_file", {"path": "runbooks/restart.md", "max_lines": "7"}),
    ("read_file", {"path": "runbooks/restart.md", "lines": 7}),
    ("search_files", {"pattern": "payments-api", "glob": None}),
    ("run_shell", {"command": "head -n 1 runbooks/restart.md"}),
    ("run_shell", {"command": "rm -rf ."}),
    ("kubectl_get", {"resource": "pods"}),
    ("kubectl_logs", {"pod": "secret/db"}),
    ("delete_everything", {}),
]


async def replies(server: Any, mode: Any) -> tuple[list[str], list[CallToolResult]]:
    async with asyncio.timeout(SECONDS), Client(server, mode=mode) as client:
        tools = (await client.list_tools()).tools
        return [tool.name for tool in tools], [await client.call_tool(name, arguments) for name, arguments in CALLS]


@pytest.mark.covers("A1", "A6", "A16")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("connect", [in_process, over_stdio])
async def test_every_transport_and_protocol_era_gives_the_same_answers(ws: Path, connect: Connect, mode: str) -> None:
    names, answers = await replies(connect(ws), mode)
    assert names == [tool.name for tool in TOOLS]
    states = [(reply.structured_content or {}).get("state") for reply in answers]
    rules = [(reply.structured_content or {}).get("rule") for reply in answers]
    assert rules == [
        *(None, "path.secret", "args.invalid", "args.invalid", None, None, "shell.binary", "cluster.unavailable"),
        *("kubectl.name", "tool.unknown"),
    ]
    assert [reply.is_error is True for reply in answers] == [state != "executed" for state in states]
    assert text(answers[0]).startswith("# Restart payments-api\nraise the timeout\n")
    assert text(answers[5]).startswith("# Restart payments-api")
    assert text(answers[7]) == "cluster_unavailable: no cluster was named when the server was made"
    for reply, state in zip(answers, states, strict=True):
        assert text(reply).startswith("GUARD DENIED: ") == (state == "denied")


def speak(ws: Path, lines: list[bytes], *, expected: set[int]) -> tuple[dict[int, Any], int]:
    """Write raw lines to a real server, wait for the expected answers, close its input; return answers and exit code.

    Every line of its standard output has to be a JSON-RPC message.
    """
    command = [sys.executable, "-m", "mcp_ops.cli", "serve", "ops", "--workspace", str(ws)]
    answers: dict[int, Any] = {}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        deadline = threading.Timer(SECONDS, server.kill)
        deadline.start()
        server.stdin.write(b"".join(lines))
        server.stdin.flush()
        while expected - answers.keys() and (line := server.stdout.readline()):
            message = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            answers[message.get("id")] = message
        rest, _ = server.communicate()
        deadline.cancel()
    for line in rest.splitlines():
        assert json.loads(line)["jsonrpc"] == "2.0"
    return answers, server.returncode


def request(number: int, method: str, **parameters: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}).encode() + b"\n"


HANDSHAKE = [
    request(
        1,
        "initialize",
        protocolVersion="2025-06-18",
        capabilities={},
        clientInfo={"name": "raw", "version": "1"},
    ),
    json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode() + b"\n",
]


@pytest.mark.covers("A1")
def test_standard_output_carries_json_rpc_and_nothing_else_also_when_children_run(ws: Path) -> None:
    calls = [
        request(number, "tools/call", name=name, arguments=arguments)
        for number, (name, arguments) in enumerate([*CALLS, ("run_shell", {"command": "ls nothing-here"})], start=2)
    ]
    expected = set(range(1, len(calls) + 2))
    answers, exit_code = speak(ws, [*HANDSHAKE, b"\n", b"this is no JSON\n", *calls], expected=expected)
    assert all("result" in answers[number] for number in expected)
    assert exit_code == 0


@pytest.mark.covers("A26")
def test_half_a_surrogate_pair_on_the_wire_costs_one_reply_at_most(ws: Path) -> None:
    escaped = (
        b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"\\ud800"}}}\n'
    )
    raw = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"\xff"}}}\n'
    after = request(4, "tools/call", name="read_file", arguments={"path": "runbooks/restart.md"})
    answers, _ = speak(ws, [*HANDSHAKE, escaped, raw, after], expected={4})
    assert answers[4]["result"]["structuredContent"]["state"] == "executed"


@pytest.mark.covers("A26")
@pytest.mark.parametrize("connect", [in_process, over_stdio])
async def test_a_file_name_that_is_no_utf_8_does_not_end_a_session(ws: Path, connect: Connect) -> None:
    (ws / b"bad\xff\xfe.md".decode("utf-8", "surrogateescape")).write_text("needle\n")
    async with asyncio.timeout(SECONDS), Client(connect(ws)) as client:
        found = await client.call_tool("search_files", {"pattern": "needle"})
        listed = await client.call_tool("run_shell", {"command": "ls"})
        after = await client.call_tool("read_file", {"path": "runbooks/restart.md"})
    assert text(found).startswith("bad\ufffd\ufffd.md:1: needle")
    for reply in (found, listed, after):
        assert (reply.structured_content or {})["state"] == "executed"


class NoArguments(Arguments):
    pass


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_call_that_its_client_gave_up_on_leaves_the_server_alive(mode: Any) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def wait(_: None, __: None, ___: Refuse) -> Result:
        started.set()
        await go_on.wait()
        return executed("late")

    tool: Tool[NoArguments, None, None] = Tool("wait", "Wait.", NoArguments, lambda *_: None, wait)
    async with (
        asyncio.timeout(SECONDS),
        Client(build_server("demo", [tool], None, instructions=""), mode=mode) as client,
    ):
        for answer_first in (True, False):
            started.clear()
            go_on.clear()
            call = asyncio.create_task(client.call_tool("wait", {}))
            await started.wait()
            if answer_first:
                go_on.set()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            go_on.set()
            assert text(await client.call_tool("wait", {})) == "late"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_two_clients_may_be_closed_in_the_order_in_which_they_were_opened(ws: Path, mode: Any) -> None:
    """As long as each is closed by the task that opened it: here, one task for each."""
    opened: list[asyncio.Event] = [asyncio.Event(), asyncio.Event()]
    close: list[asyncio.Event] = [asyncio.Event(), asyncio.Event()]
    said: list[str] = []

    async def own(number: int) -> None:
        async with Client(create_server(ws), mode=mode) as client:
            said.append(text(await client.call_tool("read_file", {"path": "empty.txt"})))
            opened[number].set()
            await close[number].wait()

    async with asyncio.timeout(SECONDS):
        owners = [asyncio.create_task(own(number)) for number in (0, 1)]
        for number in (0, 1):
            await opened[number].wait()
        for number in (0, 1):
            close[number].set()
            await owners[number]
    assert said == ["[the file is empty]"] * 2


async def test_the_sdk_refuses_a_client_that_another_task_closes(ws: Path) -> None:
    """Pins mcp 2.x: why no fixture here holds an open client, and why ours are opened and closed in one coroutine."""
    client = Client(create_server(ws), mode="legacy")
    opener = asyncio.create_task(client.__aenter__())
    async with asyncio.timeout(SECONDS):
        await opener
        with pytest.raises(BaseException) as raised:  # noqa: PT011 -- alone or in a group
            await client.__aexit__(None, None, None)
    assert "cancel scope" in repr(raised.value) or isinstance(raised.value, BaseExceptionGroup)


def test_the_loop_scope_of_fixtures_is_pinned(pytestconfig: pytest.Config) -> None:
    assert pytestconfig.getini("asyncio_default_fixture_loop_scope") == "function"


def test_no_tool_forks_the_server() -> None:
    """A forked server would share the protocol's stdin with its parent."""
    package = Path(mcp_ops.__file__).parent
    forking = []
    for path in sorted([*package.glob("ops/**/*.py"), *package.glob("gate/*.py"), *package.glob("servers/*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            attribute = node.attr if isinstance(node, ast.Attribute) else ""
            if "multiprocessing" in {*names, module} or attribute in ("fork", "forkpty") or "pty" in names:
                forking.append(path.name)
    assert forking == []
