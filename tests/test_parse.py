import json
import time
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from observations import line

from mcp_ops.evaluation.line.lines import MAX_LINE_BYTES, physical_lines
from mcp_ops.evaluation.line.parse import from_dict, parse_line, read_file
from mcp_ops.evaluation.line.scenario import BadLine, Scenario, ScenarioError

DATA = Path(__file__).parent / "data"

pytestmark = pytest.mark.covers("H14")


def text_of(**keys: Any) -> str:
    return json.dumps(line(**keys))


def read(path: Path, content: str | bytes) -> list[Scenario | BadLine]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read_file(path))


def names(parsed: list[Scenario | BadLine]) -> list[tuple[int, str, bool]]:
    """Line, name and whether it can run."""
    return [(one.line, one.id, False) if isinstance(one, BadLine) else (one.line, one.spec.id, True) for one in parsed]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "scenarios.jsonl"


# --- the file ---


def test_blank_lines_and_comments_are_skipped_and_physical_line_numbers_are_kept(file: Path) -> None:
    a, b, c = (text_of(id=name) for name in "abc")
    content = f"// comment\n{a}\n\n   \n\t// {{not json\n{b}\n\n{c}\n\n"
    assert names(read(file, content)) == [(2, "a", True), (6, "b", True), (8, "c", True)]


def test_crlf_a_byte_order_mark_at_the_start_and_a_missing_last_line_end_are_accepted(file: Path) -> None:
    content = "\ufeff" + text_of(id="a") + "\r\n\r\n" + text_of(id="b") + "\r\n" + text_of(id="c")
    assert names(read(file, content)) == [(1, "a", True), (3, "b", True), (4, "c", True)]


def test_a_line_ends_at_a_line_feed_only(file: Path) -> None:
    separators = "\u2028\u2029\x85\x0b\x0c\x1c\r"
    task = "one" + separators + "two"
    kept = text_of(id="a").replace("look", "one\u2028two\u2029three\x85four")
    parsed = read(file, kept + "\n" + text_of(id="b", task=task) + "\n")
    assert names(parsed) == [(1, "a", True), (2, "b", True)]
    assert [one.spec.task for one in parsed if isinstance(one, Scenario)] == ["one\u2028two\u2029three\x85four", task]


def test_an_empty_file_and_a_file_of_comments_hold_no_scenario(file: Path) -> None:
    assert read(file, "") == []
    assert read(file, "\ufeff// nothing yet\n\n") == []


def test_a_file_that_is_not_there_is_an_os_error(file: Path) -> None:
    with pytest.raises(FileNotFoundError):
        next(read_file(file))


def test_a_byte_order_mark_in_the_middle_is_a_bad_line(file: Path) -> None:
    good, bad = read(file, text_of(id="a") + "\n\ufeff" + text_of(id="b"))
    assert isinstance(good, Scenario)
    assert isinstance(bad, BadLine)
    assert bad.message == "a byte order mark stands in the middle of the file; remove it"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_a_file_in_another_encoding_is_one_bad_line_that_names_the_encoding(file: Path, encoding: str) -> None:
    (bad,) = read(file, (text_of(id="a") + "\n" + text_of(id="b")).encode(encoding))
    name = encoding.upper()[:6]
    assert bad == BadLine(1, 1, f"the file is {name} from byte offset 0 on, not UTF-8; save it as UTF-8", "line-1", ())


def test_a_latin_1_byte_makes_one_bad_line_that_names_the_byte_and_its_offset(file: Path) -> None:
    first, last = text_of(id="a").encode(), text_of(id="c").encode()
    middle = json.dumps(line(id="b", tags=["kept"], task="für"), ensure_ascii=False)
    before = b"\xef\xbb\xbf" + first + b"\r\n// " + b"x" * 2_000_000 + b"\n"
    parsed = read(file, before + middle.encode("latin-1") + b"\n" + last)
    column = middle.index("ü") + 1
    offset = len(before) + column - 1
    message = f"byte 0xfc at byte offset {offset} of the file is not UTF-8; save the file as UTF-8"
    assert names(parsed) == [(1, "a", True), (3, "b", False), (4, "c", True)]
    assert parsed[1] == BadLine(3, column, message, "b")


