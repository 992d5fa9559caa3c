"""Where each tool's name leads, when several servers list tools."""

from collections import Counter
from collections.abc import Mapping, Sequence

from mcp_types import Tool

from mcp_ops.evaluation.session.connection import Connection
from mcp_ops.text import one_line


def routes(connections: Sequence[Connection]) -> Mapping[str, tuple[Connection, Tool]]:
    """Return what each name leads to.

    A name that two servers list becomes `server.tool` for both. So does a name that is spelled like such a one: no
    server gets a call that was meant for another.

    Args:
        connections: Connected servers.

    Raises:
        ValueError: A server lists a name twice, or a dot in a server's name makes two tools one.
    """
    listed = [(connection, tool) for connection in connections for tool in connection.tools]
    times = Counter(tool.name for _, tool in listed)
    names = [_full(*each) if times[each[1].name] > 1 else each[1].name for each in listed]
    while doubled := {name for name, count in Counter(names).items() if count > 1}:
        longer = [_full(*each) if name in doubled else name for name, each in zip(names, listed, strict=True)]
        if longer == names:
            raise ValueError(f"two tools come to the name {one_line(min(doubled), 60)}")
        names = longer
    return dict(zip(names, listed, strict=True))


def _full(connection: Connection, tool: Tool) -> str:
    return f"{connection.name}.{tool.name}"
