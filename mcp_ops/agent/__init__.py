"""The ops agent: an MCP client and nothing else.

Importing this package does not import LangGraph; the first run does.
"""

from mcp_ops.agent.graph import MAX_STEPS, run_agent
from mcp_ops.agent.protocol import Malformed, RequestedCall, Turn, parse_turn
from mcp_ops.agent.schema import TURN_SCHEMA, turn_schema
from mcp_ops.agent.session import Agent, AgentInput, AgentOutput, Observation, ToolInfo, ToolSession

__all__ = [
    "MAX_STEPS",
    "TURN_SCHEMA",
    "Agent",
    "AgentInput",
    "AgentOutput",
    "Malformed",
    "Observation",
    "RequestedCall",
    "ToolInfo",
    "ToolSession",
    "Turn",
    "parse_turn",
    "run_agent",
    "turn_schema",
]
