"""MockLLM: a model that says what a script says, and refers to what really came back."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mcp_ops.llm.base import Message, ModelError, Reply
from mcp_ops.llm.references import BrokenReference, NotFound, PastCall, resolve

__all__ = ["MockLLM", "PastCall", "ScriptError"]


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
        if not self.unused:
            raise ScriptError(
                f"the mock script ends after turn {self._next} and the agent asked for another: "
                "add that reply, or end the script with a finish"
            )
        entry = self._turns[self._next]
        self._next += 1
        text = str(entry["raw"]) if "raw" in entry else json.dumps(self._filled(entry, messages), ensure_ascii=False)
        return Reply(text, model=self.name, finish_reason="stop")

    def _filled(self, entry: Mapping[str, Any], messages: Sequence[Message]) -> Any:
        def shown() -> list[str]:
            # The model's own earlier words prove nothing about what the agent showed it.
            return [message.content for message in messages if message.role != "assistant"]

        try:
            return resolve(entry, self._calls(), shown)
        except (NotFound, BrokenReference) as error:
            raise ScriptError(f"turn {self._next} of the mock script: {error}") from None
