"""The one road of every call: arguments, guard, run, clean, cap, reply."""

import difflib
import logging
import reprlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from mcp_types import CallToolResult
from pydantic import ValidationError

from mcp_ops.gate.reply import Hide, Result, executed, nothing_to_hide, stopped, to_mcp
from mcp_ops.gate.rules import ARGS_INVALID, GUARD_ERROR, TOOL_ERROR, TOOL_UNKNOWN, Denied, Refuse, Rule, State
from mcp_ops.gate.tool import MAX_REPLY_BYTES, Arguments, Guarded, Tool
from mcp_ops.text import one_line

C = TypeVar("C")

log = logging.getLogger(__name__)


class _Brief(reprlib.Repr):
    """Shows the beginning of a value, however long, deep or large it is."""

    def repr_int(self, x: int, level: int) -> str:
        """Return a number's digits, or its size: Python refuses to write out one of thousands of digits."""
        return str(x) if x.bit_length() <= 200 else f"a number of {x.bit_length()} bits"


_BRIEF = _Brief()
_BRIEF.maxstring = _BRIEF.maxother = 200


@dataclass(frozen=True)
class AuditRecord:
    """The server's own word about one call, independent of what any client wrote down."""

    tool: str
    arguments: Mapping[str, Any]
    state: State
    rule: str | None


Audit = Callable[[AuditRecord], None]
"""Receives one record a call, after the call and before the reply."""


async def call(
    tools: Mapping[str, Tool[Any, C, Any]],
    name: str,
    arguments: Mapping[str, Any] | None,
    context: C,
    *,
    refuse: Refuse,
    audit: Audit | None = None,
    hide: Hide = nothing_to_hide,
) -> CallToolResult:
    """Answer one call. Never raises for what a caller sent: a denial is data."""
    raw = {} if arguments is None else arguments
    tool = tools.get(name)
    limit = tool.max_reply_bytes if tool else MAX_REPLY_BYTES
    if tool is None:
        result = rehearsed(stopped(TOOL_UNKNOWN, unknown_tool(name, tools)), refuse)
    else:
        result = await decide_and_run(tool, raw, context, refuse)
    reply = to_mcp(result, limit, hide)
    if tool is not None and tool.output is not None and result.rule is None and not refuse.rehearse:
        try:
            tool.output.model_validate(reply.structured_content)
        except ValidationError:
            log.exception("what %s returned does not fit its output schema", name)
            result = stopped(TOOL_ERROR, f"{name} made a result that does not fit its own output schema")
            reply = to_mcp(result, limit, hide)
    if audit is not None:
        audit(AuditRecord(name, raw, result.state, result.rule.name if result.rule else None))
    return reply


async def decide_and_run(asked: Guarded[Any, C, Any], raw: Mapping[str, Any], context: C, refuse: Refuse) -> Result:
    """Take arguments to a result: through the model, the guard and the runner. Never raises for what a caller sent."""
    return rehearsed(await _decide_and_run(asked, raw, context, replace(refuse, let_through=[])), refuse)


async def _decide_and_run(asked: Guarded[Any, C, Any], raw: Mapping[str, Any], context: C, refuse: Refuse) -> Result:
    try:
        arguments = asked.arguments.model_validate(_without_nulls(asked.arguments, raw))
    except ValidationError as error:
        return stopped(ARGS_INVALID, _invalid_arguments(asked, error))
    try:
        plan = asked.guard(arguments, context, refuse)
    except Denied as denied:
        return stopped(denied.rule, denied.reason, denied.hint)
    except Exception:
        log.exception("the guard of %s failed", asked.name)
        return stopped(GUARD_ERROR, f"the guard of {asked.name} could not judge this call")
    if refuse.rehearse and refuse.let_through:
        return _rehearsed(refuse.let_through[0])
    try:
        return await asked.run(plan, context, refuse.leaving_out)
    except Denied as denied:
        return stopped(denied.rule, denied.reason, denied.hint)
    except Exception:
        log.exception("%s failed", asked.name)
        return stopped(TOOL_ERROR, f"{asked.name} stopped with an unexpected error")


def rehearsed(result: Result, refuse: Refuse) -> Result:
    """Return a result; in a rehearsal, one that only a switched-off rule stopped becomes executed."""
    if refuse.rehearse and result.rule is not None and result.rule.name in refuse.off:
        return _rehearsed(result.rule)
    return result


def _rehearsed(rule: Rule) -> Result:
    return executed(f"Nothing was run: the rule {rule.name} is off and would have refused this call.")


def _without_nulls(arguments: type[Arguments], raw: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out optional arguments that are null: models send them to mean "not given"."""
    optional = {name for name, field in arguments.model_fields.items() if not field.is_required()}
    return {name: value for name, value in raw.items() if not (value is None and name in optional)}


def unknown_tool(name: str, tools: Collection[str]) -> str:
    """Return the reason of `TOOL_UNKNOWN`: what there is instead of `name`."""
    near = difflib.get_close_matches(name, tools, n=1)
    guess = f"; did you mean {near[0]}?" if near else f"; the tools are {', '.join(sorted(tools))}"
    return f"there is no tool {one_line(name, 60)!r}{guess}"


def _invalid_arguments(asked: Guarded[Any, Any, Any], error: ValidationError) -> str:
    known = list(asked.arguments.model_fields)
    faults = []
    for fault in error.errors(include_url=False, include_context=False)[:3]:
        where = ".".join(str(part) for part in fault["loc"])
        if fault["type"] == "extra_forbidden":
            near = difflib.get_close_matches(where, known, n=1)
            faults.append(
                f"unknown argument {one_line(where, 40)!r}" + (f" (did you mean {near[0]!r}?)" if near else "")
            )
        elif fault["type"] == "missing":
            faults.append(f"{where!r} is missing")
        else:
            faults.append(f"{where!r}: {_lower_first(fault['msg'])}, got {one_line(_BRIEF.repr(fault['input']), 60)}")
    return f"{'; '.join(faults)}; {asked.name} takes {', '.join(known) or 'nothing'}"


def _lower_first(message: str) -> str:
    return message[:1].lower() + message[1:]
