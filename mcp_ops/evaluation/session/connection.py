"""Connecting to a server within a deadline, with one sentence when that does not work."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import mcp_types
from mcp import Client
from mcp.server import MCPServer
from mcp.server.lowlevel import Server
from mcp_types.version import LATEST_MODERN_VERSION

from mcp_ops.evaluation.session.stdio import StdioServer
from mcp_ops.gate import AuditRecord
from mcp_ops.text import one_line

START_SECONDS = 30.0
"""How long a server may take to start, answer the handshake and list its tools."""
MAX_TOOLS = 1000
"""Most tools that are taken from one server."""

_MAX_PAGES = 100


class ServerStartError(Exception):
    """A server did not start. The message is one sentence."""


@dataclass(frozen=True)
class ServerTarget:
    """A server that can be connected to."""

    name: str
    server: Server[Any] | MCPServer | StdioServer
    own: bool = False
    """It ships here: its replies say their state in their structured content."""
    denied_pattern: Any = None
    """Compiled RE2 pattern, on bytes, by which a denial of a foreign server is recognised."""
    audit: list[AuditRecord] | None = None
    """Where our own server, in this process, writes its own record of the calls."""
    tools: tuple[mcp_types.Tool, ...] | None = None
    """What it lists, when that is known without asking."""
    read_only: bool = False
    """It cannot change anything."""
    watched: bool = True
    """It was told of the workspace, where a witness looks."""


@dataclass
class Connection:
    """A server that was connected to, with the tools that it listed then."""

    name: str
    client: Client
    tools: tuple[mcp_types.Tool, ...]
    own: bool = False
    denied_pattern: Any = None
    audit: list[AuditRecord] | None = None
    on_a_wire: bool = False
    """Messages are written as JSON text."""
    died_in: str | None = None
    """The call in which the server ended, in words."""


@asynccontextmanager
async def connected(
    targets: Sequence[ServerTarget], *, mode: str = "auto", start_seconds: float = START_SECONDS
) -> AsyncIterator[list[Connection]]:
    """Connect to servers in order; when the block ends, close them in reverse.

    Sampling, roots and elicitation are refused: no client here has a callback for them.

    Args:
        targets: What to connect to.
        mode: The protocol's era, as `mcp.Client` takes it.
        start_seconds: How long each server may take until its tools are listed.

    Raises:
        ServerStartError: A server did not start.
    """
    connections: list[Connection] = []
    failure: tuple[ServerTarget, Exception] | None = None
    async with AsyncExitStack() as stack:
        for target in targets:
            try:
                connections.append(await _connect(stack, target, mode, start_seconds))
            except Exception as error:
                failure = target, error
                break
        else:
            yield connections
    # An exception that leaves an open client arrives in groups, and how a server ended is known once it is closed.
    if failure is not None:
        target, cause = failure
        reason = _reason(cause, target.server, start_seconds)
        raise ServerStartError(f"server {target.name!r} did not start: {reason}") from cause


async def _connect(stack: AsyncExitStack, target: ServerTarget, mode: str, seconds: float) -> Connection:
    server = target.server
    if mode == "auto" and target.tools is not None:
        # A server of this process whose tools are known has nothing to tell by a handshake.
        mode = LATEST_MODERN_VERSION
    client = Client(server.connect() if isinstance(server, StdioServer) else server, mode=mode)
    async with asyncio.timeout(seconds):
        await stack.enter_async_context(client)
        tools = target.tools if target.tools is not None else await _list_tools(client)
    return Connection(
        target.name,
        client,
        tools,
        own=target.own,
        denied_pattern=target.denied_pattern,
        audit=target.audit,
        on_a_wire=isinstance(server, StdioServer),
    )


async def _list_tools(client: Client) -> tuple[mcp_types.Tool, ...]:
    tools: list[mcp_types.Tool] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None or len(tools) > MAX_TOOLS:
            break
    if cursor is not None or len(tools) > MAX_TOOLS:
        raise ValueError(f"it lists more than {MAX_TOOLS} tools")
    return tuple(tools)


def _reason(error: BaseException, server: object, seconds: float) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    words = one_line(str(error), 300) or type(error).__name__
    if isinstance(error, TimeoutError):
        words = f"it gave no answer within {seconds:g} s"
    elif isinstance(error, FileNotFoundError | PermissionError):
        words = f"{one_line(str(error.filename), 200)}: {(error.strerror or '').lower()}"
    if not isinstance(server, StdioServer):
        return words
    if server.exit_code is not None and not isinstance(error, TimeoutError):
        words = f"exit {server.exit_code}" if server.exit_code >= 0 else f"killed by signal {-server.exit_code}"
    if server.stray:
        words += f"; it wrote to standard output what is no message: {server.stray[0]!r}"
    return f"{words}: {server.last_words}" if server.last_words else words
