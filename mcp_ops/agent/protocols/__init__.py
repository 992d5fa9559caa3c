"""How the agent speaks with its model: as JSON in plain text, or with the provider's own tool calls.

Each protocol is an adapter with the one interface of `base.py`; the graph knows no more than that.
"""

from collections.abc import Sequence

from mcp_ops.agent.protocols.base import TurnProtocol
from mcp_ops.agent.protocols.json_text import JsonText
from mcp_ops.agent.protocols.native import NativeCalls
from mcp_ops.agent.session import ToolInfo
from mcp_ops.llm.base import Model, NativeModel

__all__ = ["TurnProtocol", "protocol_for"]


def protocol_for(model: Model | NativeModel, tools: Sequence[ToolInfo], context: Sequence[str] = ()) -> TurnProtocol:
    """Return the protocol that a model speaks, with the tools and the further data of one run."""
    if isinstance(model, NativeModel):
        return NativeCalls(model, tools, context)
    return JsonText(model, tools, context)
