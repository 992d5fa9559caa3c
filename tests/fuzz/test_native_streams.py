"""Whatever a provider streams is a reply or a defined fault, and how it is split into pieces does not matter."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from budget import share
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from mcp_ops.llm.anthropic_stream import MessageReader
from mcp_ops.llm.base import NativeReply
from mcp_ops.llm.failures import Unusable
from mcp_ops.llm.openai_stream import ChunkReader
from mcp_ops.llm.tool_names import ToolNames
from mcp_ops.text import one_line

pytestmark = pytest.mark.covers("D9")

READERS: list[Callable[..., MessageReader | ChunkReader]] = [MessageReader, ChunkReader]
SCALARS = st.none() | st.booleans() | st.integers(-1, 3) | st.text(max_size=5)
KEYS = st.sampled_from(
    [
        "type",
        "index",
        "delta",
        "content_block",
        "message",
        "usage",
        "text",
        "partial_json",
        "input",
        "id",
        "name",
        "thinking",
        "signature",
        "stop_reason",
        "choices",
        "content",
        "tool_calls",
        "function",
        "arguments",
        "refusal",
        "finish_reason",
        "error",
        "code",
        "model",
        "input_tokens",
    ]
)
WORDS = st.sampled_from(
    [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "error",
        "ping",
        "text",
        "tool_use",
        "thinking",
        "text_delta",
        "input_json_delta",
        "end_turn",
        "tool_use",
        "max_tokens",
        "refusal",
        "stop",
        "length",
        "{}",
        '{"a":',
    ]
)
VALUES: SearchStrategy[Any] = st.recursive(
    SCALARS | WORDS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=15
)
EVENTS = st.lists(st.dictionaries(KEYS, VALUES, max_size=6) | VALUES, max_size=8)


def read(reader: MessageReader | ChunkReader, data: bytes, size: int) -> NativeReply | str:
    """Feed a reader in pieces of so many bytes; a fault is its sentence."""
    try:
        for at in range(0, len(data), size):
            if reader.feed(data[at : at + size]):
                break
        return reader.end()
    except Unusable as fault:
        return str(fault)


def quote(value: object) -> str:
    return one_line(value) if isinstance(value, str) else ""


def check(make: Callable[..., MessageReader | ChunkReader], kind: str, data: bytes, size: int) -> None:
    whole, split = (read(make(kind, quote, ToolNames([])), data, piece) for piece in (len(data) or 1, size))
    assert whole == split
    if isinstance(whole, NativeReply):
        assert whole.text.strip() or whole.calls
        assert len({call.id for call in whole.calls}) == len(whole.calls)
        assert all((call.arguments is None) == bool(call.unreadable) for call in whole.calls)
    else:
        assert whole.isprintable()


@pytest.mark.parametrize("make", READERS)
@share(1)
@given(EVENTS, st.integers(1, 40), st.booleans())
def test_any_events_are_a_reply_or_a_fault_however_they_are_split(
    make: Callable[..., MessageReader | ChunkReader], events: list[Any], size: int, ends: bool
) -> None:
    closing = ['data: {"type": "message_stop"}\n\n', "data: [DONE]\n\n"] if ends else []
    data = "".join([*(f"data: {json.dumps(event)}\n\n" for event in events), *closing]).encode()
    check(make, "text/event-stream", data, size)


@pytest.mark.parametrize("make", READERS)
@share(1)
@given(st.dictionaries(KEYS, VALUES, max_size=8) | VALUES, st.integers(1, 40))
def test_any_body_is_a_reply_or_a_fault(make: Callable[..., MessageReader | ChunkReader], body: Any, size: int) -> None:
    check(make, "application/json", json.dumps(body).encode(), size)


@pytest.mark.parametrize("make", READERS)
@share(1)
@given(st.binary(max_size=200), st.integers(1, 40), st.sampled_from(["text/event-stream", "text/html", ""]))
def test_any_bytes_are_a_reply_or_a_fault(
    make: Callable[..., MessageReader | ChunkReader], data: bytes, size: int, kind: str
) -> None:
    check(make, kind, data, size)