def test_a_line_of_over_a_megabyte_is_bad_and_keeps_its_id(file: Path) -> None:
    room = MAX_LINE_BYTES - len(text_of(id="largest", title=""))
    largest = text_of(id="largest", title="x" * room)
    too_large = text_of(id="too-large", title="x" * (room - 1))
    assert (len(largest), len(too_large)) == (MAX_LINE_BYTES, MAX_LINE_BYTES + 1)
    parsed = read(file, f"\ufeff{largest}\r\n{too_large}\n{text_of(id='after')}")
    assert names(parsed) == [(1, "largest", True), (2, "too-large", False), (3, "after", True)]
    assert parsed[1] == BadLine(
        2, 1, "the line is longer than 1000000 bytes; move what is large to a file", "too-large"
    )


def test_a_file_of_fifty_megabytes_is_read_in_bounded_memory(file: Path) -> None:
    scenario = text_of(id="s", title="x" * 440).encode() + b"\n"
    with file.open("wb") as out:
        for _ in range(100):
            out.write(scenario * 900)
        out.write(text_of(id="huge", title="x" * 5_000_000).encode() + b"\n")
    assert file.stat().st_size > 50_000_000
    tracemalloc.start()
    try:
        count = sum(1 for _ in physical_lines(file))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 90_001
    assert peak < 8 * MAX_LINE_BYTES


# --- names ---


def test_of_two_equal_ids_the_first_runs_and_the_later_names_both_lines(file: Path) -> None:
    parsed = read(
        file, text_of(id="guardrail") + "\n\n" + text_of(id="guardrail", tags=["kept"]) + "\n" + text_of(id="b")
    )
    assert names(parsed) == [(1, "guardrail", True), (3, "guardrail@3", False), (4, "b", True)]
    message = 'id "guardrail" is used on line 1 already and again on line 3; write another id'
    assert parsed[1] == BadLine(3, 8, message, "guardrail@3", ("kept",))


def test_ids_are_compared_as_they_are_written_and_near_ones_are_no_ids(file: Path) -> None:
    ids = ["a", "A", "a ", "\u00e1", "a\u0301", "a.1"]
    parsed = read(file, "\n".join(text_of(id=name) for name in ids))
    assert [name for _, name, _ in names(parsed)] == ["a", "line-2", "line-3", "line-4", "line-5", "a.1"]


def test_bad_lines_have_names_of_their_own_too(file: Path) -> None:
    parsed = read(file, '{"id": "a"}\n{"id": "a"}\n' + text_of(id="a") + "\n{\n" + text_of(id="line-4"))
    assert [name for _, name, _ in names(parsed)] == ["a", "a@2", "a@3", "line-4", "line-4@5"]
    assert isinstance(parsed[1], BadLine)
    assert parsed[1].message.startswith('the line has no "task"')


@pytest.mark.parametrize(
    ("text", "name", "tags"),
    [
        ('{"id": "a", "tags": ["x", "y"], "taks": 1}', "a", ("x", "y")),
        ('{"tags": ["x"], "id": "a", "task": ', "a", ("x",)),
        ('{"task": "t", "id": "a"', "a", ()),
        ('{"task": "t" "id": "a"}', None, ()),
        ('{"id": 5, "tags": "x"}', None, ()),
        ('{"id": "A", "tags": ["X", "y", 5, "xfail", "and", "y"]}', None, ("y",)),
        ('{"id": "a", "id": "b", "tags": ["x"]}', "a", ()),
        ('{"world": {"id": "inner", "tags": ["inner"]}, "id": "a"}', "a", ()),
        ('["id", "a"]', None, ()),
        ("nonsense", None, ()),
    ],
)
def test_a_bad_line_keeps_its_id_and_tags_as_far_as_they_can_be_read(text: str, name: str | None, tags: Any) -> None:
    bad = parse_line(text, None, 17)
    assert isinstance(bad, BadLine)
    assert (bad.id, bad.tags) == (name or "line-17", tags)


