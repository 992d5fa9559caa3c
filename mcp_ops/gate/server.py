"""From tools, resources and prompts to an MCP server, on the SDK's low-level server: only it sees raw arguments."""

from collections.abc import Sequence
from typing import Any, TypeVar

import mcp_types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
)

from mcp_ops import __version__
from mcp_ops.gate.choke import Audit, call
from mcp_ops.gate.prompt import Prompt, get_prompt
from mcp_ops.gate.reply import Hide, nothing_to_hide
from mcp_ops.gate.resource import Resource, list_resources, list_templates, read_resource
from mcp_ops.gate.rules import Refuse
from mcp_ops.gate.tool import Tool

C = TypeVar("C")

_Request = ServerRequestContext[Any]
_Paging = PaginatedRequestParams | None


def build_server(
    name: str,
    tools: Sequence[Tool[Any, C, Any]],
    context: C,
    *,
    instructions: str,
    audit: Audit | None = None,
    refuse: Refuse | None = None,
    resources: Sequence[Resource[Any, C, Any]] = (),
    prompts: Sequence[Prompt[Any, C, Any]] = (),
    hide: Hide = nothing_to_hide,
) -> Server[Any]:
    """Return a server that lists `tools` and answers each call through the gate.

    Args:
        name: The server's name, as clients see it.
        tools: What it offers.
        context: Handed to every guard and runner.
        instructions: What clients may show to a model.
        audit: Receives the server's own record of each call.
        refuse: How rules say no; by default every rule is on.
        resources: What it offers for reading by address.
        prompts: What it offers as texts for a model.
        hide: Takes the server's own credentials out of everything that is sent.

    Raises:
        ValueError: Two tools have one name.
    """
    by_name = {tool.name: tool for tool in tools}
    if len(by_name) != len(tools):
        raise ValueError(f"server {name!r}: two tools have one name")
    say_no = Refuse() if refuse is None else refuse
    listing = ListToolsResult(tools=[_listed(tool, say_no) for tool in tools])
    prompt_by_name = {prompt.name: prompt for prompt in prompts}

    async def on_list_tools(_: _Request, __: _Paging) -> ListToolsResult:
        return listing

    async def on_call_tool(_: _Request, params: CallToolRequestParams) -> CallToolResult:
        return await call(by_name, params.name, params.arguments, context, refuse=say_no, audit=audit, hide=hide)

    async def on_list_resources(_: _Request, __: _Paging) -> ListResourcesResult:
        return list_resources(resources, context)

    async def on_list_resource_templates(_: _Request, __: _Paging) -> ListResourceTemplatesResult:
        return list_templates(resources)

    async def on_read_resource(_: _Request, params: ReadResourceRequestParams) -> ReadResourceResult:
        return await read_resource(resources, params.uri, context, refuse=say_no, hide=hide)

    async def on_list_prompts(_: _Request, __: _Paging) -> ListPromptsResult:
        return ListPromptsResult(prompts=[prompt.definition for prompt in prompts])

    async def on_get_prompt(_: _Request, params: GetPromptRequestParams) -> GetPromptResult:
        return await get_prompt(prompt_by_name, params.name, params.arguments, context, refuse=say_no, hide=hide)

    return Server(
        name,
        version=__version__,
        instructions=instructions,
        on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
        on_list_resources=on_list_resources if resources else None,
        on_list_resource_templates=on_list_resource_templates if resources else None,
        on_read_resource=on_read_resource if resources else None,
        on_list_prompts=on_list_prompts if prompts else None,
        on_get_prompt=on_get_prompt if prompts else None,
    )


def _listed(tool: Tool[Any, Any, Any], refuse: Refuse) -> mcp_types.Tool:
    """Return a tool as it is listed. A rehearsal promises no form: a call that did not run has no data."""
    return tool.definition.model_copy(update={"output_schema": None}) if refuse.rehearse else tool.definition
