import asyncio
import json
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import pytest
from mcp.client import Client
from mcp_types import CallToolResult
from pydantic import Field

from mcp_ops.gate import (
    ARGS_INVALID,
    DENIED_PREFIX,
    GATE_RULES,
    GUARD_ERROR,
    MAX_REPLY_BYTES,
    TIME_LIMIT,
    TOOL_ERROR,
    Arguments,
    AuditRecord,
    Denied,
    Refuse,
    Result,
    Rule,
    State,
    Tool,
    ToolClass,
    build_server,
    call,
    executed,
    read_reply,
    stopped,
    to_mcp,
)

FORBIDDEN = Rule("demo.forbidden", State.DENIED, "The word is forbidden.", "Say another word.")
ABSENT = Rule("demo.absent", State.UNAVAILABLE, "The thing behind the tool is absent.")
DECLINED = Rule("demo.declined", State.DECLINED, "A person said no.")


class EchoArguments(Arguments):
    word: str
    times: int = Field(default=1, ge=1, le=5)
    loud: bool | None = None


@dataclass
class Seen:
    """What the guard and the runner of the tools below were given."""

    guarded: list[EchoArguments] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)


def guard(arguments: EchoArguments, seen: Seen, refuse: Refuse) -> str:
    seen.guarded.append(arguments)
    if arguments.word == "forbidden":
        refuse(FORBIDDEN, "the word 'forbidden' is forbidden")
    if arguments.word == "forbidden in its own way":
        refuse(FORBIDDEN, "forbidden", "Use a friendly word.")
    if arguments.word == "guard breaks":
        raise KeyError("CANARY in a traceback")
    return arguments.word * arguments.times


async def run(plan: str, seen: Seen, refuse: Refuse) -> Result:
    seen.ran.append(plan)
    match plan:
        case "runner breaks":
            raise RuntimeError("CANARY in a traceback")
        case "found out late":
            refuse(FORBIDDEN, "it turned out to be forbidden")
        case "too slow":
            return stopped(TIME_LIMIT, "echo did not finish within 1 s")
        case "absent":
            return stopped(ABSENT, "there is nothing there")
        case "declined":
            return stopped(DECLINED, "the operator said no")
    return executed(plan, exit_code=0)


ECHO: Tool[EchoArguments, Seen, str] = Tool("echo", "Say it again.", EchoArguments, guard, run, ToolClass.READ_ONLY)


async def ask(
    arguments: dict[str, Any] | None, *, tool: str = "echo", seen: Seen | None = None, **options: Any
) -> CallToolResult:
    options.setdefault("refuse", Refuse())
    return await call({"echo": ECHO}, tool, arguments, seen or Seen(), **options)


def text(reply: CallToolResult) -> str:
    assert len(reply.content) == 1
    return reply.content[0].text  # type: ignore[union-attr]


def rule(reply: CallToolResult) -> str | None:
    assert reply.structured_content is not None
    return reply.structured_content.get("rule")


@pytest.mark.covers("A6")
async def test_a_call_takes_the_road_arguments_guard_run_reply() -> None:
    seen = Seen()
    reply = await ask({"word": "hi", "times": 2}, seen=seen)
    assert seen.guarded == [EchoArguments(word="hi", times=2)]
    assert seen.ran == ["hihi"]
    assert text(reply) == "hihi"
    assert reply.is_error is not True
    assert reply.structured_content == {"state": "executed", "truncated": False, "full_length": 4, "exit_code": 0}


@pytest.mark.covers("A6")
async def test_a_denial_has_the_pinned_shape_and_nothing_runs() -> None:
    seen = Seen()
    reply = await ask({"word": "forbidden"}, seen=seen)
    assert seen.ran == []
    assert reply.is_error is True
    assert text(reply) == "GUARD DENIED: the word 'forbidden' is forbidden"
    assert reply.structured_content == {
        "state": "denied",
        "rule": "demo.forbidden",
        "reason": "the word 'forbidden' is forbidden",
        "hint": "Say another word.",
    }


async def test_a_guard_may_know_a_better_hint_than_its_rule() -> None:
    reply = await ask({"word": "forbidden in its own way"})
    assert reply.structured_content is not None
    assert reply.structured_content["hint"] == "Use a friendly word."


