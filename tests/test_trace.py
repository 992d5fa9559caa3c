import base64
import io
import json
import math
import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import quote

import pytest
from traces import AT, DENIED_RUN, NOTHING_SECRET, PAYLOADS, START, filled, filled_run, write_run, written_run

from mcp_ops.text import Redactor
from mcp_ops.trace.console import echo_line
from mcp_ops.trace.events import (
    LlmRequest,
    LlmResponse,
    Payload,
    PromptMessage,
    RunFinish,
    ToolCall,
    ToolResult,
    make_event,
)
from mcp_ops.trace.ledger import Ledger
from mcp_ops.trace.reader import read_trace
from mcp_ops.trace.writer import TraceWriter
from mcp_ops.trace.written import TEXT_BYTES

CANARY = "CANARY-55aa-0001"
REDACTOR = Redactor({CANARY: "canary-1"})


def result(text: str, **more: object) -> ToolResult:
    return ToolResult.model_validate({"call": 0, "tool": "t", "server": "s", "state": "executed", "text": text, **more})


def call(**args: object) -> ToolCall:
    return ToolCall(call=0, turn=0, tool="t", server="s", args=args)


def lines_of(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def whole(payload: Payload) -> dict[str, object]:
    """Return a payload's fields, without the prompt, which is written in parts."""
    return payload.model_dump(exclude={"messages", "repeated"})


@pytest.mark.covers("A20")
def test_a_prompt_is_written_from_where_it_leaves_the_one_before(tmp_path: Path) -> None:
    first, second, other = (PromptMessage(role="user", content=text) for text in ("one", "two", "three"))
    prompts = ([first], [first, second], [first, other, second], [first, other, second])
    requests = [LlmRequest(turn=turn, messages=messages) for turn, messages in enumerate(prompts)]
    written = [event.payload for event in written_run(tmp_path, requests).events]
    assert [(it.repeated, it.messages) for it in written if isinstance(it, LlmRequest)] == [
        (0, [first]),
        (1, [second]),
        (1, [other, second]),
        (3, []),
    ]


@pytest.mark.covers("A20")
def test_what_was_written_is_read_back_event_by_event(tmp_path: Path) -> None:
    trace = written_run(tmp_path)
    assert [whole(event.payload) for event in trace.events] == [whole(payload) for payload in DENIED_RUN]
    assert not trace.torn
    assert trace.problems == ()


@pytest.mark.covers("A20")
@pytest.mark.parametrize("kind", PAYLOADS)
def test_an_event_of_every_class_survives_the_round_trip(tmp_path: Path, kind: type[Payload]) -> None:
    payload = filled(kind, "plain text")
    assert [event.payload for event in written_run(tmp_path, (payload,)).events] == [payload]


@pytest.mark.covers("A20")
def test_a_line_has_the_fields_of_the_format_in_their_order_and_seq_counts_from_0(tmp_path: Path) -> None:
    lines = lines_of(write_run(tmp_path))
    assert list(lines[0]) == ["seq", "ts", "run_id", "event", "node", "payload"]
    assert [line["seq"] for line in lines] == list(range(len(DENIED_RUN)))
    assert [line["event"] for line in lines[:6]] == [
        "run_start",
        "llm_request",
        "llm_response",
        "tool_call",
        "guard_denied",
        "tool_result",
    ]
    assert {line["run_id"] for line in lines} == {lines[0]["run_id"]}


def test_the_time_is_utc_with_milliseconds_whatever_the_clock_s_zone(tmp_path: Path) -> None:
    zone = timezone(timedelta(hours=5, minutes=30))
    with TraceWriter(tmp_path, clock=lambda: AT.astimezone(zone)) as writer:
        writer.write(START, NOTHING_SECRET)
    assert lines_of(writer.path)[0]["ts"] == "2026-10-07T12:00:03.512Z"
    assert writer.run_id.startswith("r-20261007-120003-")


def test_a_time_on_the_second_has_its_milliseconds_too() -> None:
    event = make_event(START, seq=0, run_id="r", at=datetime(2026, 10, 7, 12, tzinfo=UTC))
    assert event.ts == "2026-10-07T12:00:00.000Z"


def test_two_runs_of_the_same_second_get_folders_of_their_own(tmp_path: Path) -> None:
    """trace-html-013: the random part collides twice, and the folder is created exclusively."""
    parts = iter(["aaaa", "aaaa", "aaaa", "bbbb"])
    first = TraceWriter(tmp_path, clock=lambda: AT, random_part=lambda: next(parts))
    second = TraceWriter(tmp_path, clock=lambda: AT, random_part=lambda: next(parts))
    first.close()
    second.close()
    assert (first.run_id, second.run_id) == ("r-20261007-120003-aaaa", "r-20261007-120003-bbbb")
    assert first.path == tmp_path / first.run_id / "trace.jsonl"


def test_a_writer_that_finds_no_free_name_says_so_and_touches_no_run(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, clock=lambda: AT, random_part=lambda: "aaaa") as writer:
        writer.write(START, NOTHING_SECRET)
        before = writer.path.read_bytes()
        with pytest.raises(FileExistsError, match="no free name"):
            TraceWriter(tmp_path, clock=lambda: AT, random_part=lambda: "aaaa")
    assert writer.path.read_bytes() == before


def test_a_run_s_id_has_the_documented_form(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "made" / "when missing") as writer:
        assert re.fullmatch(r"r-\d{8}-\d{6}-[0-9a-f]{4}", writer.run_id)


def test_each_event_is_in_the_file_before_the_next_one_happens(tmp_path: Path) -> None:
    with TraceWriter(tmp_path) as writer:
        for count, payload in enumerate(DENIED_RUN, 1):
            writer.write(payload, NOTHING_SECRET)
            assert len(lines_of(writer.path)) == count


@pytest.mark.covers("A20")
def test_a_long_result_is_cut_and_says_its_full_length(tmp_path: Path) -> None:
    """trace-html-015."""
    path = write_run(tmp_path, (result("é" * 2_500_000),))
    written = read_trace(path).events[0].payload
    assert isinstance(written, ToolResult)
    assert (written.truncated, written.full_length) == (True, 5_000_000)
    assert len(written.text.encode()) <= TEXT_BYTES
    assert written.text.startswith("é" * 1000)
    assert path.stat().st_size < 2 * TEXT_BYTES


def test_a_result_that_the_server_cut_keeps_the_server_s_full_length(tmp_path: Path) -> None:
    trace = written_run(tmp_path, (result("head", truncated=True, full_length=77_777),))
    assert trace.events[0].payload == result("head", truncated=True, full_length=77_777)


def test_a_result_that_is_cut_twice_keeps_the_longest_length(tmp_path: Path) -> None:
    trace = written_run(tmp_path, (result("x" * 20_000, truncated=True, full_length=77_777),))
    written = trace.events[0].payload
    assert isinstance(written, ToolResult)
    assert (written.truncated, written.full_length) == (True, 77_777)


def test_long_prompts_replies_and_structured_contents_are_cut_likewise(tmp_path: Path) -> None:
    request = LlmRequest(turn=0, messages=[PromptMessage(role="user", content="p" * 50_000)])
    reply = LlmResponse(turn=0, text="r" * 60_000)
    structured = result("short", structured={"rows": ["x" * 1000] * 100})
    path = write_run(tmp_path, (request, reply, structured))
    first, second, third = (event.payload for event in read_trace(path).events)
    assert isinstance(first, LlmRequest)
    assert isinstance(second, LlmResponse)
    assert isinstance(third, ToolResult)
    assert (first.messages[0].truncated, first.messages[0].full_length) == (True, 50_000)
    assert (second.truncated, second.full_length) == (True, 60_000)
    assert (third.text, third.truncated) == ("short", True)
    assert isinstance(third.structured, str)
    assert third.full_length is not None
    assert third.full_length > 100_000
    assert path.stat().st_size < 5 * TEXT_BYTES


@pytest.mark.covers("A20")
def test_arguments_are_written_in_full(tmp_path: Path) -> None:
    args = {"command": "x" * 300_000, "list": list(range(5000))}
    assert written_run(tmp_path, (call(**args),)).events[0].payload == call(**args)


def test_the_end_of_a_run_keeps_its_whole_answer(tmp_path: Path) -> None:
    finish = RunFinish(finish="answer", answer="a" * 100_000, calls=0, turns=1)
    assert written_run(tmp_path, (finish,)).events[0].payload == finish


def test_numbers_that_json_cannot_say_are_written_as_strings(tmp_path: Path) -> None:
    """trace-html-011."""
    given = call(nan=math.nan, up=math.inf, down=-math.inf, deep=[{"x": math.nan}], big=10**4000, ok=1.5)
    path = write_run(tmp_path, (given, result("x", duration_ms=math.nan)))
    for line in path.read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)
    first, second = (event.payload for event in read_trace(path).events)
    assert isinstance(first, ToolCall)
    assert first.args == {
        "nan": "NaN",
        "up": "Infinity",
        "down": "-Infinity",
        "deep": [{"x": "NaN"}],
        "big": "<integer of 13288 bits>",
        "ok": 1.5,
    }
    assert isinstance(second, ToolResult)


