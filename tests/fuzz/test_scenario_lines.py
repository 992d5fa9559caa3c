"""Whatever stands in a scenario file is a scenario, or a bad line that says where and what."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from budget import share
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from mcp_ops.evaluation.line.parse import from_dict, parse_line, read_file
from mcp_ops.evaluation.line.scenario import BadLine, Scenario, ScenarioError, ScenarioLine

pytestmark = pytest.mark.covers("H14")

ROOT = Path(__file__).parent.parent.parent
SHIPPED = [
    line
    for path in sorted((ROOT / "scenarios").glob("*.jsonl"))
    for line in path.read_text("utf-8").splitlines()
    if line.startswith("{")
]
KEYS = st.sampled_from([*ScenarioLine.model_fields, "matrix", "rubric", "x-mine", "tool", "args", "$re", ""])
ODD = st.one_of(
    st.sampled_from(
        [None, True, -1, 0, 1e300, 10**40, "", " ", "a\nb", "\u202e", "\ud800", "${last.text /(/}", [], {}]
    ),
    st.sampled_from([[[]], [{}], {"$re": "("}, {"$re": "a{1000}"}, {"$not": {}}, "x" * 5000, ["a", "a"], {"": 1}]),
    st.text(max_size=10),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.dictionaries(KEYS, st.integers() | st.text(max_size=3), max_size=3),
).map(copy.deepcopy)
CHARACTERS = st.sampled_from(
    [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        '"',
        "\\",
        "\\u12",
        "\x00",
        "\t",
        "\ufeff",
        "é",
        "\U0001f600",
        "\ud800",
        "NaN",
        "1e999",
    ]
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every place in a JSON value: its holder, and its key or index there."""
    inside = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    return [place for key, item in inside for place in [(value, key), *(places(item) if _holds(item) else [])]]


def _holds(item: Any) -> bool:
    return isinstance(item, dict | list)


@st.composite
def altered(draw: DrawFn) -> str:
    """Return a shipped line with up to three of its values dropped, changed, moved, doubled or joined by another."""
    value = json.loads(draw(st.sampled_from(SHIPPED)))
    for _ in range(draw(st.integers(1, 3))):
        found = places(value)
        if not found:
            break
        holder, key = draw(st.sampled_from(found))
        change = draw(st.sampled_from(("drop", "set", "set", "add", "wrap", "swap")))
        if change == "drop":
            del holder[key]
        elif change == "set":
            holder[key] = draw(ODD)
        elif change == "wrap":
            holder[key] = [holder[key]] if draw(st.booleans()) else {draw(KEYS): holder[key]}
        elif change == "swap":
            holder[key] = json.loads(json.dumps(draw(st.sampled_from([each[at] for each, at in found]))))
        elif isinstance(holder, dict):
            holder[draw(KEYS)] = draw(ODD)
        else:
            holder.append(draw(ODD))
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


@st.composite
def damaged(draw: DrawFn) -> str:
    """Return a shipped or an altered line with a few characters put in, taken out, or cut off."""
    text = draw(st.sampled_from(SHIPPED) | altered())
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(CHARACTERS | st.just("")) + text[at + draw(st.integers(0, 3)) :]
    return text[: draw(st.integers(0, len(text)))] if draw(st.integers(0, 4)) == 0 else text


def as_json(spec: ScenarioLine) -> dict[str, Any]:
    """Return what a line says. Pydantic's own JSON loses halves of surrogate pairs in keys, so it is not that."""
    return spec.model_dump(by_alias=True, exclude_unset=True)


def fault_of(
    text: str, parsed: Scenario | BadLine, write: Callable[[ScenarioLine], dict[str, Any]] = as_json
) -> str | None:
    """Return how the reading of a line is wrong, or None."""
    if isinstance(parsed, Scenario):
        again = from_dict(write(parsed.spec))
        return None if again.spec == parsed.spec else "is another scenario when written and read again"
    if parsed.line != 7:
        return "names another line"
    if not 1 <= parsed.column <= len(text) + 1:
        return f"names column {parsed.column} of a line of {len(text)} characters"
    if not parsed.message or "\n" in parsed.message or len(parsed.message) > 500:
        return "does not say what is wrong in one line"
    return None


@share(4)
@given(altered() | damaged())
def test_a_changed_line_is_a_scenario_or_says_in_one_line_what_is_wrong_and_where(text: str) -> None:
    assert fault_of(text, parse_line(text, None, 7)) is None


@share(1)
@given(st.dictionaries(KEYS, ODD | st.lists(ODD, max_size=3), max_size=6))
def test_a_mapping_is_a_scenario_or_is_refused_with_a_sentence(value: dict[str, Any]) -> None:
    try:
        scenario = from_dict(value)
    except ScenarioError as error:
        fault = fault_of("{}", BadLine(7, 1 if error.column > 0 else 0, str(error), "a"))
    else:
        fault = fault_of(scenario.text, scenario)
    assert fault is None


@share(2)
@given(st.lists(st.binary(max_size=40) | altered().map(lambda text: text.encode("utf-8", "surrogatepass")), max_size=4))
def test_every_line_of_a_file_of_any_bytes_is_named_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.scenarios.jsonl"
    path.write_bytes(b"\n".join(lines))
    read = list(read_file(path))
    assert [each.line for each in read] == sorted({each.line for each in read})
    names = [each.id if isinstance(each, BadLine) else each.spec.id for each in read]
    assert len(set(names)) == len(names)


def test_naive_readers_are_found_out() -> None:
    line = SHIPPED[0]
    found = parse_line(line, None, 7)
    assert isinstance(found, Scenario)
    assert fault_of(line, BadLine(7, len(line) + 2, "is wrong", "a")) is not None
    assert fault_of(line, BadLine(1, 1, "is wrong", "a")) == "names another line"
    assert fault_of(line, BadLine(7, 1, "first\nsecond", "a")) == "does not say what is wrong in one line"
    forgetful = fault_of(
        line, found, lambda spec: {key: as_json(spec)[key] for key in ("id", "task", "mock", "expect")}
    )
    assert forgetful == "is another scenario when written and read again"
