"""Where each tool's name leads, when several servers list tools."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from mcp_types import Tool

from mcp_ops.agent.session import ToolHints, ToolInfo
from mcp_ops.evaluation.session.connection import Connection
from mcp_ops.text import clean, one_line


def routes(connections: Sequence[Connection]) -> Mapping[str, tuple[Connection, Tool]]:
    """Return what each name leads to.

    A name that two servers list becomes `server.tool` for both. So do names of two servers that a model, or whatever
    makes names fit a provider, takes for one, such as `read-file` and `read_file`, and a name that is spelled like
    `server.tool`: no server gets a call that was meant for another.

    Args:
        connections: Connected servers.

    Raises:
        ValueError: A server lists a name twice, or a dot in a server's name makes two tools one.
    """
    listed = [(connection, tool) for connection in connections for tool in connection.tools]
    servers: dict[str, set[str]] = {}
    for connection, tool in listed:
        servers.setdefault(_look(tool.name), set()).add(connection.name)
    names = [
        _full(*each) if len(servers[_look(each[1].name)]) > 1 or _poses(*each, connections) else each[1].name
        for each in listed
    ]
    while doubled := {name for name, count in Counter(names).items() if count > 1}:
        longer = [_full(*each) if name in doubled else name for name, each in zip(names, listed, strict=True)]
        if longer == names:
            raise ValueError(f"two tools come to the name {one_line(min(doubled), 60)}")
        names = longer
    return dict(zip(names, listed, strict=True))


def tool_info(name: str, connection: Connection, tool: Tool) -> ToolInfo:
    """Return what an agent may know of a tool.

    Args:
        name: What the agent calls it by.
        connection: The server that lists it.
        tool: As it is listed.
    """
    said = tool.annotations
    hints = ToolHints(said.read_only_hint, said.destructive_hint) if said is not None else ToolHints()
    title = tool.title or (said.title if said is not None else None) or ""
    return ToolInfo(
        name,
        tool.description or "",
        tool.input_schema,
        title=title,
        hints=hints,
        server=connection.name,
        own=connection.own,
    )


@lru_cache(maxsize=1024)
def _look(name: str) -> str:
    """Return what is left of a name once it is cleaned and made of letters, digits and underscores."""
    return re.sub(r"[\W_]+", "_", clean(name).casefold())


def _poses(connection: Connection, tool: Tool, connections: Sequence[Connection]) -> bool:
    """Return whether a tool is named as if it were another server's."""
    return any(tool.name.startswith(f"{other.name}.") for other in connections if other is not connection)


def _full(connection: Connection, tool: Tool) -> str:
    return f"{connection.name}.{tool.name}"
