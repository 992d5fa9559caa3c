"""Whatever a model says is a turn or is malformed, never an error and never both an answer and a call."""

import json
import time
from dataclasses import asdict
from typing import Any

import pytest
from budget import share
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from mcp_ops.agent.protocols.json_turn import MAX_REPLY_CHARACTERS, parse_turn
from mcp_ops.agent.turns import MAX_CALLS_A_TURN, Malformed, RequestedCall, Turn

pytestmark = pytest.mark.covers("A15")

TEXTS = st.text(max_size=30)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
VALUES: SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=12
)
CALLS = st.builds(RequestedCall, TEXTS, st.dictionaries(TEXTS, VALUES, max_size=4))
TURNS = st.builds(Turn, TEXTS, calls=st.lists(CALLS, min_size=1, max_size=MAX_CALLS_A_TURN).map(tuple)) | st.builds(
    Turn, TEXTS, finish=TEXTS
)
TOKENS = (
    *('{"finish":"', '"thought":', '{"action":{', '"tool":', '"args":{}', '"actions":[', "}", "]", "{", "[", ",", ":"),
    *(
        "```json\n",
        "\n```",
        "<think>",
        "</think>",
        "<thinking>",
        '"',
        "\\",
        "\\u",
        "\\ud800",
        "NaN",
        "-Infinity",
        "null",
    ),
    *("1e999", "9" * 5000, "\x00", "\ufeff", "\u2028", "\U000e0041", "//", "'", "true", '"tool_calls":[]'),
)


def written(turn: Turn) -> str:
    """Write a turn as a model does."""
    calls = [asdict(call) for call in turn.calls]
    value = {"thought": turn.thought, **({"actions": calls} if calls else {"finish": turn.finish})}
    return json.dumps(value, ensure_ascii=False)


@st.composite
def spoilt(draw: DrawFn, texts: SearchStrategy[str], tokens: tuple[str, ...] = TOKENS) -> str:
    """Return a text with pieces of it left out, doubled, exchanged, or with something put in."""
    text = draw(texts)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 20)))
        piece = draw(st.just("") | st.just(text[start:end] * 2) | st.sampled_from(tokens) | TEXTS)
        text = text[:start] + piece + text[end:]
    return text


REPLIES = st.one_of(
    spoilt(TURNS.map(written)),
    st.lists(st.sampled_from(TOKENS), max_size=12).map("".join),
    VALUES.map(json.dumps),
    st.binary(max_size=60).map(lambda data: data.decode("utf-8", "surrogateescape")),
    st.text(),
)


def fault_of(reply: str, parse: Any = parse_turn) -> str | None:
    """Return how the reading of a reply is wrong, or None."""
    try:
        turn = parse(reply)
    except Exception as error:
        return f"raises {type(error).__name__}"
    if isinstance(turn, Malformed):
        return None if turn.reason and "\n" not in turn.reason else "does not say in one line what is wrong"
    if not isinstance(turn, Turn):
        return "is neither a turn nor malformed"
    if (turn.finish is None) == (not turn.calls):
        return "answers and calls at once, or does neither"
    return None if parse(written(turn)) == turn else "does not survive being written and read again"


@share(5)
@given(REPLIES)
@example("\ud800")
@example('{"finish": "a", "action": {"tool": "b"}}')
def test_every_reply_is_a_turn_or_malformed(reply: str) -> None:
    assert fault_of(reply) is None


@share(1)
@given(TURNS)
def test_a_turn_that_is_written_is_read_as_it_was(turn: Turn) -> None:
    assert parse_turn(written(turn)) == turn


@share(0.3)
@given(st.sampled_from(TOKENS), st.sampled_from(("", '{"finish":', '{"action":{"args":')), st.sampled_from(TOKENS))
def test_a_huge_or_deeply_nested_reply_is_read_in_bounded_time(piece: str, before: str, after: str) -> None:
    for length in (MAX_REPLY_CHARACTERS - 10_000, 20 * MAX_REPLY_CHARACTERS):
        reply = before + piece * (length // len(piece)) + after
        started = time.process_time()
        turn = parse_turn(reply)
        assert time.process_time() - started < 2.0
        assert isinstance(turn, Turn | Malformed)


def test_naive_readers_are_found_out() -> None:
    def raises(reply: str) -> Turn:
        return Turn("", finish=str(json.loads(reply)["finish"]))

    def takes_both(reply: str) -> Turn | Malformed:
        turn = parse_turn(reply)
        return Turn(turn.thought, turn.calls, finish="x") if isinstance(turn, Turn) else turn

    assert fault_of("hello", raises) == "raises JSONDecodeError"
    assert fault_of('{"action": {"tool": "ls"}}', takes_both) == "answers and calls at once, or does neither"
    assert fault_of('{"finish": " a"}', lambda reply: Turn("", finish=reply)) is not None
