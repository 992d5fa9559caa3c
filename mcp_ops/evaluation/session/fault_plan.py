"""The faults of a line at work: which call gets which, and what it makes of the server's answer.

No fault makes a call look as if it had succeeded: `text`, `empty` and `huge` keep the state that the server gave it,
the others are failures.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR

from mcp_ops.evaluation.line.call_pattern import CallPattern
from mcp_ops.evaluation.line.fault_spec import FaultSpec
from mcp_ops.evaluation.matching.describe import show_tool
from mcp_ops.evaluation.matching.fitting import call_fits
from mcp_ops.evaluation.matching.work import Work
from mcp_ops.evaluation.observed import CallRecord
from mcp_ops.evaluation.session.replies import Answer, answer_of_error, answer_without_form, failed
from mcp_ops.evaluation.session.rules import SERVER_ERROR
from mcp_ops.trace.events import ToolCall

HUGE_BYTES = 1024 * 1024
"""Length of the reply that `huge` makes: far beyond every cap between a server and a model."""

_FILLER = "0123456789abcdef" * 4 + "\n"


@dataclass
class Fault:
    """An entry of `faults`, and what became of it in this run."""

    number: int
    """Its place in the line, from 0."""
    spec: FaultSpec
    taken: int = 0
    """How many calls it was meant for so far."""
    applied: bool = False
    passed_over: bool = False
    """A call that fits it had an earlier entry's fault."""

    @property
    def instead_of_the_call(self) -> bool:
        """Whether the server is not asked at all."""
        return self.spec.fault == "error"

    def fits(self, call: CallRecord) -> bool:
        """Return whether a call is one that the entry is for."""
        if self.spec.call not in (None, call.index):
            return False
        return self.spec.tool is None or call_fits(CallPattern(tool=self.spec.tool), call, Work())

    def answer(self, server: str, said: Answer | None = None, *, own: bool = False) -> Answer:
        """Return what comes back in place of what the server said.

        Args:
            server: Its name.
            said: Its own answer; None when it was not asked.
            own: Whether it is one of ours, whose replies have a form of their own.
        """
        self.applied = True
        return replace(self._answer(server, said, own), fault=self.spec.fault)

    def _answer(self, server: str, said: Answer | None, own: bool) -> Answer:
        text = self.spec.text or ""
        match self.spec.fault:
            case "timeout":
                return answer_of_error(TimeoutError(), server)
            case "malformed" if own:
                return answer_without_form(server)
            case "malformed":
                return failed(SERVER_ERROR, f"server {server!r} sent no usable reply: it is no result of a tool call")
            case "text" if said is not None:
                parts = {"append": (said.text, text), "prepend": (text, said.text), "replace": (text,)}
                return replace(said, text="\n".join(part for part in parts[self.spec.where or "append"] if part))
            case "empty" if said is not None:
                return replace(said, text="", hint="", structured=None, exit_code=None)
            case "huge" if said is not None:
                return replace(said, text=_filled(said.text), truncated=False, full_length=None)
            case _:
                return answer_of_error(MCPError(INTERNAL_ERROR, text or "Internal error"), server)

    def why_not_applied(self) -> str:
        """Return one sentence about an entry that changed nothing."""
        wanted = "a call" if self.spec.call is None else f"call {self.spec.call + 1}"
        if self.spec.tool is not None:
            wanted += f" of {show_tool(CallPattern(tool=self.spec.tool))}"
        reason = "no server answered such a call"
        if self.passed_over:
            reason = "an earlier entry took its call"
        elif self.instead_of_the_call:
            reason = "no such call was made to a server"
        return f"faults[{self.number}], {self.spec.fault} in {wanted}, was never applied: {reason}"


def _filled(text: str) -> str:
    """Return a text with lines of filler behind it, at least `HUGE_BYTES` long."""
    missing = HUGE_BYTES - len(text.encode("utf-8", "replace"))
    return text + "\n" + _FILLER * (missing // len(_FILLER) + 1)


class FaultPlan:
    """The faults of one run. Each entry is used up as the calls come in.

    Args:
        specs: The entries of the line, in order.
    """

    def __init__(self, specs: Sequence[FaultSpec] = ()) -> None:
        self._faults = [Fault(number, spec) for number, spec in enumerate(specs)]

    def take(self, asked: ToolCall) -> Fault | None:
        """Return the fault for a call that a server is about to be asked, or None: the first entry that fits."""
        if not self._faults:
            return None
        call = CallRecord(asked.call, asked.turn, asked.tool, asked.server, asked.args, "executed")
        chosen: Fault | None = None
        for fault in self._faults:
            if fault.taken == fault.spec.times or not fault.fits(call):
                continue
            if chosen is None:
                chosen = fault
                fault.taken += 1
            else:
                fault.passed_over = True
        return chosen

    def not_applied(self) -> Iterator[Fault]:
        """Yield the entries that changed nothing so far."""
        return (fault for fault in self._faults if not fault.applied)
