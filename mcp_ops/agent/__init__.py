"""The ops agent: an MCP client and nothing else.

Importing this package does not import LangGraph; the first run does.
"""

from mcp_ops.agent.graph import MAX_STEPS, run_agent, run_command_line_agent
from mcp_ops.agent.protocols.json_schema import TURN_SCHEMA, turn_schema
from mcp_ops.agent.protocols.json_turn import parse_turn
from mcp_ops.agent.session import Agent, AgentInput, AgentOutput, Observation, ToolHints, ToolInfo, ToolSession
from mcp_ops.agent.turns import Malformed, RequestedCall, Turn

__all__ = [
    "MAX_STEPS",
    "TURN_SCHEMA",
    "Agent",
    "AgentInput",
    "AgentOutput",
    "Malformed",
    "Observation",
    "RequestedCall",
    "ToolHints",
    "ToolInfo",
    "ToolSession",
    "Turn",
    "parse_turn",
    "run_agent",
    "run_command_line_agent",
    "turn_schema",
]
