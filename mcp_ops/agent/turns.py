"""What the graph carries from turn to turn, whichever protocol the model speaks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_ops.agent.session import Observation
from mcp_ops.llm.base import NativeReply

MAX_CALLS_A_TURN = 32
"""Most calls that one reply may ask for."""


@dataclass(frozen=True)
class RequestedCall:
    """A call that a model asked for."""

    tool: str
    args: Mapping[str, Any]


@dataclass(frozen=True)
class Turn:
    """A well-formed reply: calls, or an answer, never both."""

    thought: str
    calls: tuple[RequestedCall, ...] = ()
    finish: str | None = None


@dataclass(frozen=True)
class Malformed:
    """A reply that is no turn."""

    reason: str
    """One sentence: what is wrong and what to write instead."""


@dataclass(frozen=True)
class Exchange:
    """One turn: what the model said, how it was read, and what came back."""

    reply: str
    """The model's words, raw. For a native reply its calls stand among them."""
    turn: Turn | Malformed
    observations: tuple[Observation, ...] = ()
    native: NativeReply | None = None
    """The reply of a model with native tool calls as it came, which its provider wants to see again."""