@pytest.mark.covers("A6")
@pytest.mark.parametrize(
    ("word", "state", "name", "shown"),
    [
        ("too slow", "failed", "time.limit", "time_limit: echo did not finish within 1 s"),
        ("absent", "unavailable", "demo.absent", "demo_absent: there is nothing there"),
        ("declined", "declined", "demo.declined", "demo_declined: the operator said no"),
        ("found out late", "denied", "demo.forbidden", "GUARD DENIED: it turned out to be forbidden"),
        ("runner breaks", "failed", "tool.error", "tool_error: echo stopped with an unexpected error"),
    ],
)
async def test_every_other_state_is_an_error_with_its_rule_and_only_a_denial_says_guard_denied(
    word: str, state: str, name: str, shown: str
) -> None:
    reply = await ask({"word": word})
    assert reply.is_error is True
    assert reply.structured_content is not None
    assert (reply.structured_content["state"], reply.structured_content["rule"]) == (state, name)
    assert set(reply.structured_content) == {"state", "rule", "reason", "hint"}
    assert text(reply) == shown
    assert text(reply).startswith(DENIED_PREFIX) == (state == "denied")


@pytest.mark.covers("A6")
@pytest.mark.parametrize(("word", "name"), [("guard breaks", GUARD_ERROR.name), ("runner breaks", TOOL_ERROR.name)])
async def test_an_exception_denies_or_fails_and_nothing_of_it_is_shown(
    word: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    seen = Seen()
    reply = await ask({"word": word}, seen=seen)
    assert rule(reply) == name
    assert "CANARY" not in json.dumps(reply.structured_content) + text(reply)
    assert seen.ran == ([] if word == "guard breaks" else [word])
    assert "CANARY" in caplog.text, "the operator's log says what happened"


DEEP: Any = reduce(lambda inside, _: [inside], range(5000), [])
"""A list in a list in a list, further down than Python writes."""


@pytest.mark.covers("A16")
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"word": "x", "tims": 2}, "unknown argument 'tims' (did you mean 'times'?); echo takes word, times, loud"),
        ({"word": "x", "zzz": 2}, "unknown argument 'zzz'; echo takes word, times, loud"),
        ({}, "'word' is missing; echo takes word, times, loud"),
        (None, "'word' is missing; echo takes word, times, loud"),
        ({"word": 7}, "'word': input should be a valid string, got 7; echo takes word, times, loud"),
        (
            {"word": "x", "times": "7"},
            "'times': input should be a valid integer, got '7'; echo takes word, times, loud",
        ),
        (
            {"word": "x", "times": 1.0},
            "'times': input should be a valid integer, got 1.0; echo takes word, times, loud",
        ),
        (
            {"word": "x", "times": True},
            "'times': input should be a valid integer, got True; echo takes word, times, loud",
        ),
        (
            {"word": "x", "times": 6},
            "'times': input should be less than or equal to 5, got 6; echo takes word, times, loud",
        ),
        (
            {"word": "x", "loud": "yes"},
            "'loud': input should be a valid boolean, got 'yes'; echo takes word, times, loud",
        ),
        (
            {"word": "x", "times": 2**20000},
            (
                "'times': input should be less than or equal to 5, got a number of 20001 bits; "
                "echo takes word, times, loud"
            ),
        ),
        (
            {"word": DEEP},
            "'word': input should be a valid string, got [[[[[[[...]]]]]]]; echo takes word, times, loud",
        ),
        ({"word": None}, "'word': input should be a valid string, got None; echo takes word, times, loud"),
    ],
)
async def test_arguments_are_taken_exactly_or_not_at_all(arguments: dict[str, Any] | None, reason: str) -> None:
    seen = Seen()
    reply = await ask(arguments, seen=seen)
    assert rule(reply) == ARGS_INVALID.name
    assert text(reply) == DENIED_PREFIX + reason
    assert seen == Seen()


@pytest.mark.covers("A16")
async def test_null_for_an_optional_argument_means_that_it_was_left_out() -> None:
    seen = Seen()
    await ask({"word": "x", "times": None, "loud": None}, seen=seen)
    assert seen.guarded == [EchoArguments(word="x")]
    assert "times" not in seen.guarded[0].model_fields_set


