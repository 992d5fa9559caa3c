"""The choke point: a thing is registered with its guard or not at all, and all that is asked takes one road."""

from mcp_ops.gate.choke import Audit, AuditRecord, call, unknown_tool
from mcp_ops.gate.prompt import Prompt
from mcp_ops.gate.reply import DENIED_PREFIX, Hide, Reading, Result, executed, read_reply, stopped, to_mcp
from mcp_ops.gate.resource import Resource
from mcp_ops.gate.rules import (
    ARGS_INVALID,
    GATE_RULES,
    GUARD_ERROR,
    PROMPT_UNKNOWN,
    RESOURCE_RULES,
    RESOURCE_UNKNOWN,
    TIME_LIMIT,
    TOOL_ERROR,
    TOOL_UNKNOWN,
    Denied,
    Refuse,
    Rule,
    State,
    can_be_switched_off,
)
from mcp_ops.gate.server import build_server
from mcp_ops.gate.tool import MAX_REPLY_BYTES, Arguments, Guarded, NoArguments, Output, Tool, ToolClass

__all__ = [
    "ARGS_INVALID",
    "DENIED_PREFIX",
    "GATE_RULES",
    "GUARD_ERROR",
    "MAX_REPLY_BYTES",
    "PROMPT_UNKNOWN",
    "RESOURCE_RULES",
    "RESOURCE_UNKNOWN",
    "TIME_LIMIT",
    "TOOL_ERROR",
    "TOOL_UNKNOWN",
    "Arguments",
    "Audit",
    "AuditRecord",
    "Denied",
    "Guarded",
    "Hide",
    "NoArguments",
    "Output",
    "Prompt",
    "Reading",
    "Refuse",
    "Resource",
    "Result",
    "Rule",
    "State",
    "Tool",
    "ToolClass",
    "build_server",
    "call",
    "can_be_switched_off",
    "executed",
    "read_reply",
    "stopped",
    "to_mcp",
    "unknown_tool",
]
