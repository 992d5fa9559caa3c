"""From tools to an MCP server, on the SDK's low-level server: only there are raw arguments seen."""

from collections.abc import Sequence
from typing import Any, TypeVar

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams

from mcp_ops import __version__
from mcp_ops.gate.choke import Audit, call
from mcp_ops.gate.rules import Refuse
from mcp_ops.gate.tool import Tool

C = TypeVar("C")


def build_server(
    name: str,
    tools: Sequence[Tool[Any, C, Any]],
    context: C,
    *,
    instructions: str,
    audit: Audit | None = None,
    refuse: Refuse | None = None,
) -> Server[Any]:
    """Return a server that lists `tools` and answers each call through the gate.

    Args:
        name: The server's name, as clients see it.
        tools: What it offers.
        context: Handed to every guard and runner.
        instructions: What clients may show to a model.
        audit: Receives the server's own record of each call.
        refuse: How rules say no; by default every rule is on.

    Raises:
        ValueError: Two tools have one name.
    """
    by_name = {tool.name: tool for tool in tools}
    if len(by_name) != len(tools):
        raise ValueError(f"server {name!r}: two tools have one name")
    listing = ListToolsResult(tools=[tool.definition for tool in tools])
    say_no = Refuse() if refuse is None else refuse

    async def on_list_tools(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
        return listing

    async def on_call_tool(_: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        return await call(by_name, params.name, params.arguments, context, refuse=say_no, audit=audit)

    return Server(
        name,
        version=__version__,
        instructions=instructions,
        on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
    )