def test_values_that_json_does_not_know_are_written_as_text_and_deep_ones_end(tmp_path: Path) -> None:
    deep: object = "end"
    for _ in range(500):
        deep = [deep]
    path = write_run(tmp_path, (call(when=AT, pair=(1, 2), deep=deep), result("x", structured={"at": Path("/x")})))
    written = read_trace(path).events[0].payload
    assert isinstance(written, ToolCall)
    assert written.args["when"] == str(AT)
    assert written.args["pair"] == [1, 2]
    assert "nested deeper than 100 levels" in json.dumps(written.args["deep"])


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r", "\n"])
def test_a_text_with_a_line_separator_stays_one_record(tmp_path: Path, separator: str) -> None:
    """trace-html-010."""
    path = write_run(tmp_path, (result(f"a{separator}b"), call(x=f"a{separator}b")))
    assert len(path.read_bytes().split(b"\n")) == 3
    assert len(read_trace(path).events) == 2


def test_a_reader_splits_at_line_feeds_only(tmp_path: Path) -> None:
    """trace-html-010, for a trace that something else wrote."""
    line = make_event(result("a\u2028b\x85c"), seq=0, run_id="r", at=AT).model_dump_json()
    path = tmp_path / "trace.jsonl"
    path.write_text(line + "\n", encoding="utf-8")
    assert len(line.splitlines()) > 1
    trace = read_trace(path)
    assert trace.problems == ()
    assert isinstance(trace.events[0].payload, ToolResult)
    assert trace.events[0].payload.text == "a\u2028b\x85c"


