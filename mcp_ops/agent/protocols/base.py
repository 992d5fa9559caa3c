"""What a protocol is to the graph: it makes a question of the turns so far, and a turn of the reply."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mcp_ops.agent.turns import Exchange
from mcp_ops.llm.base import Message, Reply


@dataclass(frozen=True)
class Answered:
    """A reply, and how it was read."""

    reply: Reply
    exchange: Exchange


class Question(Protocol):
    """One question to the model, ready to be asked."""

    @property
    def messages(self) -> Sequence[Message]:
        """The question as a person reads it: all that the model is told."""
        ...

    @property
    def dropped(self) -> int:
        """How many older observations did not fit the budget."""
        ...

    async def ask(self) -> Answered:
        """Ask it.

        Raises:
            ModelError: No usable reply came back.
        """
        ...


class TurnProtocol(Protocol):
    """A way to ask a model for a turn."""

    def question(self, task: str, history: Sequence[Exchange], *, last: str | None = None) -> Question:
        """Return the next question.

        Args:
            task: What the user wants.
            history: All turns so far.
            last: When no tool can be called any more, the sentence that tells the model so.
        """
        ...
