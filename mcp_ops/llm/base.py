"""What an agent needs of a model, and nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

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


ModelErrorKind = Literal["auth", "payment", "rate_limit", "server", "timeout", "network", "refused", "empty", "script"]
"""Why there is no reply. `rate_limit`, `server`, `timeout` and `network` are infrastructure: not the model's fault."""


class ModelError(Exception):
    """No usable reply. The message is one sentence without any secret in it."""

    def __init__(self, kind: ModelErrorKind, message: str, *, attempts: int = 1) -> None:
        super().__init__(message)
        self.kind = kind
        self.attempts = attempts

    @property
    def infrastructure(self) -> bool:
        """Whether the failure says nothing about the model."""
        return self.kind in ("rate_limit", "server", "timeout", "network")