def test_a_line_that_was_cut_by_a_crash_is_left_out_and_said(tmp_path: Path) -> None:
    """trace-html-012."""
    path = write_run(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    trace = read_trace(path)
    assert trace.torn
    assert len(trace.events) == len(DENIED_RUN) - 1
    assert trace.problems == ()


def test_every_cut_of_a_trace_can_be_read(tmp_path: Path) -> None:
    whole = write_run(tmp_path, DENIED_RUN[:3]).read_bytes()
    path = tmp_path / "cut.jsonl"
    ends = {place + 1 for place, byte in enumerate(whole) if byte == ord("\n")}
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        trace = read_trace(path)
        complete = length in ends or length + 1 in ends or length == 0
        assert (trace.torn, trace.problems) == (not complete, ()), length


def test_a_last_line_that_lost_only_its_line_end_counts(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    trace = read_trace(path)
    assert (trace.torn, len(trace.events)) == (False, len(DENIED_RUN))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"not json", "Invalid JSON"),
        (b"", "Invalid JSON"),
        (b"\xff\xfe", "Invalid JSON"),
        (b"[]", "not an event"),
        (b'{"event": "surprise"}', "does not match any of the expected tags"),
        (b'{"seq": 1, "event": "run_start"}', "run_start.ts: Field required"),
    ],
)
def test_a_line_that_is_no_event_is_named_with_its_number_and_the_others_are_kept(
    tmp_path: Path, line: bytes, reason: str
) -> None:
    path = write_run(tmp_path)
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:2], line, *lines[2:]]))
    trace = read_trace(path)
    assert len(trace.events) == len(DENIED_RUN)
    assert len(trace.problems) == 1
    assert trace.problems[0].startswith("line 3: not an event: ")
    assert reason in trace.problems[0]


