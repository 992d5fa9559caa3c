"""What an agent needs of a model, and nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True)
class Message:
    """One message of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True)
class Reply:
    """What a model said, and what it cost."""

    text: str
    model: str = ""
    """The model that answered, as the provider names it."""
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    usd: float | None = None
    """Price in US dollars, when the provider says it."""
    attempts: int = 1
    """How many requests it took."""


class Model(Protocol):
    """A chat model."""

    @property
    def name(self) -> str:
        """How reports name it."""
        ...

    async def complete(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> Reply:
        """Answer a conversation.

        Args:
            messages: The conversation, oldest first.
            schema: JSON Schema that the reply should follow; a model may ignore it.

        Raises:
            ModelError: No usable reply came back.
        """
        ...


@dataclass(frozen=True)
class ToolSpec:
    """A tool that a model with native tool calls may call."""

    name: str
    """As the agent knows it. A provider that does not take it is sent another name; replies name this one."""
    description: str
    input_schema: Mapping[str, Any]


@dataclass(frozen=True)
class NativeCall:
    """A call as a model asked for it."""

    id: str
    """Names the call towards the provider; unique in its reply."""
    name: str
    arguments: Mapping[str, Any] | None
    """None when they cannot be read."""
    unreadable: str = ""
    """Why not, as the rest of a sentence that begins with "the arguments"."""
    written: str = ""
    """What the model wrote in their place."""


@dataclass(frozen=True)
class UserTurn:
    """Words of the user, or of the agent on the user's behalf."""

    text: str


@dataclass(frozen=True)
class ModelTurn:
    """An earlier reply of the model."""

    text: str
    calls: tuple[NativeCall, ...] = ()
    kept: tuple[Mapping[str, Any], ...] = ()
    """`NativeReply.kept` of that reply."""


@dataclass(frozen=True)
class CallResult:
    """What came back from one call."""

    id: str
    name: str
    text: str
    is_error: bool = False


@dataclass(frozen=True)
class ResultsTurn:
    """What came back from all calls of the `ModelTurn` before, in their order."""

    results: tuple[CallResult, ...]
    note: str = ""
    """What the agent adds, after the results."""


ConversationTurn = UserTurn | ModelTurn | ResultsTurn
"""One step of a conversation with native tool calls."""


@dataclass(frozen=True)
class NativeReply(Reply):
    """What a model said and asked for, and what it cost."""

    calls: tuple[NativeCall, ...] = ()
    cut: bool = False
    """The reply ran into a limit of length."""
    kept: tuple[Mapping[str, Any], ...] = ()
    """Parts in the provider's own form, such as signed reasoning, that it wants to see again unchanged."""


@runtime_checkable
class NativeModel(Protocol):
    """A chat model whose provider takes tools and returns calls of them."""

    @property
    def name(self) -> str:
        """How reports name it."""
        ...

    async def converse(self, system: str, turns: Sequence[ConversationTurn], tools: Sequence[ToolSpec]) -> NativeReply:
        """Answer a conversation.

        Args:
            system: The system message.
            turns: The conversation, oldest first.
            tools: What may be called; without any the model can only answer.

        Raises:
            ModelError: No usable reply came back.
        """
        ...


ModelErrorKind = Literal["auth", "payment", "rate_limit", "server", "timeout", "network", "refused", "empty", "script"]
"""Why there is no reply. `rate_limit`, `server`, `timeout` and `network` are infrastructure: not the model's fault."""


class ModelError(Exception):
    """No usable reply. The message is one sentence without any secret in it."""

    def __init__(self, kind: ModelErrorKind, message: str, *, attempts: int = 1, field: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.attempts = attempts
        self.field = field
        """The field of the request that the provider names as the wrong one."""

    @property
    def infrastructure(self) -> bool:
        """Whether the failure says nothing about the model."""
        return self.kind in ("rate_limit", "server", "timeout", "network")
