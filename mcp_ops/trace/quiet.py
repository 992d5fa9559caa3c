"""A trace without what came from outside: what happened stays, what was said does not.

Each field of each event is kept because it was written by this package or because it is a name or a number; every other
text is replaced by its size.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from mcp_ops.text import one_line
from mcp_ops.trace.detail import hidden, name_or_hidden
from mcp_ops.trace.events import (
    ConfirmationGiven,
    EffectSeen,
    Event,
    GuardDenied,
    LeakFound,
    LlmRequest,
    LlmResponse,
    Payload,
    PromptMessage,
    RunFinish,
    RunStart,
    ServerAsked,
    ToolCall,
    ToolResult,
)
from mcp_ops.trace.reader import Trace

_QUOTED = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|“[^”]*”""")
_WORD = re.compile(r"\w+")
_PLACE = re.compile(r"answer|(?:args|result) of call \d+|prompt of turn \d+")
"""A place that the watch over canaries names by a number only; others name a file or a witness."""
_LINE = re.compile(r"line \d+")
_CUT_WORD = 3
"""Characters from which the beginning of a word gives the word away."""
_GAP = "…"
_GAPS = re.compile(r"[^\w\s:;,]*…(?:[\W]*…)*[^\w\s:;,]*")
"""Gaps with nothing but marks between them, and the marks at their ends."""


def quiet_trace(trace: Trace) -> Trace:
    """Return a trace that tells the same story without arguments' values, results, prompts, replies and the answer.

    Keys, names, states, rules, counts, sizes and durations stay, and the reasons of our own guards without what they
    quote. The file that the trace was read from is left as it is.
    """
    args = {event.payload.call: event.payload.args for event in trace.events if isinstance(event.payload, ToolCall)}
    events = tuple(_quiet_event(event, args) for event in trace.events)
    return replace(trace, events=events, problems=tuple(map(_quiet_problem, trace.problems)))


def _quiet_event(event: Event, args: Mapping[int, Mapping[str, Any]]) -> Event:
    return event.model_copy(update={"payload": _quiet(event.payload, args)})


def _quiet(payload: Payload, args: Mapping[int, Mapping[str, Any]]) -> Payload:
    match payload:
        case RunStart():
            changes: dict[str, Any] = {"task": hidden(payload.task), "tools": [*map(name_or_hidden, payload.tools)]}
        case LlmRequest():
            changes = {"messages": [_quiet_message(message) for message in payload.messages]}
        case LlmResponse():
            changes = {
                "text": hidden(payload.text, payload.full_length),
                "malformed": _if_any(payload.malformed),
                "model": name_or_hidden(payload.model) if payload.model else "",
                "finish_reason": None if payload.finish_reason is None else name_or_hidden(payload.finish_reason),
                "truncated": False,
            }
        case ToolCall():
            changes = {"tool": name_or_hidden(payload.tool), "args": _quiet_values(payload.args)}
        case ToolResult():
            changes = {
                "tool": name_or_hidden(payload.tool),
                "rule": None if payload.rule is None else name_or_hidden(payload.rule),
                "text": hidden(payload.text, payload.full_length),
                "structured": _quiet_structured(payload.structured),
                "truncated": False,
            }
        case GuardDenied():
            changes = {
                "tool": name_or_hidden(payload.tool),
                "rule": name_or_hidden(payload.rule),
                "reason": _quiet_reason(payload, payload.reason, args),
                "hint": _quiet_reason(payload, payload.hint, args),
            }
        case ServerAsked():
            changes = {"method": name_or_hidden(payload.method), "text": _if_any(payload.text) or ""}
        case ConfirmationGiven():
            changes = {"tool": name_or_hidden(payload.tool)}
        case RunFinish():
            changes = {"answer": _if_any(payload.answer), "error": _if_any(payload.error)}
        case LeakFound():
            changes = {"where": payload.where if _PLACE.fullmatch(payload.where) else hidden(payload.where)}
        case EffectSeen():
            changes = {"object": hidden(payload.object), "detail": _if_any(payload.detail) or ""}
        case _:
            raise TypeError(f"{type(payload).__name__} is no event whose texts are known")
    return payload.model_copy(update=changes)


def _quiet_message(message: PromptMessage) -> PromptMessage:
    text = hidden(message.content, message.full_length)
    return message.model_copy(update={"content": text, "truncated": False})


def _if_any(text: str | None) -> str | None:
    return hidden(text) if text else text


def _quiet_structured(value: Any) -> Any:
    if value is None or isinstance(value, dict):
        return value and _quiet_values(value)
    return hidden(_as_json(value))


def _quiet_values(values: Mapping[str, Any]) -> dict[str, str]:
    return {name_or_hidden(key): hidden(_as_text(value)) for key, value in values.items()}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else _as_json(value)


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _quiet_reason(denial: GuardDenied, text: str, args: Mapping[int, Mapping[str, Any]]) -> str:
    """Return a guard's sentence without what it quotes; the sentence of a foreign server is from outside as a whole."""
    return (_if_any(text) or "") if denial.claimed else without_quotes(text, args.get(denial.call, {}))


def without_quotes(sentence: str, args: Mapping[str, Any]) -> str:
    """Return a sentence with a gap for all that stands in quotes, and for each word that is one of the arguments'."""
    given = {word for text in _texts(args) for word in _words(text)}
    unquoted = _QUOTED.sub(_GAP, sentence)
    gapped = _WORD.sub(lambda found: _GAP if _gives_away(found[0].casefold(), given) else found[0], unquoted)
    return _GAPS.sub(_GAP, gapped)


def _gives_away(word: str, given: set[str]) -> bool:
    return word in given or (len(word) >= _CUT_WORD and any(each.startswith(word) for each in given))


def _words(text: str) -> Iterator[str]:
    """Yield the words of a text as it is, and as a sentence would show it."""
    for spelling in (text, one_line(text, len(text) * 4 + 16), repr(text)):
        yield from (word.casefold() for word in _WORD.findall(spelling))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
    else:
        yield str(value)


def _quiet_problem(problem: str) -> str:
    """Return what is wrong with a line of the file, which may quote it; a gap in the events is our own sentence."""
    line, colon, rest = problem.partition(": ")
    return f"{line}: {hidden(rest)}" if colon and _LINE.fullmatch(line) else problem