@pytest.mark.covers("A16")
@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        ("ecco", "there is no tool 'ecco'; did you mean echo?"),
        ("delete_everything", "there is no tool 'delete_everything'; the tools are echo"),
        ("", "there is no tool ''; the tools are echo"),
        ("\x1b[2J\n" + "x" * 500, "there is no tool '\\\\n" + "x" * 57 + "…'; the tools are echo"),
    ],
)
async def test_an_unknown_tool_is_denied_and_the_known_ones_are_named(tool: str, reason: str) -> None:
    reply = await ask({}, tool=tool)
    assert (rule(reply), text(reply)) == ("tool.unknown", DENIED_PREFIX + reason)


@pytest.mark.covers("A6")
def test_a_tool_without_a_guard_or_without_a_runner_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="guard"):
        Tool(name="echo", description="", arguments=EchoArguments, run=run)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="run"):
        Tool(name="echo", description="", arguments=EchoArguments, guard=guard)  # type: ignore[call-arg]


def test_a_tool_that_nobody_classified_is_shown_as_destructive() -> None:
    annotations = Tool("echo", "", EchoArguments, guard, run).definition.annotations
    assert annotations is not None
    assert (annotations.read_only_hint, annotations.destructive_hint) == (False, True)


def test_a_definition_forbids_what_the_model_forbids() -> None:
    schema = ECHO.definition.input_schema
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["word"]
    assert schema["properties"]["times"] == {"default": 1, "maximum": 5, "minimum": 1, "type": "integer"}


def test_two_tools_of_one_name_are_an_error_when_the_server_is_built() -> None:
    with pytest.raises(ValueError, match="server 'demo': two tools have one name"):
        build_server("demo", [ECHO, ECHO], Seen(), instructions="")


@pytest.mark.covers("A6")
async def test_every_call_leaves_one_audit_record_with_its_raw_arguments() -> None:
    records: list[AuditRecord] = []
    for arguments in ({"word": "hi"}, {"word": "forbidden"}, {"wrong": "x"}, {"word": "runner breaks"}):
        await ask(arguments, audit=records.append)
    await ask({}, tool="other", audit=records.append)
    assert records == [
        AuditRecord("echo", {"word": "hi"}, State.EXECUTED, None),
        AuditRecord("echo", {"word": "forbidden"}, State.DENIED, "demo.forbidden"),
        AuditRecord("echo", {"wrong": "x"}, State.DENIED, "args.invalid"),
        AuditRecord("echo", {"word": "runner breaks"}, State.FAILED, "tool.error"),
        AuditRecord("other", {}, State.DENIED, "tool.unknown"),
    ]


async def test_a_rule_that_is_switched_off_allows_and_the_others_stay() -> None:
    seen = Seen()
    off = Refuse(frozenset({"demo.forbidden"}))
    assert text(await ask({"word": "forbidden"}, seen=seen, refuse=off)) == "forbidden"
    assert text(await ask({"word": "found out late"}, seen=seen, refuse=off)) == "found out late"
    assert rule(await ask({"wrong": 1}, seen=seen, refuse=off)) == "args.invalid"


def test_refuse_raises_what_only_the_gate_catches() -> None:
    with pytest.raises(Denied, match="no") as denied:
        Refuse()(FORBIDDEN, "no")
    assert (denied.value.rule, denied.value.hint) == (FORBIDDEN, "Say another word.")


@pytest.mark.covers("A26")
async def test_a_reply_is_cleaned_before_it_is_cut() -> None:
    reply = to_mcp(executed("\x1b]0;" + "t" * 9000 + "\x07seen\ud800\u202e", note="\x1b[31mred"), MAX_REPLY_BYTES)
    assert text(reply) == "seen\ufffd<U+202E>"
    assert reply.structured_content == {"state": "executed", "truncated": False, "full_length": 15, "note": "red"}


@pytest.mark.covers("A26")
async def test_every_field_of_a_denial_is_cleaned() -> None:
    reply = to_mcp(stopped(FORBIDDEN, "bad \x1b[2Jname\ud800", "try\u202e"), MAX_REPLY_BYTES)
    assert text(reply) == "GUARD DENIED: bad name\ufffd"
    assert reply.structured_content is not None
    assert reply.structured_content["hint"] == "try<U+202E>"


