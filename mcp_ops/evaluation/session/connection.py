"""Connecting to a server within a deadline, with one sentence when that does not work."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mcp_types
from mcp import Client
from mcp.server import MCPServer
from mcp.server.lowlevel import Server
from mcp_types.version import LATEST_MODERN_VERSION

from mcp_ops.evaluation.session.asked import Asked, note_requests, roots_of
from mcp_ops.evaluation.session.http import HttpServer
from mcp_ops.evaluation.session.listing import read_tools
from mcp_ops.evaluation.session.process import ChildServer
from mcp_ops.evaluation.session.replies import is_closed
from mcp_ops.evaluation.session.stdio import StdioServer
from mcp_ops.gate import AuditRecord
from mcp_ops.text import one_line

START_SECONDS = 30.0
"""How long a server may take to start, answer the handshake and list its tools."""


class ServerStartError(Exception):
    """A server did not start. The message is one sentence."""


@dataclass(frozen=True)
class ServerTarget:
    """A server that can be connected to."""

    name: str
    server: Server[Any] | MCPServer | StdioServer | HttpServer
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
    seen: bool = False
    """A witness of every run sees all that it can change."""
    watched: bool = True
    """It was told of the workspace, where a witness looks."""
    roots: Path | None = None
    """The folder that it is told when it asks for roots; None refuses."""


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
    on_asked: Callable[[Asked], None] = lambda _: None
    """Told of everything that the server asks of its client."""


@asynccontextmanager
async def connected(
    targets: Sequence[ServerTarget], *, mode: str = "auto", start_seconds: float = START_SECONDS
) -> AsyncIterator[list[Connection]]:
    """Connect to servers in order; when the block ends, close them in reverse.

    Sampling, roots and elicitation are neither announced nor answered; roots are, for a target that was granted them.

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
    client = Client(
        server.connect() if isinstance(server, StdioServer | HttpServer) else server,
        mode=mode,
        list_roots_callback=roots_of(target.roots) if target.roots is not None else None,
        cache=None,
    )
    async with asyncio.timeout(seconds):
        await stack.enter_async_context(client)
        tools = target.tools if target.tools is not None else await read_tools(client.session)
    connection = Connection(
        target.name,
        client,
        tools,
        own=target.own,
        denied_pattern=target.denied_pattern,
        audit=target.audit,
        on_a_wire=isinstance(server, ChildServer),
    )
    # Whom it tells is set later, by who uses the connection.
    note_requests(client.session, lambda asked: connection.on_asked(asked))  # noqa: PLW0108
    return connection


def _reason(error: BaseException, server: object, seconds: float) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    words = one_line(str(error), 300) or type(error).__name__
    if isinstance(error, TimeoutError):
        words = f"it gave no answer within {seconds:g} s"
    elif isinstance(error, FileNotFoundError | PermissionError):
        words = f"{one_line(str(error.filename), 200)}: {(error.strerror or '').lower()}"
    if not isinstance(server, ChildServer):
        return words
    if server.exit_code is not None and is_closed(error):
        words = f"exit {server.exit_code}" if server.exit_code >= 0 else f"killed by signal {-server.exit_code}"
    if isinstance(server, StdioServer) and server.stray:
        words += f"; it wrote to standard output what is no message: {server.stray[0]!r}"
    return f"{words}: {server.last_words}" if server.last_words else words
