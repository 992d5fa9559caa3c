"""A model that says what a script says, and refers to what really came back."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mcp_ops.llm.base import (
    ConversationTurn,
    Message,
    ModelError,
    ModelTurn,
    NativeCall,
    NativeReply,
    Reply,
    ResultsTurn,
    ToolSpec,
    UserTurn,
)
from mcp_ops.llm.references import BrokenReference, NotFound, PastCall, resolve

__all__ = ["MockLLM", "NativeMockLLM", "PastCall", "ScriptError"]


class ScriptError(ModelError):
    """The script does not fit the run: it ended too early, or a reference found nothing.

    It is the harness's problem, not the agent's.
    """

    def __init__(self, message: str) -> None:
        super().__init__("script", message)


class MockLLM:
    """Replays a script, one entry a turn.

    An entry is what a model would reply, `{"thought", "action" | "actions" | "finish"}`, with references in any string
    inside; or `{"raw": "…"}`, a reply that is taken literally.
    """

    name = "mock"

    def __init__(self, turns: Sequence[Mapping[str, Any]], *, calls: Callable[[], Sequence[PastCall]]) -> None:
        """Take the script and a way to look at the calls so far."""
        self._turns = turns
        self._calls = calls
        self._next = 0

    @property
    def unused(self) -> int:
        """How many entries were not asked for yet."""
        return len(self._turns) - self._next

    async def complete(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> Reply:
        """Return the next entry as a model would write it.

        Raises:
            ScriptError: There is no next entry, or a reference in it finds nothing that the agent showed.
        """
        entry = self._take(lambda: [message.content for message in messages if message.role != "assistant"])
        text = entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False)
        return Reply(text, model=self.name, finish_reason="stop")

    def _take(self, shown: Callable[[], Sequence[str]]) -> Mapping[str, Any] | str:
        """Return the next entry, filled in; a text is a reply to be taken literally.

        Args:
            shown: Returns what the agent showed the model. The model's own earlier words are none of it: they prove
                nothing.
        """
        if not self.unused:
            raise ScriptError(
                f"the mock script ends after turn {self._next} and the agent asked for another: "
                "add that reply, or end the script with a finish"
            )
        entry = self._turns[self._next]
        self._next += 1
        if "raw" in entry:
            return str(entry["raw"])
        try:
            filled: Mapping[str, Any] = resolve(entry, self._calls(), shown)
        except (NotFound, BrokenReference) as error:
            raise ScriptError(f"turn {self._next} of the mock script: {error}") from None
        return filled


class NativeMockLLM(MockLLM):
    """Replays a script as a model with native tool calls would: the thought is text, and so is the finish."""

    async def converse(self, system: str, turns: Sequence[ConversationTurn], tools: Sequence[ToolSpec]) -> NativeReply:
        """Return the next entry as such a model would say it.

        Raises:
            ScriptError: There is no next entry, or a reference in it finds nothing that the agent showed.
        """
        entry = self._take(lambda: [system, *(text for turn in turns for text in _told(turn))])
        if isinstance(entry, str):
            return NativeReply(entry, model=self.name, finish_reason="stop")
        asked = entry.get("actions") or [action for action in [entry.get("action")] if action]
        calls = tuple(
            NativeCall(f"mock-{self._next}-{number}", call["tool"], call.get("args") or {})
            for number, call in enumerate(asked)
        )
        text = (entry.get("thought") if calls else entry.get("finish")) or ""
        return NativeReply(text, model=self.name, finish_reason="tool_calls" if calls else "stop", calls=calls)


def _told(turn: ConversationTurn) -> Sequence[str]:
    match turn:
        case UserTurn(text):
            return [text]
        case ResultsTurn(results, note):
            return [*(result.text for result in results), note]
        case ModelTurn():
            return []
