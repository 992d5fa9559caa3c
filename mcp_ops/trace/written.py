"""From an event as it happened to the line that is written: cleaned, redacted, results cut, valid JSON."""

import json
import math
import re
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal, get_origin

from pydantic import BaseModel

from mcp_ops.text import Redactor, cap, clean, is_plain
from mcp_ops.trace.events import LlmRequest, LlmResponse, Payload, PromptMessage, ToolCall, ToolResult, envelope

TEXT_BYTES = 8192
"""Most bytes of UTF-8 that are written of one result, one prompt message or one reply of the model."""

_CONTROL_CHARACTER = re.compile(r"\\[bfru]")
_REFUSED_NUMBER = re.compile(r"[0-9]{1000}")
_MAX_LEVELS = 100
_MAX_INTEGER_BITS = 4096
_CUT_FIELD: Mapping[type[BaseModel], str] = {ToolResult: "text", LlmResponse: "text", PromptMessage: "content"}


def written_line(payload: Payload, *, redactor: Redactor, seq: int, run_id: str, at: datetime) -> str:
    """Return the line of a trace for `payload`, without its line end."""
    around = envelope(payload, run_id=run_id, at=at)
    body = _as_it_is(payload, redactor)
    if body is None:
        body = json.dumps(_written(payload, redactor), ensure_ascii=False, allow_nan=False)
    # Every name and value in it is ours and needs no escape.
    head = ", ".join(f'"{name}": "{value}"' for name, value in around.items())
    return f'{{"seq": {seq}, {head}, "payload": {body}}}'


def _as_it_is(payload: Payload, redactor: Redactor) -> str | None:
    """Return the JSON of a payload that needs no mending, as most do, or None."""
    if not redactor.same_in_json:
        return None
    if isinstance(payload, LlmRequest):
        # Nothing else in a request is from outside, and a message comes again in later runs.
        texts = [message.content for message in payload.messages]
        return payload.model_dump_json() if all(_is_plain(text, redactor) for text in texts) else None
    try:
        body = payload.model_dump_json()
    except ValueError:
        return None
    if "\\" in body and _CONTROL_CHARACTER.search(body):
        return None
    if isinstance(payload, ToolCall | ToolResult | LlmResponse) and _out_of_bounds(body):
        return None
    return body if _is_plain(body, redactor) else None


def _is_plain(text: str, redactor: Redactor) -> bool:
    """Return whether a text is written as it is."""
    return len(text) <= TEXT_BYTES and is_plain(text) and redactor.text(text) is text


def _out_of_bounds(body: str) -> bool:
    """Return whether a JSON value from outside may be more than JSON readers take."""
    return body.count("[") + body.count("{") > _MAX_LEVELS or bool(_REFUSED_NUMBER.search(body))


def _written(model: BaseModel, redactor: Redactor) -> dict[str, Any]:
    verbatim = _closed_vocabulary(type(model))
    values = {
        name: value if name in verbatim else _safe(value, redactor)
        for name, value in ((name, getattr(model, name)) for name in type(model).model_fields)
    }
    field = _CUT_FIELD.get(type(model))
    if field is not None:
        _cut(values, field, getattr(model, field))
    if isinstance(model, ToolResult):
        _cut_structured(values)
    return values


@lru_cache(maxsize=64)
def _closed_vocabulary(model: type[BaseModel]) -> frozenset[str]:
    """Fields whose values are ours: a canary that is spelled like a state must not make the trace unreadable."""
    return frozenset(name for name, field in model.model_fields.items() if get_origin(field.annotation) is Literal)


def _safe(value: object, redactor: Redactor, level: int = 0) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _safe_text(value, redactor)
    if isinstance(value, int):
        bits = value.bit_length()
        return value if bits <= _MAX_INTEGER_BITS else f"<integer of {bits} bits>"
    if isinstance(value, float):
        return value if math.isfinite(value) else _NOT_A_NUMBER.get(str(value), "NaN")
    if isinstance(value, BaseModel):
        return _written(value, redactor)
    if level >= _MAX_LEVELS:
        return f"<nested deeper than {_MAX_LEVELS} levels>"
    if isinstance(value, Mapping):
        return {_safe_text(str(key), redactor): _safe(item, redactor, level + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_safe(item, redactor, level + 1) for item in value]
    return _safe_text(str(value), redactor)


_NOT_A_NUMBER = {"inf": "Infinity", "-inf": "-Infinity"}


def _safe_text(text: str, redactor: Redactor) -> str:
    """Redact before and after cleaning: cleaning changes a value that holds control characters, and joins one that
    was split by an invisible character.
    """
    redacted = redactor.text(text)
    cleaned = clean(redacted)
    return cleaned if cleaned is redacted else redactor.text(cleaned)


def _cut(values: dict[str, Any], field: str, whole: str) -> None:
    capped = cap(values[field], TEXT_BYTES)
    if capped.truncated:
        values[field] = capped.text
        _mark_cut(values, len(whole.encode("utf-8", "replace")))


def _cut_structured(values: dict[str, Any]) -> None:
    """A foreign server's structured content has no bound; what is too long is kept as the beginning of its JSON."""
    if values["structured"] is None:
        return
    text = json.dumps(values["structured"], ensure_ascii=False)
    capped = cap(text, TEXT_BYTES)
    if capped.truncated:
        values["structured"] = capped.text
        _mark_cut(values, capped.full_length)


def _mark_cut(values: dict[str, Any], full_length: int) -> None:
    values["truncated"] = True
    values["full_length"] = max(values["full_length"] or 0, full_length)