# --- JSON ---


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("{'id': 1}", 2, "a string stands in single quotes; write double quotes"),
        ('{id: "a"}', 2, "the word id is not JSON; write true, false, null or a string in double quotes"),
        ('{"id": "a",}', 11, "a comma stands before a closing bracket; leave it out"),
        ('{"tags": ["a", ]}', 14, "a comma stands before a closing bracket; leave it out"),
        ('{"id": "a" "task": "t"}', 12, 'a comma or } is missing before "task"'),
        ('{"tags": ["a" "b"]}', 15, 'a comma or ] is missing before "b"'),
        ('{"id" "a"}', 7, 'a colon is missing before "a"'),
        ('{"id": }', 8, "a value is missing before }"),
        ('{"id": "a", 5: 1}', 13, "a key in double quotes is missing before 5"),
        ('{"id": "a"', 11, "a comma or } is missing before the end of the line"),
        ('{"id": "a', 8, "this string has no end; close it with a double quote"),
        ('{"id": "a\tb"}', 10, "a raw control character stands in a string; write it as \\u0009"),
        ('{"id": "\\q"}', 9, "this escape is not JSON; write a backslash as \\\\"),
        ('{"id": "\\ud8"}', 9, "this escape is not JSON; write a backslash as \\\\"),
        ('{"id": 01}', 8, "this is not a JSON number; write it like 12, -3 or 0.5"),
        ('{"id": .5}', 8, "this is not a JSON number; write it like 12, -3 or 0.5"),
        ('{"id": +5}', 8, "this is not a JSON number; write it like 12, -3 or 0.5"),
        ('{"id": NaN}', 8, "NaN is not JSON; write a number, or a string"),
        ('{"id": -Infinity}', 8, "-Infinity is not JSON; write a number, or a string"),
        ('{"id": 1e999}', 8, "this number is out of range; write a smaller one, or a string"),
        ('{"id": ' + "1" * 5000 + "}", 8, "this number is out of range; write a smaller one, or a string"),
        ('{"id": True}', 8, "the word True is not JSON; write true, false, null or a string in double quotes"),
        ('{"id": "a"} {"id": "b"}', 13, "more text follows the JSON object; write one object a line"),
        ('{"id": "a"}\r{"id": "b"}', 13, "more text follows the JSON object; write one object a line"),
        ("# note", 1, "a comment begins with //, on a line of its own"),
        ('{"id": "a"} //', 13, "a comment stands inside the object; a comment is a line of its own"),
        ('{"id": "a", "task": "t", "id": "b"}', 26, 'the key "id" stands twice in one object; leave one out'),
        ('{"x": {"a": 1, "\\u0061": 2}}', 16, 'the key "\\u0061" stands twice in one object; leave one out'),
        ('{"a": ' * 65 + "1" + "}" * 65, 385, "this is nested deeper than 64 levels; write it flatter"),
        ('{"a": ' + "[" * 100_000, 70, "this is nested deeper than 64 levels; write it flatter"),
        ("[1]", 1, 'a line is one JSON object, and this is a list; write {"id": …}'),
        ('"a"', 1, 'a line is one JSON object, and this is a string; write {"id": …}'),
        ("null", 1, 'a line is one JSON object, and this is null; write {"id": …}'),
        ("\x00", 1, "U+0000 does not belong here; write one JSON object a line"),
        ('{"ü": "ü", \x1b[31m}', 12, "U+001B does not belong here; write one JSON object a line"),
    ],
)  # fmt: skip
def test_text_that_is_not_json_is_one_sentence_at_its_column(text: str, column: int, message: str) -> None:
    bad = parse_line(text, None, 17)
    assert isinstance(bad, BadLine)
    assert (bad.column, bad.message) == (column, message)


def test_sixty_four_levels_are_accepted() -> None:
    value: Any = 1
    for _ in range(59):
        value = [value]
    # line, expect, calls, entry, args: the fifth level holds the value.
    scenario = parse_line(text_of(expect={"calls": [{"tool": "t", "args": {"a": value}}]}), None, 1)
    assert isinstance(scenario, Scenario)
    deeper = parse_line(text_of(expect={"calls": [{"tool": "t", "args": {"a": [value]}}]}), None, 1)
    assert isinstance(deeper, BadLine)
    assert deeper.message == "this is nested deeper than 64 levels; write it flatter"


@pytest.mark.parametrize(
    "text",
    [
        '{"a":' + "[" * 499_000,
        '{"a":"' + '\\"' * 490_000,
        '"' * 999_999,
        "[" + "1," * 100_000,
        '{"id":"a","task":"t","expect":{},"mock":[' + ",".join(['{"finish":1}'] * 20_000) + "]}",
        '{"id":"a","task":"t","expect":{},"mock":[{"finish":"' + "${call[0].text /" * 50_000 + '"}]}',
        '{"id":"a","task":"t","mock":[{"finish":"x"}],"expect":{"answer":{"$glob":"' + "[" * 900_000 + '"}}}',
    ],
)
def test_a_hostile_line_costs_little_time(text: str) -> None:
    started = time.process_time()
    assert isinstance(parse_line(text, None, 1), BadLine)
    assert time.process_time() - started < 10


# --- keys and values ---

BAD_LINES = [json.loads(row) for row in (DATA / "bad_lines.jsonl").read_text(encoding="utf-8").split("\n") if row]
"""Keys that replace those of a good line, the text at whose place the fault is, and the sentence."""