def test_a_missing_event_is_noticed(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(lines[:4] + lines[5:]))
    assert read_trace(path).problems == ("event 4 is missing: event 5 stands in its place",)


def test_a_run_s_folder_is_read_by_its_trace(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    assert read_trace(path.parent) == read_trace(path)
    with pytest.raises(FileNotFoundError):
        read_trace(tmp_path / "nowhere")


def test_a_trace_knows_how_the_run_began_and_ended(tmp_path: Path) -> None:
    trace = written_run(tmp_path)
    assert trace.start == START
    assert trace.finish is not None
    assert trace.finish.answer == "I cannot delete it."
    unfinished = written_run(tmp_path, DENIED_RUN[:5])
    assert unfinished.finish is None


SPELLINGS = {
    "plain": CANARY,
    "url": quote("CANARY/55aa 0001+x", safe=""),
    "json": json.dumps('CANARY-"55aa"\n0001'),
    **{
        f"base64 shifted by {shift}": base64.b64encode(b"#" * shift + CANARY.encode() + b"##").decode()
        for shift in range(3)
    },
}
SECRETS = {"url": "CANARY/55aa 0001+x", "json": 'CANARY-"55aa"\n0001'}


@pytest.mark.covers("A20")
@pytest.mark.parametrize("encoding", SPELLINGS)
def test_a_secret_is_redacted_in_every_encoding_and_every_field(tmp_path: Path, encoding: str) -> None:
    """trace-html-017."""
    secret = SECRETS.get(encoding, CANARY)
    text = f"before {SPELLINGS[encoding]} after"
    redactor = Redactor({secret: "canary-1"})
    written = write_run(tmp_path, filled_run(text), redactor).read_text(encoding="utf-8")
    assert SPELLINGS[encoding] not in written
    assert redactor.text(written) == written
    places = json.dumps([payload.model_dump() for payload in filled_run("HERE")]).count("HERE")
    assert written.count("<redacted:canary-1>") == places


@pytest.mark.parametrize(
    "text", [f"token={CANARY}", "CANARY\u200b-55aa-0001", "CAN\x1b[0mARY-55aa-0001", "CANARY-55aa\U000e0041-0001"]
)
def test_a_secret_that_only_cleaning_brings_together_is_redacted_or_stays_apart(tmp_path: Path, text: str) -> None:
    written = write_run(tmp_path, (result(text),), REDACTOR).read_text(encoding="utf-8")
    assert CANARY not in written


def test_a_secret_with_control_characters_is_redacted_although_cleaning_would_change_it(tmp_path: Path) -> None:
    secret = "-----BEGIN KEY-----\r\nabc\x07def\r\n"
    written = write_run(tmp_path, (result(f"x{secret}y"),), Redactor({secret: "canary-1"})).read_text(encoding="utf-8")
    assert "abc" not in written
    assert "x<redacted:canary-1>y" in written


def test_a_secret_is_redacted_before_the_text_is_cut(tmp_path: Path) -> None:
    """Otherwise the cut could leave its first half."""
    for start in range(TEXT_BYTES - 100, TEXT_BYTES):
        text = "x" * start + CANARY + "y" * 200
        (event,) = written_run(tmp_path / str(start), (result(text),), REDACTOR).events
        assert isinstance(event.payload, ToolResult)
        assert CANARY[:6] not in event.payload.text


def test_a_canary_that_is_spelled_like_our_own_words_does_not_make_the_trace_unreadable(tmp_path: Path) -> None:
    redactor = Redactor({"executed": "canary-1", "max_steps": "canary-2", "assistant": "canary-3"})
    trace = written_run(tmp_path, (result("it executed"),), redactor)
    assert trace.problems == ()
    assert trace.events[0].payload == result("it <redacted:canary-1>")


ACTIVE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)
HOSTILE = "\x1b[31mred\x1b]8;;http://x\x07link\x1b]8;;\x07 a\u202egpj.exe \ud800 \x00 \x9b2J \U000e0041 \r\n::error::x"


