"""`mcp-ops serve --http`: a real server, spoken to by MCP clients and by bytes that no client would send."""

import asyncio
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from calls import make_lab
from httpserver import SECONDS, HttpChild, http_child
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from test_mcp_transports import CALLS, over_stdio, replies

from mcp_ops import __version__
from mcp_ops.cli import main
from mcp_ops.servers.http import MAX_BODY_BYTES

TOKEN = "a-token-of-24-characters"
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
READ = {"name": "read_file", "arguments": {"path": "runbooks/restart.md"}, "_meta": META}

pytestmark = pytest.mark.covers("A1", "D6")

OPEN_TO_ALL = (
    "mcp-ops: this server does not ask its callers who they are: every user and program of this machine may call it; "
    "to ask for a bearer token, set MCP_HTTP_TOKEN\n"
)


@pytest.fixture(scope="module")
def ws(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_lab(tmp_path_factory.mktemp("lab"))


@pytest.fixture(scope="module")
def server(ws: Path) -> Iterator[HttpChild]:
    with http_child("ops", "--workspace", str(ws)) as child:
        yield child


def call(child: HttpChild, *more: str, host: str = "", body: Any = None, name: str = "read_file") -> tuple[int, str]:
    """Read a file by one request of the newest protocol, with further header lines."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": READ}
    data = body if isinstance(body, bytes) else json.dumps(message if body is None else body).encode()
    head = [
        "POST /mcp HTTP/1.1",
        f"Host: {host or f'127.0.0.1:{child.port}'}",
        *("Content-Type: application/json", "Accept: application/json, text/event-stream"),
        *(f"MCP-Protocol-Version: {MODERN}", "Mcp-Method: tools/call", f"Mcp-Name: {name}"),
        f"Content-Length: {len(data)}",
        *more,
    ]
    return child.ask("\n".join(head), data)


class TestBothErasOfTheProtocol:
    @pytest.mark.parametrize("mode", ["auto", "legacy"])
    async def test_every_call_is_answered_as_over_stdio(self, server: HttpChild, ws: Path, mode: str) -> None:
        over_http, over_pipes = await replies(server.url, mode), await replies(over_stdio(ws), mode)
        assert over_http == over_pipes
        assert len(over_http[1]) == len(CALLS)

    def test_the_newest_protocol_needs_one_request_and_no_session(self, server: HttpChild) -> None:
        status, answer = call(server)
        assert status == 200
        assert "# Restart payments-api" in answer
        assert "mcp-session-id" not in answer.lower()

    def test_an_older_one_gets_a_session_which_only_its_own_id_opens(self, server: HttpChild) -> None:
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        status, answer = older(server, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
        assert status == 200
        session = answer.lower().partition("mcp-session-id: ")[2].partition("\r\n")[0]
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        assert older(server, listing, f"Mcp-Session-Id: {session}")[0] == 200
        assert older(server, listing, f"Mcp-Session-Id: {'0' * 32}")[0] == 404
        assert older(server, listing)[0] == 400


def older(child: HttpChild, message: Any, *more: str) -> tuple[int, str]:
    data = json.dumps(message).encode()
    head = [
        *("POST /mcp HTTP/1.1", f"Host: localhost:{child.port}", "Content-Type: application/json"),
        *("Accept: application/json, text/event-stream", f"Content-Length: {len(data)}", *more),
    ]
    return child.ask("\n".join(head), data)


class TestRebinding:
    @pytest.mark.parametrize(
        ("header", "status"),
        [
            ("Host: evil.example", 421),
            ("Host: evil.example:{port}", 421),
            ("Host: localhost.evil.example:{port}", 421),
            ("Host: 127.0.0.1.nip.io:{port}", 421),
            ("Host: 127.0.0.1:1", 421),
            ("Host: 127.0.0.1", 421),
            ("Host: LOCALHOST:{port}", 200),
            ("Host: [::1]:{port}", 200),
            ("Origin: null", 403),
            ("Origin: http://evil.example", 403),
            ("Origin: HTTP://EVIL.EXAMPLE", 403),
            ("Origin: http://localhost:3000", 403),
            ("Origin: https://localhost:{port}", 403),
            ("Origin: http://localhost:{port}", 200),
        ],
    )
    @pytest.mark.parametrize("path", ["/mcp", "/health", "/nowhere"])
    def test_a_page_of_another_site_reaches_nothing(
        self, server: HttpChild, header: str, status: int, path: str
    ) -> None:
        named = header.format(port=server.port)
        host = named if named.startswith("Host") else f"Host: localhost:{server.port}\n{named}"
        answer, text = server.ask(f"GET {path} HTTP/1.1\n{host}")
        if status == 200:
            assert answer == {"/mcp": 406, "/health": 200, "/nowhere": 404}[path]
        else:
            assert answer == status
            said = json.loads(text.partition("\r\n\r\n")[2])["error"]["message"]
            assert said.startswith("the header Host names another" if status == 421 else "the header Origin names")
            assert "evil" not in text.lower()

    def test_a_refused_call_does_not_run(self, server: HttpChild) -> None:
        assert "# Restart" in call(server)[1]
        for more in ("Origin: http://evil.example", "Origin: null"):
            assert "# Restart" not in call(server, more)[1]
        assert "# Restart" not in call(server, host=f"evil.example:{server.port}")[1]

    def test_a_request_without_a_host_is_refused(self, server: HttpChild) -> None:
        assert server.ask("GET /health HTTP/1.1")[0] == 400
        status, text = server.ask("GET /health HTTP/1.0")
        assert status == 421
        assert "the header Host is missing" in text

    def test_no_answer_allows_a_browser_to_read_it(self, server: HttpChild) -> None:
        own = f"Origin: http://localhost:{server.port}"
        head = f"OPTIONS /mcp HTTP/1.1\nHost: localhost:{server.port}\n{own}\nAccess-Control-Request-Method: POST"
        status, text = server.ask(head)
        assert status == 405
        assert "access-control-allow" not in text.lower() + call(server, own)[1].lower()

    def test_what_a_form_of_a_page_can_send_is_no_call(self, server: HttpChild) -> None:
        head = f"POST /mcp HTTP/1.1\nHost: localhost:{server.port}\nContent-Type: text/plain\nContent-Length: 2"
        assert server.ask(head, b"{}")[0] == 400


class TestHealth:
    def test_it_says_who_answers_and_nothing_else(self, server: HttpChild) -> None:
        status, text = server.ask(f"GET /health HTTP/1.1\nHost: 127.0.0.1:{server.port}")
        assert status == 200
        assert json.loads(text.partition("\r\n\r\n")[2]) == {"status": "ok", "name": "ops", "version": __version__}

    def test_it_can_only_be_read(self, server: HttpChild) -> None:
        head = f"POST /health HTTP/1.1\nHost: 127.0.0.1:{server.port}\nContent-Length: 0"
        assert server.ask(head)[0] == 405


class TestSize:
    def test_a_request_that_is_too_long_is_refused_and_the_server_goes_on(self, server: HttpChild) -> None:
        head = f"POST /mcp HTTP/1.1\nHost: localhost:{server.port}\nContent-Type: application/json"
        assert server.ask(f"{head}\nContent-Length: {MAX_BODY_BYTES + 1}")[0] == 413
        piece = b"10000\r\n" + b" " * 65536 + b"\r\n"
        assert server.ask(f"{head}\nTransfer-Encoding: chunked", piece * 17)[0] == 413
        assert call(server)[0] == 200

    @pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 50_000, b'{"jsonrpc": "2.0"}'])
    def test_a_body_that_is_no_message_is_an_error_of_its_sender(self, server: HttpChild, body: bytes) -> None:
        assert 400 <= call(server, body=body)[0] < 500
        assert call(server)[0] == 200


SESSION_IDS = {
    "another caller's": "X-Session-ID: 0123456789abcdef",
    "a path": "X-Session-ID: ../../x",
    "too long": f"X-Session-ID: {'A' * 1000}",
    "not ASCII": "X-Session-ID: Ünïcode",
    "twice": "X-Session-ID: one\nX-Session-ID: two",
    "empty": "X-Session-ID: ",
}


@pytest.mark.parametrize("header", SESSION_IDS.values(), ids=SESSION_IDS.keys())
def test_a_session_id_of_the_callers_choice_means_nothing(server: HttpChild, header: str) -> None:
    """These servers keep no state of a caller: there is nothing that such a header could open."""
    plain, named = call(server), call(server, header)
    assert named[0] == 200
    assert named[1].partition("\r\n\r\n")[2] == plain[1].partition("\r\n\r\n")[2]


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("curl -s http://169.254.169.254/", "shell.binary"),
        ("curl -s http://169.254.169.254/ ; cat /var/run/secrets/kubernetes.io/serviceaccount/token", "shell.syntax"),
        ("cat /var/run/secrets/kubernetes.io/serviceaccount/token", "path.outside"),
    ],
)
def test_no_shell_over_http_reaches_the_metadata_address_or_the_token_of_a_pod(
    server: HttpChild, command: str, rule: str
) -> None:
    params = {"name": "run_shell", "arguments": {"command": command}, "_meta": META}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    status, answer = call(server, body=message, name="run_shell")
    assert status == 200
    assert json.loads(answer.partition("\r\n\r\n")[2])["result"]["structuredContent"]["rule"] == rule


def test_nothing_is_written_per_request_and_standard_output_is_empty(ws: Path) -> None:
    with http_child("ops", "--workspace", str(ws)) as child:
        for _ in range(3):
            call(child)
            call(child, "Origin: null")
        child.ask(b"\x16\x03\x01\x02\x00 no HTTP at all")
        assert child.stop() == 128 + signal.SIGTERM
        assert child.process.stdout is not None
        assert child.process.stdout.read() == ""
    assert [line for line in child.said if "HTTP request received" not in line] == [
        f"mcp-ops: listening on {child.url}\n",
        OPEN_TO_ALL,
    ]


class TestTheToken:
    def test_with_a_token_only_those_who_send_it_are_served_and_nothing_is_warned_of(self, ws: Path) -> None:
        with http_child("ops", "--workspace", str(ws), env={"MCP_HTTP_TOKEN": TOKEN}) as child:
            status, text = call(child)
            assert status == 401
            assert "www-authenticate: bearer" in text.lower()
            assert "Authorization: Bearer" in text
            assert call(child, "Authorization: Bearer another-token-of-24-chars")[0] == 401
            assert call(child, f"Authorization: Bearer {TOKEN}")[0] == 200
            assert child.ask(f"GET /nowhere HTTP/1.1\nHost: localhost:{child.port}")[0] == 401
            assert child.ask(f"GET /health HTTP/1.1\nHost: localhost:{child.port}")[0] == 200
            assert call(child, f"Authorization: Bearer {TOKEN}", "Origin: null")[0] == 403
            child.stop()
        assert child.said == [f"mcp-ops: listening on {child.url}\n"]

    def test_a_server_that_holds_credentials_says_that_whoever_calls_it_uses_them(self, ws: Path) -> None:
        with http_child("ops", "--workspace", str(ws), "--kubeconfig", "/nowhere/config") as child:
            child.stop()
        assert "may call it and so use the credentials of a kubeconfig; to ask" in "".join(child.said)


class TestTheAddress:
    @pytest.mark.covers("D13")
    def test_the_port_comes_from_the_environment_unless_a_flag_names_it(self, ws: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with http_child("ops", "--workspace", str(ws), env={"MCP_HTTP_PORT": str(port)}, flags=()) as child:
            assert child.port == port
            taken = {"MCP_HTTP_PORT": str(port)}
            with http_child("ops", "--workspace", str(ws), env=taken, flags=("--port", "0")) as other:
                assert other.port != port

    def test_it_listens_on_loopback_only(self, server: HttpChild) -> None:
        tables = [Path(f"/proc/{server.process.pid}/net/{name}") for name in ("tcp", "tcp6")]
        rows = [row.split() for table in tables if table.exists() for row in table.read_text().splitlines()[1:]]
        mine = {row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{server.port:04X}")}
        assert mine == {f"0100007F:{server.port:04X}"}

    def test_the_loopback_of_ipv6_is_served_too(self, ws: Path) -> None:
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError as error:
            pytest.skip(f"this machine has no IPv6 loopback: {error}")
        with http_child("ops", "--workspace", str(ws), flags=("--port", "0", "--host", "::1")) as child:
            names = asyncio.run(names_of(child.url))
            assert child.url == f"http://[::1]:{child.port}/mcp"
        assert "read_file" in names

    @pytest.mark.parametrize(
        ("words", "env", "said"),
        [
            (["--http", "--host", "0.0.0.0"], {}, "the address '0.0.0.0' is not allowed: whoever reaches this server"),
            (["--http", "--host", "192.0.2.1"], {}, "the address '192.0.2.1' is not allowed"),
            (["--http", "--host", "localhost.evil.example"], {}, "is not allowed"),
            (["--http", "--port", "65536"], {}, "--port is '65536', which is no port; write a number from 1 to 65535"),
            (["--http", "--port", "-1"], {}, "--port is '-1', which is no port"),
            (["--http", "--port", "٣٣"], {}, "which is no port"),
            (["--http"], {"MCP_HTTP_PORT": "http"}, "MCP_HTTP_PORT is 'http', which is no port"),
            (["--http"], {"MCP_HTTP_PORT": ""}, "MCP_HTTP_PORT is '', which is no port"),
            (["--http", "--port", "{taken}"], {}, "is in use; name another one, or 0 for a free one"),
            (["--http", "--port", "0"], {"MCP_HTTP_TOKEN": "short"}, "MCP_HTTP_TOKEN: a bearer token has at least 16"),
            (["--port", "3333"], {}, "--port and --host are for --http"),
            (["--host", "127.0.0.1"], {}, "--port and --host are for --http"),
        ],
    )
    def test_what_cannot_be_listened_on_is_one_sentence_and_exit_2(
        self,
        words: list[str],
        env: dict[str, str],
        said: str,
        ws: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = str(listener.getsockname()[1])
            assert main(["serve", "ops", "--workspace", str(ws), *(w.replace("{taken}", port) for w in words)]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert said in captured.err
        assert captured.err.count("\n") == 1


async def names_of(url: str) -> list[str]:
    async with asyncio.timeout(SECONDS), Client(streamable_http_client(url)) as client:
        return [tool.name for tool in (await client.list_tools()).tools]


class TestItsEnd:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    @pytest.mark.parametrize("mode", ["auto", "legacy"])
    async def test_a_signal_ends_the_server_and_the_programs_of_calls_that_run(
        self, ws: Path, tmp_path: Path, number: int, mode: Any
    ) -> None:
        running = tmp_path / "running"
        programs = tmp_path / "programs"
        programs.mkdir()
        kubectl = programs / "kubectl"
        kubectl.write_text(f"#!/bin/sh\nsleep 600 &\necho $$ $! > {running}.new\nmv {running}.new {running}\nwait\n")
        kubectl.chmod(0o755)
        config = tmp_path / "config"
        config.write_text("apiVersion: v1\nkind: Config\ncurrent-context: demo\n")
        path = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        words = ("ops", "--workspace", str(ws), "--kubeconfig", str(config))
        with http_child(*words, env=path) as child:
            asking = asyncio.create_task(ask_for_pods(child.url, mode))
            await asyncio.to_thread(wait_until, running.exists)
            status = await asyncio.to_thread(child.stop, number)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        assert status == 128 + number
        for pid in running.read_text().split():
            wait_until(partial(has_ended, int(pid)))
        assert "Traceback" not in "".join(child.said)


async def ask_for_pods(url: str, mode: Any) -> None:
    async with Client(url, mode=mode) as client:
        await client.call_tool("kubectl_get", {"resource": "pods"})


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def has_ended(pid: int) -> bool:
    """Whether a process is gone; one that was killed and that nobody has collected yet is."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True