@pytest.mark.parametrize(("keys", "place", "message"), [(row["keys"], row["at"], row["message"]) for row in BAD_LINES])
def test_a_wrong_key_or_value_is_one_sentence_at_its_column(keys: Mapping[str, Any], place: str, message: str) -> None:
    text = text_of(**keys)
    bad = parse_line(text, None, 17)
    assert isinstance(bad, BadLine)
    assert bad.message == message
    assert text[bad.column - 1 :].startswith(place)


RESERVED = ["v", "owner", "links"]


@pytest.mark.parametrize(
    "keys",
    [
        *({key: 1} for key in RESERVED),
        {"expect": {"plan": {}}},
        {"live": {"expect": {"plan": 1}}},
    ],
)
def test_a_reserved_key_is_not_built_yet(keys: dict[str, Any]) -> None:
    bad = parse_line(text_of(**keys), None, 17)
    assert isinstance(bad, BadLine)
    assert bad.message.endswith(" is not built yet; leave the key out")


def test_keys_that_begin_with_x_are_the_users_own() -> None:
    assert isinstance(parse_line(text_of(**{"x-ticket": {"any": ["thing"]}, "x-": None}), None, 1), Scenario)
    assert isinstance(parse_line(text_of(world={"x-ticket": 1}), None, 1), BadLine)


@pytest.mark.parametrize("key", ["id", "task", "expect"])
def test_a_required_key_that_is_missing_is_named(key: str) -> None:
    keys = line()
    del keys[key]
    bad = parse_line(json.dumps(keys), None, 17)
    assert isinstance(bad, BadLine)
    assert bad.message.startswith(f'the line has no "{key}"; write for example "{key}": ')
    assert bad.column == 1


def test_mock_is_required_unless_modes_leaves_it_out() -> None:
    keys = line()
    del keys["mock"]
    bad = parse_line(json.dumps(keys), None, 17)
    assert isinstance(bad, BadLine)
    assert bad.message == (
        'the line has no "mock"; write the scripted replies, or "modes": ["live"] for a line without a script'
    )
    assert isinstance(parse_line(json.dumps({**keys, "modes": ["live"]}), None, 17), Scenario)


def test_the_fault_that_stands_first_is_told() -> None:
    bad = parse_line('{"id": "a", "task": "t", "tags": [1], "mock": [{"finish": 5}], "expect": {"calls": 1}}', None, 1)
    assert isinstance(bad, BadLine)
    assert bad.message == 'tags[0] must be a string, got 1; write for example "guardrail"'


@pytest.mark.parametrize("hostile", ["\x1b[31m", "::error::x", "\u202e", "</script>", "a\nb", "\ud800"])
def test_hostile_text_in_a_message_stays_inert_text_on_one_line(hostile: str) -> None:
    bad = parse_line(text_of(**{hostile: 1, "task": hostile}), None, 1)
    assert isinstance(bad, BadLine)
    assert not set(bad.message) & set("\n\x1b\u202e\ud800")
    assert not bad.message.startswith("::")


def test_a_message_has_at_most_four_hundred_characters() -> None:
    bad = parse_line(text_of(**{"k" * 5000: 1}), None, 1)
    assert isinstance(bad, BadLine)
    assert len(bad.message) <= 400


# --- from Python ---


@pytest.mark.covers("H42")
def test_a_mapping_is_read_by_the_same_rules() -> None:
    scenario = from_dict(line(id="a", tags=("x", "y")))
    assert (scenario.spec.id, scenario.spec.tags, scenario.path, scenario.line) == ("a", ("x", "y"), None, 1)
    with pytest.raises(ScenarioError, match=r"^expectd is an unknown key; did you mean \"expect\"\?$"):
        from_dict(line(expectd={}))
    with pytest.raises(ScenarioError, match=r"^the scenario is not JSON .*; write JSON values only$"):
        from_dict(line(world={"canaries": [object()]}))
    with pytest.raises(ScenarioError, match=r"^the scenario is not JSON"):
        from_dict(line(expect={"budget": {"usd": float("nan")}}))


def test_a_script_is_handed_on_as_it_is_written() -> None:
    mock = [
        {"thought": "a", "action": {"tool": "t", "args": {"a": [1, {"b": None}]}}},
        {"actions": [{"tool": "t"}, {"tool": "u", "args": {}}]},
        {"raw": "${call[0].nonsense} $${"},
        {"finish": "$${HOME} ${HOME} ${last.text /a\\/b/}"},
    ]
    spec = from_dict(line(mock=mock)).spec
    assert json.loads(json.dumps([entry.reply() for entry in spec.mock or ()])) == mock