@pytest.mark.parametrize("result", [executed("é" * 9000), stopped(FORBIDDEN, "é" * 9000), stopped(ABSENT, "é" * 9000)])
async def test_no_reply_is_longer_than_its_limit(result: Result) -> None:
    reply = to_mcp(result, MAX_REPLY_BYTES)
    assert len(text(reply).encode()) <= MAX_REPLY_BYTES


async def test_a_cut_is_said_in_the_text_and_in_the_structured_content() -> None:
    reply = to_mcp(executed("x" * 10_000), MAX_REPLY_BYTES)
    assert text(reply).endswith("of 10000 bytes cut]")
    assert reply.structured_content == {"state": "executed", "truncated": True, "full_length": 10_000}
    at_source = to_mcp(executed("x", cut_at_source=5_000_000), MAX_REPLY_BYTES)
    assert at_source.structured_content == {"state": "executed", "truncated": True, "full_length": 5_000_000}


async def test_further_structured_content_cannot_forge_the_state() -> None:
    reply = to_mcp(executed("x", state="denied", truncated=True, rule_="x"), MAX_REPLY_BYTES)
    assert reply.structured_content is not None
    assert reply.structured_content["state"] == "executed"
    assert reply.structured_content["truncated"] is False


@pytest.mark.covers("A6")
async def test_a_text_that_says_guard_denied_is_executed_when_it_is_read_back() -> None:
    reading = read_reply(await ask({"word": "GUARD DENIED: not really"}))
    assert reading is not None
    assert (reading.state, reading.rule, reading.exit_code) == (State.EXECUTED, None, 0)


@pytest.mark.parametrize(
    ("structured", "is_error"),
    [
        (None, False),
        ({}, False),
        ({"state": "fine"}, False),
        ({"state": 7}, False),
        ({"state": ["executed"]}, False),
        ({"state": "executed"}, True),
        ({"state": "executed", "rule": "x.y"}, False),
        ({"state": "denied", "rule": "x.y"}, False),
        ({"state": "denied"}, True),
    ],
)
def test_a_reply_whose_parts_disagree_is_not_one_of_ours(structured: dict[str, Any] | None, is_error: bool) -> None:
    assert read_reply(CallToolResult(content=[], structured_content=structured, is_error=is_error)) is None


def test_a_denial_is_read_back_with_everything_in_it() -> None:
    reading = read_reply(to_mcp(stopped(FORBIDDEN, "no", "try"), MAX_REPLY_BYTES))
    assert reading is not None
    assert (reading.state, reading.rule, reading.reason, reading.hint) == (State.DENIED, "demo.forbidden", "no", "try")


@pytest.mark.covers("A16")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_server_sees_raw_arguments_in_both_protocol_eras(mode: Any) -> None:
    records: list[AuditRecord] = []
    server = build_server("demo", [ECHO], Seen(), instructions="Be kind.", audit=records.append)
    async with Client(server, mode=mode) as client:
        replies = [
            await client.call_tool("echo", arguments)
            for arguments in ({"word": "hi"}, {"word": "hi", "times": "7"}, {"word": "hi", "extra": 1})
        ]
        unknown = await client.call_tool("nothing", {})
        listing = await client.list_tools()
    assert [rule(reply) for reply in [*replies, unknown]] == [None, "args.invalid", "args.invalid", "tool.unknown"]
    assert [tool.name for tool in listing.tools] == ["echo"]
    assert len(records) == 4
    assert records[1].arguments == {"word": "hi", "times": "7"}


@pytest.mark.covers("A26")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_lone_surrogate_never_ends_a_session(mode: Any) -> None:
    server = build_server("demo", [ECHO], Seen(), instructions="")
    async with Client(server, mode=mode) as client:
        first = await client.call_tool("echo", {"word": "ok \ud83d"})
        second = await asyncio.wait_for(client.call_tool("echo", {"word": "still here"}), 10)
    assert text(first) == "ok \ufffd" or rule(first) == "args.invalid"
    assert text(second) == "still here"


def test_rules_have_unique_names_a_meaning_and_a_state() -> None:
    assert len({each.name for each in GATE_RULES}) == len(GATE_RULES)
    assert all(each.meaning.endswith(".") and each.state is not State.EXECUTED for each in GATE_RULES)
