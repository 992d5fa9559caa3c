"""How a refusal is said where MCP has errors and no results: for resources and prompts."""

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from mcp_ops.gate.reply import Hide, Result, refusal
from mcp_ops.gate.rules import RESOURCE_RULES, Rule, State
from mcp_ops.gate.tool import MAX_REPLY_BYTES


def failure(result: Result, rule: Rule, hide: Hide) -> MCPError:
    """Return a stopped result as an MCP error: the text of a reply as its message, its structured content as data."""
    message, structured = refusal(result, rule, MAX_REPLY_BYTES, hide)
    asked_wrongly = result.state is State.DENIED or rule in RESOURCE_RULES
    return MCPError(INVALID_PARAMS if asked_wrongly else INTERNAL_ERROR, message, structured)
