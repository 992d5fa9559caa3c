"""What the model is told beside the task: what servers say of themselves, and the watch list; all of it is data."""

import asyncio
from collections.abc import Callable, Sequence

from mcp.shared.exceptions import MCPError
from mcp_types import TextResourceContents

from mcp_ops.evaluation.session.connection import Connection
from mcp_ops.evaluation.session.loading import described
from mcp_ops.text import one_line

WATCHLIST = "devops://watchlist"
"""The resource that is read before the first turn, of every server that lists it."""
READ_SECONDS = 15.0
"""How long a server may take to list and to read it."""
_MOST_PAGES = 10


async def context_of(connections: Sequence[Connection], complain: Callable[[str], None]) -> tuple[str, ...]:
    """Return one block for each server's instructions and each watch list, raw.

    Args:
        connections: Connected servers.
        complain: Told in one sentence when a watch list cannot be read; the run goes on without it.
    """
    blocks: list[str] = []
    for connection in connections:
        if instructions := connection.client.instructions:
            blocks.append(f"What server {connection.name} says of itself:\n{instructions}")
        try:
            async with asyncio.timeout(READ_SECONDS):
                watched = await _watchlist(connection)
        except (MCPError, OSError, TimeoutError, ValueError) as error:
            complain(f"{WATCHLIST} of server {connection.name} cannot be read: {one_line(described(error), 300)}")
            continue
        if watched is not None:
            blocks.append(f"The resource {WATCHLIST} of server {connection.name}:\n{watched}")
    return tuple(blocks)


async def _watchlist(connection: Connection) -> str | None:
    if connection.client.server_capabilities.resources is None or not await _lists_it(connection):
        return None
    contents = (await connection.client.read_resource(WATCHLIST)).contents
    return "\n".join(each.text for each in contents if isinstance(each, TextResourceContents))


async def _lists_it(connection: Connection) -> bool:
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await connection.client.list_resources(cursor=cursor)
        if any(str(resource.uri) == WATCHLIST for resource in page.resources):
            return True
        cursor = page.next_cursor
        if cursor is None:
            break
    return False
