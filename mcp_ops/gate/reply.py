"""The reply of a tool call: built in one place, read back in one place."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from mcp_types import CallToolResult, TextContent

from mcp_ops.gate.rules import Rule, State
from mcp_ops.text import Capped, cap, clean, clean_value

DENIED_PREFIX = "GUARD DENIED: "

Hide = Callable[[object], object]
"""Takes what must not be shown out of a JSON value that was cleaned: a server's own credential, whoever echoes it."""


def nothing_to_hide(value: object) -> object:
    """Return a value as it is."""
    return value


@dataclass(frozen=True)
class Result:
    """What a runner, or a guard's refusal, hands to the gate. Text is raw: the gate cleans and caps it."""

    state: State
    text: str
    rule: Rule | None = None
    hint: str = ""
    data: Mapping[str, object] = field(default_factory=dict)
    """Further structured content of an executed call, such as `exit_code`."""
    keep: Literal["head", "ends"] = "head"
    """Which part of a long text survives the cap."""
    cut_at_source: int | None = None
    """Full length in bytes when the runner itself stopped reading earlier, else None."""


def executed(
    text: str,
    *,
    keep: Literal["head", "ends"] = "head",
    cut_at_source: int | None = None,
    **data: object,
) -> Result:
    """Return the result of a tool that ran to its end."""
    return Result(State.EXECUTED, text, data=data, keep=keep, cut_at_source=cut_at_source)


def stopped(rule: Rule, reason: str, hint: str | None = None) -> Result:
    """Return the result of a call that did not run, or could not finish, in the name of `rule`."""
    return Result(rule.state, reason, rule, rule.hint if hint is None else hint)


def to_mcp(result: Result, limit: int, hide: Hide = nothing_to_hide) -> CallToolResult:
    """Clean, cap and wrap a result as the pinned reply. `limit` is in bytes of UTF-8."""
    if result.rule is not None:
        text, structured = refusal(result, result.rule, limit, hide)
        return CallToolResult(content=[TextContent(text=text)], structured_content=structured, is_error=True)
    capped = shown(result, limit, hide)
    structured = {
        **cast("dict[str, Any]", hide(clean_value(result.data))),
        "state": State.EXECUTED.value,
        "truncated": capped.truncated or result.cut_at_source is not None,
        "full_length": max(capped.full_length, result.cut_at_source or 0),
    }
    return CallToolResult(content=[TextContent(text=capped.text)], structured_content=structured)


def shown(result: Result, limit: int, hide: Hide = nothing_to_hide) -> Capped:
    """Return the text of a result as it may be sent."""
    return cap(cast("str", hide(clean(result.text))), limit, keep=result.keep)


def refusal(result: Result, rule: Rule, limit: int, hide: Hide = nothing_to_hide) -> tuple[str, dict[str, Any]]:
    """Return text and structured content of a result that carries `rule`."""
    reason = cap(cast("str", hide(clean(result.text))), limit - len(DENIED_PREFIX)).text
    prefix = DENIED_PREFIX if result.state is State.DENIED else rule.name.replace(".", "_") + ": "
    structured = {"state": result.state.value, "rule": rule.name, "reason": reason, "hint": clean(result.hint)}
    return prefix + reason, structured


@dataclass(frozen=True)
class Reading:
    """A reply of one of our servers, read back by a client."""

    state: State
    rule: str | None
    reason: str
    hint: str
    exit_code: int | None
    truncated: bool
    full_length: int | None


def read_reply(reply: CallToolResult) -> Reading | None:
    """Read the state of a reply from its structured content only; None when it is not one of ours.

    Text that merely says GUARD DENIED is text. A reply whose state and error flag disagree is not one of ours.
    """
    content = reply.structured_content
    if not isinstance(content, dict) or content.get("state") not in [state.value for state in State]:
        return None
    state = State(content["state"])
    rule = content.get("rule")
    if bool(reply.is_error) is (state is State.EXECUTED) or (rule is None) is not (state is State.EXECUTED):
        return None
    exit_code, full_length = content.get("exit_code"), content.get("full_length")
    return Reading(
        state=state,
        rule=rule if isinstance(rule, str) else None,
        reason=str(content.get("reason", "")),
        hint=str(content.get("hint", "")),
        exit_code=exit_code if isinstance(exit_code, int) else None,
        truncated=content.get("truncated") is True,
        full_length=full_length if isinstance(full_length, int) else None,
    )
