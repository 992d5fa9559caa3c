"""What an agent may do: list tools and call them. Nothing else of a server reaches it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mcp_ops.llm.base import Model, NativeModel
from mcp_ops.trace.events import Finish, Payload


@dataclass(frozen=True)
class ToolHints:
    """What a server says of the danger of a tool; None where it says nothing."""

    read_only: bool | None = None
    destructive: bool | None = None


@dataclass(frozen=True)
class ToolInfo:
    """A tool as its server listed it."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    title: str = ""
    hints: ToolHints = ToolHints()
    server: str = ""
    """Name of the server that lists it."""
    own: bool = False
    """The server ships here: its hints are its gate's own class of the tool."""


@dataclass(frozen=True)
class Observation:
    """What came back from a call, cleaned: the only thing an agent learns of it."""

    call: int
    tool: str
    state: str
    text: str
    """The reply's text."""
    hint: str = ""
    """What the server suggests instead, for a call that did not run."""


class ToolSession(Protocol):
    """A connection to one or several MCP servers that writes the ledger."""

    async def list_tools(self) -> Sequence[ToolInfo]:
        """Return every tool of every server, in the servers' order."""
        ...

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        """Call a tool. Denials, failures and unknown names come back as observations; nothing is raised for them."""
        ...


@dataclass(frozen=True)
class AgentInput:
    """Everything that an agent is given for one run."""

    task: str
    session: ToolSession
    model: Model | NativeModel
    """With native tool calls or without: the agent speaks the protocol that fits it."""
    emit: Callable[[Payload], None]
    """Takes the model events (`LlmRequest`, `LlmResponse`) that the agent writes."""
    max_calls: int = 8
    """After so many calls the model is not asked again, or once more without tools."""
    context: Sequence[str] = ()
    """Further data that the task may need, such as a list of repositories. It stands in the system message, cleaned,
    marked as data, and within a byte budget."""


@dataclass(frozen=True)
class AgentOutput:
    """How an agent's run ended."""

    finish: Finish
    answer: str | None = None
    error: str | None = None
    """One sentence, when `finish` is `error`."""
    infrastructure: bool = False
    """The error is the provider's or the network's, not the model's."""


class Agent(Protocol):
    """An agent: ours, or a user's `module:callable`."""

    async def __call__(self, given: AgentInput) -> AgentOutput:
        """Work on the task."""
        ...