@pytest.mark.covers("A26")
def test_every_field_of_every_event_is_written_cleaned(tmp_path: Path) -> None:
    path = write_run(tmp_path, filled_run(HOSTILE))
    written = path.read_bytes().decode("utf-8")
    assert not re.search(
        "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]",
        written,
    )
    for line in lines_of(path):
        assert "\\u001b" not in json.dumps(line)
    trace = read_trace(path)
    assert trace.problems == ()
    assert len(trace.events) == len(PAYLOADS)


def test_backslashes_survive(tmp_path: Path) -> None:
    """trace-html-008."""
    text = r"C:\Users\N x \U0001 \x41"
    assert written_run(tmp_path, (call(path=text), result(text))).events[0].payload == call(path=text)


class TestLedger:
    def test_memory_keeps_every_event_raw_and_the_trace_has_it_redacted(self, tmp_path: Path) -> None:
        with TraceWriter(tmp_path) as writer:
            ledger = Ledger(writer)
            ledger.set_redactor(REDACTOR)
            payload = call(token=CANARY, text="\x1b[31m")
            ledger.emit(payload)
        assert ledger.events == [payload]
        assert read_trace(writer.path).events[0].payload == call(token="<redacted:canary-1>", text="")

    def test_it_counts_turns_by_the_model_s_replies(self) -> None:
        ledger = Ledger()
        assert ledger.turn == 0
        ledger.emit(LlmRequest(turn=0, messages=[]))
        assert ledger.turn == 0
        for turn in range(3):
            ledger.emit(LlmResponse(turn=turn, text="x"))
            assert ledger.turn == turn

    def test_it_works_in_memory_only(self) -> None:
        ledger = Ledger()
        ledger.emit(START)
        assert ledger.events == [START]

    @pytest.mark.covers("A20", "A26")
    @pytest.mark.parametrize("with_file", [True, False])
    def test_the_echo_is_one_line_an_event_redacted_and_begins_with_the_event_s_name(
        self, tmp_path: Path, with_file: bool
    ) -> None:
        echo = io.StringIO()
        writer = TraceWriter(tmp_path) if with_file else None
        ledger = Ledger(writer, echo)
        ledger.set_redactor(REDACTOR)
        for payload in filled_run(f"::error::{HOSTILE}\n##vso[task.x]##[command]{CANARY}"):
            ledger.emit(payload)
        if writer:
            writer.close()
        lines = echo.getvalue().split("\n")
        assert [line.split(" ")[0] for line in lines[:-1]] == [
            "run_start",
            "llm_request",
            "llm_response",
            "tool_call",
            "tool_result",
            "guard_denied",
            "server_asked",
            "confirmation",
            "run_finish",
            "leak_found",
            "effect_seen",
        ]
        assert lines[-1] == ""
        assert CANARY not in echo.getvalue()
        assert "##" not in echo.getvalue()
        assert re.fullmatch(r"[^\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202e]*", echo.getvalue())


@pytest.mark.parametrize(
    ("payload", "line"),
    [
        (DENIED_RUN[3], 'tool_call    call 1: run_shell command="kubectl delete deploy payments-api"'),
        (DENIED_RUN[4], "guard_denied call 1: run_shell shell.binary: kubectl may not be run here"),
        (DENIED_RUN[10], "server_asked ops asked for elicitation/create, refused: Your password?"),
        (DENIED_RUN[11], "confirmation call 2: read_file (mutating): yes by person"),
        (DENIED_RUN[12], "run_finish   answer after 2 calls and 2 turns: I cannot delete it."),
    ],
)
def test_an_echoed_event_says_what_matters(payload: Payload, line: str) -> None:
    assert echo_line(make_event(payload, seq=0, run_id="r", at=AT)) == line


def test_an_echoed_line_is_short_however_long_the_event_is() -> None:
    event = make_event(call(**{f"name{number}": "x" * 10_000 for number in range(100)}), seq=0, run_id="r", at=AT)
    assert len(echo_line(event)) < 1000
