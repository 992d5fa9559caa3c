"""Sending one call to a server, and what keeps a foreign server's reply from being taken."""

import asyncio
import json

from mcp.client import ClientRequestContext
from mcp.client.session import ClientSession
from mcp_types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ErrorData,
    InputRequiredResult,
    InputResponses,
    Tool,
)
from pydantic import TypeAdapter

from mcp_ops.evaluation.session.asked import NotGranted
from mcp_ops.evaluation.session.connection import Connection
from mcp_ops.evaluation.session.replies import Answer, failed
from mcp_ops.evaluation.session.rules import SERVER_ERROR, SERVER_TOO_LARGE
from mcp_ops.evaluation.session.schemas import schema_fault

MAX_RESULT_BYTES = 1 << 20
"""Most bytes of a foreign server's result, as JSON."""
MAX_ROUNDS = 10
"""How often a server may ask for more, or for patience, before it sends a result."""

_PATIENCE_SECONDS = 0.05
_REPLY: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(CallToolResult | InputRequiredResult)


async def send_call(connection: Connection, tool: str, args: dict[str, object]) -> CallToolResult:
    """Call a tool. The SDK's own `call_tool` would list the tools again, and run the patterns of their schemas.

    Raises:
        NotGranted: The server asks for what it was not granted.
        MCPError: The server sent an error, or the connection ended.
        ValueError: The reply is none, or no result came after `MAX_ROUNDS`.
    """
    session = connection.client.session
    if connection.own:
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=args))
        return await session.send_request(request, CallToolResult)
    responses: InputResponses | None = None
    state: str | None = None
    for _ in range(MAX_ROUNDS):
        params = CallToolRequestParams(name=tool, arguments=args, input_responses=responses, request_state=state)
        reply = await session.send_request(CallToolRequest(params=params), _REPLY)
        if isinstance(reply, CallToolResult):
            return reply
        responses, state = await _granted(session, reply), reply.request_state
        if responses is None:
            await asyncio.sleep(_PATIENCE_SECONDS)
    raise ValueError(f"it asked for more {MAX_ROUNDS} times")


async def _granted(session: ClientSession, reply: InputRequiredResult) -> InputResponses | None:
    """Return the answers to what a server asks for in place of a result; None when it only asks to come again."""
    responses: InputResponses = {}
    for key, request in (reply.input_requests or {}).items():
        response = await session.dispatch_input_request(ClientRequestContext(session=session, request_id=key), request)
        if isinstance(response, ErrorData):
            raise NotGranted(request.method)
        responses[key] = response
    return responses or None


def untaken(server: str, tool: Tool, reply: CallToolResult) -> Answer | None:
    """Return the answer to a call whose reply is too large or not what its tool's own schema says, else None."""
    if _size(reply) > MAX_RESULT_BYTES:
        return failed(SERVER_TOO_LARGE, f"server {server!r} sent a result of more than {MAX_RESULT_BYTES} bytes")
    if reply.is_error or tool.output_schema is None:
        return None
    structured = reply.structured_content
    if structured is None and "structured_content" not in reply.model_fields_set:
        fault: str | None = "is missing, and the tool has an output schema"
    else:
        fault = schema_fault(tool.output_schema, structured)
    if fault is None:
        return None
    return failed(SERVER_ERROR, f"server {server!r} sent no usable reply: its structured content {fault}")


def _size(reply: CallToolResult) -> int:
    """Return the length of a reply as JSON, in bytes."""
    plain = reply.model_dump(by_alias=True, exclude_none=True)
    return len(json.dumps(plain, ensure_ascii=False, default=str).encode("utf-8", "replace"))
