"""An event as one line for a terminal."""

import json
from typing import Any

from mcp_ops.text import clean, inert, one_line
from mcp_ops.trace.events import (
    ConfirmationGiven,
    EffectSeen,
    Event,
    GuardDenied,
    LeakFound,
    LlmRequest,
    LlmResponse,
    RunFinish,
    RunStart,
    ServerAsked,
    ToolCall,
    ToolResult,
)

_GIST = 160


def echo_line(event: Event) -> str:
    """Return `event` as one inert line that begins with the event's name, never with text from outside."""
    return inert(f"{event.event:<12} {_gist(event)}")


def compact_json(value: object, limit: int = _GIST) -> str:
    """Return a JSON value on one line in at most `limit` characters."""
    return one_line(json.dumps(value, ensure_ascii=False, default=str), limit)


def arguments_gist(args: dict[str, Any], limit: int = _GIST) -> str:
    """Return a call's arguments as `name=value`, in at most `limit` characters."""
    return one_line(" ".join(f"{clean(name)}={compact_json(value, limit)}" for name, value in args.items()), limit)


def _gist(event: Event) -> str:
    match event.payload:
        case RunStart() as it:
            return f"{it.mode} {_brief(it.model)}, cluster {_brief(it.cluster)}: {_brief(it.task)}"
        case LlmRequest() as it:
            dropped = f", {it.dropped} older observations dropped" if it.dropped else ""
            return f"turn {it.turn + 1}: {it.repeated + len(it.messages)} messages{dropped}"
        case LlmResponse() as it:
            malformed = f"malformed, {_brief(it.malformed)}: " if it.malformed is not None else ""
            return f"turn {it.turn + 1}: {malformed}{_brief(it.text)}"
        case ToolCall() as it:
            return f"call {it.call + 1}: {_brief(it.tool)} {arguments_gist(it.args)}"
        case ToolResult() as it:
            rule = f" {_brief(it.rule)}" if it.rule is not None else ""
            fault = f" (injected fault: {it.fault})" if it.fault is not None else ""
            return f"call {it.call + 1}: {it.state}{rule}{fault}: {_brief(it.text)}"
        case GuardDenied() as it:
            return f"call {it.call + 1}: {_brief(it.tool)} {_brief(it.rule)}: {_brief(it.reason)}"
        case ServerAsked() as it:
            answer = "granted" if it.granted else "refused"
            return f"{_brief(it.server)} asked for {_brief(it.method)}, {answer}: {_brief(it.text)}"
        case ConfirmationGiven() as it:
            why = f", {_brief(it.why)}" if it.why else ""
            return f"call {it.call + 1}: {_brief(it.tool)} ({it.tool_class}): {it.answer} by {it.by}{why}"
        case RunFinish() as it:
            return f"{it.finish} after {it.calls} calls and {it.turns} turns: {_brief(it.answer or it.error or '')}"
        case LeakFound() as it:
            return f"canary {it.canary} in {_brief(it.where)} ({it.encoding})"
        case EffectSeen() as it:
            return f"{_brief(it.witness)}: {it.kind} {_brief(it.object)}"


def _brief(text: str) -> str:
    return one_line(text, _GIST)
