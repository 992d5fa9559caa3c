"""Whether servers still list the tools that they listed first."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mcp_ops.evaluation.session.connection import Connection
from mcp_ops.evaluation.session.listing import ToolPins, listing_differences, read_tools
from mcp_ops.evaluation.session.loading import described

RELIST_SECONDS = 10.0
"""How long a server may take to list its tools once more."""


class Change(NamedTuple):
    """A server whose list of tools is not what it was."""

    sentence: str
    differences: Sequence[str]
    """One line each: tool, field, old value, new value."""


def changes_since_pinned(connections: Sequence[Connection], pins: ToolPins, workspace: Path) -> list[Change]:
    """Compare what foreign servers list now with the first list that this process saw under their names.

    Args:
        connections: Servers that were just connected to.
        pins: The first lists; a server that is not among them is added.
        workspace: The copy that they work in.
    """
    return [
        Change(f"server {connection.name!r} lists other tools than when it was first started here: {lines[0]}", lines)
        for connection in connections
        if not connection.own and (lines := pins.differences(connection.name, connection.tools, workspace))
    ]


async def changes_during_run(connections: Sequence[Connection]) -> list[Change]:
    """List the tools of foreign servers once more and compare. A server that died is left out."""
    changes = []
    for connection in connections:
        if connection.own or connection.died_in is not None:
            continue
        try:
            async with asyncio.timeout(RELIST_SECONDS):
                tools = await read_tools(connection.client.session)
        except Exception as error:
            sentence = f"server {connection.name!r} did not list its tools again after the run: {described(error)}"
            changes.append(Change(sentence, ()))
            continue
        if lines := listing_differences(connection.tools, tools):
            changes.append(Change(f"server {connection.name!r} changed its tools during the run: {lines[0]}", lines))
    return changes
