"""The person of a line, who answers what the line's `confirm` says."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from mcp_ops.agent.policies.confirmation import Ask, Confirmation, Decision, own_writes_declined
from mcp_ops.evaluation.line.call_pattern import CallPattern
from mcp_ops.evaluation.line.confirm_spec import ConfirmEntry, ScriptedAnswer
from mcp_ops.evaluation.matching.fitting import call_mismatch
from mcp_ops.evaluation.matching.work import Work
from mcp_ops.evaluation.observed import CallRecord
from mcp_ops.text import one_line


class Misfit(NamedTuple):
    """A question or an entry that has no other half."""

    path: str
    """`confirm[1]`."""
    sentence: str


class ScriptedPerson:
    """Answers one question after the other as a line says. A question that fits no entry is answered no, and noted.

    Args:
        confirm: One word for every question, or the entries in order.
    """

    def __init__(self, confirm: Literal["yes", "no"] | Sequence[ConfirmEntry]) -> None:
        self._word = confirm if isinstance(confirm, str) else None
        self._entries = () if isinstance(confirm, str) else tuple(confirm)
        self._questions = 0
        self._unexpected: list[Misfit] = []

    async def __call__(self, asked: Ask) -> Decision:
        """Answer a question."""
        if self._word is not None:
            return Decision(self._word == "yes", "script")
        number, self._questions = self._questions, self._questions + 1
        about = f"question {number + 1} is about {one_line(asked.tool, 60)} in call {asked.call + 1}"
        if number >= len(self._entries):
            return self._unfit(number, f"{about}, and the line has no answer to it")
        entry = self._entries[number]
        if isinstance(entry, ScriptedAnswer):
            pattern = CallPattern(**entry.model_dump(include={"tool", "args"}, exclude_unset=True), state="any")
            call = CallRecord(asked.call, 0, asked.tool, asked.server, asked.arguments, "executed")
            if (misfit := call_mismatch(pattern, call, Work())) is not None:
                where = ".".join(map(str, misfit.mismatch.path))
                return self._unfit(number, f"{about}, which does not fit the entry's {where}")
            entry = entry.answer
        return Decision(entry == "yes", "script", "the input ended" if entry == "eof" else "")

    def misfits(self) -> Iterator[Misfit]:
        """Yield the questions that the line did not expect, and the entries that nobody asked for."""
        yield from self._unexpected
        for number in range(self._questions, len(self._entries)):
            yield Misfit(f"confirm[{number}]", f"confirm[{number}] was never asked for: nothing waited for an answer")

    def _unfit(self, number: int, sentence: str) -> Decision:
        self._unexpected.append(Misfit(f"confirm[{number}]", sentence))
        return Decision(yes=False, by="script", why="the line has no answer to it")


def person_of(confirm: Literal["yes", "no"] | Sequence[ConfirmEntry] | None) -> ScriptedPerson | Confirmation:
    """Return who is asked in a run of a line. Without `confirm` nobody is there."""
    return own_writes_declined if confirm is None else ScriptedPerson(confirm)
