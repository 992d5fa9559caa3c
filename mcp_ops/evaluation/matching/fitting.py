"""Whether a call is the one that a pattern of the line describes, and if not, why."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from mcp_ops.evaluation.line.call_pattern import CallPattern
from mcp_ops.evaluation.matching.matchers import Mismatch, is_matcher, mismatch
from mcp_ops.evaluation.matching.work import Work
from mcp_ops.evaluation.observed import CallRecord

Part = Literal["tool", "server", "state", "rule", "args", "result"]
HEAD: frozenset[Part] = frozenset({"tool", "server", "state", "rule"})
"""The parts by which a reader recognises a call."""


@dataclass(frozen=True)
class CallMismatch:
    """Why a call is not the one that a pattern describes."""

    part: Part
    mismatch: Mismatch
    """Its path begins with the part."""

    @property
    def in_head(self) -> bool:
        """Whether it is another kind of call, not the same one with other arguments or another result."""
        return self.part in HEAD


def call_mismatch(pattern: CallPattern, call: CallRecord, work: Work) -> CallMismatch | None:
    """Return the first part of a pattern that a call does not fit, or None.

    Raises:
        TooMuchWork: The comparison costs more than one line may.
    """
    work.spend()
    if pattern.tool is not None and not _is_tool(pattern.tool, call, work):
        return CallMismatch("tool", Mismatch(("tool",), pattern.tool, call.tool))
    if pattern.server is not None:
        found = mismatch(pattern.server, call.server, work, ("server",))
        if found is not None:
            return CallMismatch("server", found)
    if call.state not in pattern.states:
        return CallMismatch("state", Mismatch(("state",), sorted(pattern.states), call.state))
    if pattern.rule is not None:
        found = mismatch(pattern.rule, call.rule, work, ("rule",))
        if found is not None:
            return CallMismatch("rule", found)
    return _content_mismatch(pattern, call, work)


def call_fits(pattern: CallPattern, call: CallRecord, work: Work) -> bool:
    """Return whether a call is the one that a pattern describes."""
    return call_mismatch(pattern, call, work) is None


def own_name(call: CallRecord) -> str:
    """Return a tool's name on its server, without the server's name in front."""
    return call.tool.removeprefix(f"{call.server}.") if call.server else call.tool


def _is_tool(wanted: object, call: CallRecord, work: Work) -> bool:
    name = own_name(call)
    if isinstance(wanted, str):
        return wanted in (name, call.tool, f"{call.server}.{name}")
    return mismatch(wanted, name, work) is None


def _content_mismatch(pattern: CallPattern, call: CallRecord, work: Work) -> CallMismatch | None:
    if pattern.args is not None:
        found = mismatch(pattern.args, call.args, work, ("args",))
        if found is not None:
            return CallMismatch("args", found)
    if pattern.result is not None:
        found = mismatch(pattern.result, _result(pattern.result, call), work, ("result",))
        if found is not None:
            return CallMismatch("result", found)
    return None


def _result(pattern: object, call: CallRecord) -> object:
    """Return what a pattern of the result looks at: the text alone, unless it names the parts."""
    if isinstance(pattern, Mapping) and not is_matcher(pattern):
        return {"text": call.text, "structured": call.structured, "exit_code": call.exit_code}
    return call.text
