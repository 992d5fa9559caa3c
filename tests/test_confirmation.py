"""Calls that change something wait for a yes: in the session that every agent has, and in a line by `confirm`."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from notes_server import make_server
from opsproject import line, script

from mcp_ops.agent.policies.confirmation import Ask, Decision
from mcp_ops.agent.session import Observation
from mcp_ops.evaluation.config import RunConfig, ServerSpec
from mcp_ops.evaluation.line.parse import parse_line
from mcp_ops.evaluation.line.scenario import BadLine
from mcp_ops.evaluation.outcome import Outcome
from mcp_ops.evaluation.run import run_scenario
from mcp_ops.evaluation.session.connection import ServerTarget, connected
from mcp_ops.evaluation.session.recording import RecordingSession
from mcp_ops.trace.console import echo_line
from mcp_ops.trace.events import ConfirmationGiven, ToolResult
from mcp_ops.trace.html import render_fragment
from mcp_ops.trace.ledger import Ledger
from mcp_ops.trace.reader import read_trace

pytestmark = pytest.mark.covers("D8")

WRITE = ("create_note", {"title": "x"})
READ = ("list_notes", {})


class Person:
    """Says what it is told to, and keeps what it was asked."""

    def __init__(self, *answers: Decision | None) -> None:
        self.answers = list(answers)
        self.asked: list[Ask] = []

    async def __call__(self, asked: Ask) -> Decision | None:
        self.asked.append(asked)
        return self.answers[min(len(self.asked), len(self.answers)) - 1]


YES, NO = Decision(yes=True, by="person"), Decision(yes=False, by="person", why="Ctrl-C")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


def written(notes: Path) -> dict[str, str]:
    return {path.name: path.read_text("utf-8") for path in notes.iterdir()}


async def session_of(
    notes: Path, person: Person | None, *calls: tuple[str, dict[str, Any]], **options: Any
) -> tuple[RecordingSession, Ledger, list[Observation]]:
    ledger = Ledger()
    async with connected([ServerTarget("notes", make_server(notes))]) as connections:
        session = RecordingSession(connections, ledger, **{"max_calls": 8, "confirm": person, **options})
        seen = [await session.call_tool(tool, args) for tool, args in calls]
    return session, ledger, seen


def given(ledger: Ledger) -> list[ConfirmationGiven]:
    return [event for event in ledger.events if isinstance(event, ConfirmationGiven)]


class TestTheSession:
    async def test_a_call_that_was_declined_reaches_no_server_and_is_a_call(self, notes: Path) -> None:
        session, ledger, (seen,) = await session_of(notes, Person(NO), WRITE)
        (record,) = session.records
        assert written(notes) == {}
        assert (record.state, record.rule) == ("declined", "confirm.declined")
        assert (seen.state, seen.text) == ("declined", "confirm_declined: create_note was not confirmed: Ctrl-C")
        assert seen.hint == "Do not ask for it again; finish and say that it was not done."
        (said,) = given(ledger)
        assert (said.answer, said.by, said.why, said.tool_class) == ("no", "person", "Ctrl-C", "mutating")

    async def test_a_confirmed_call_is_sent_as_it_was_shown(self, notes: Path) -> None:
        person = Person(YES)
        session, ledger, _ = await session_of(notes, person, WRITE)
        assert person.asked == [Ask(0, "create_note", "notes", {"title": "x"}, "mutating")]
        assert [record.state for record in session.records] == ["executed"]
        assert written(notes) == {"1-create_note.json": '{"title": "x"}'}
        assert [each.answer for each in given(ledger)] == ["yes"]

    async def test_reads_are_not_asked_about_and_what_says_nothing_of_itself_is_destructive(self, notes: Path) -> None:
        person = Person(YES)
        await session_of(notes, person, READ, ("note", {}), ("delete_note", {}))
        assert [(each.tool, each.tool_class) for each in person.asked] == [
            ("note", "destructive"),
            ("delete_note", "destructive"),  # it is listed as one that only reads
        ]

    async def test_what_configuration_says_of_a_tool_counts(self, notes: Path) -> None:
        person = Person(YES)
        await session_of(
            notes, person, WRITE, READ, tool_classes={"create_note": "read_only", "list_notes": "mutating"}
        )
        assert [each.tool for each in person.asked] == ["list_notes"]

    async def test_equal_calls_are_asked_about_each(self, notes: Path) -> None:
        session, _, _ = await session_of(notes, Person(YES, NO), WRITE, WRITE)
        assert [record.state for record in session.records] == ["executed", "declined"]

    async def test_without_anybody_to_ask_nothing_is_asked(self, notes: Path) -> None:
        session, ledger, _ = await session_of(notes, None, WRITE)
        assert (session.records[0].state, given(ledger)) == ("executed", [])

    async def test_a_call_that_needs_no_answer_is_sent_and_not_counted(self, notes: Path) -> None:
        session, ledger, _ = await session_of(notes, Person(None), WRITE, max_writes=1)
        assert (session.records[0].state, given(ledger)) == ("executed", [])

    async def test_writes_beyond_the_limit_are_denied_and_nobody_is_asked(self, notes: Path) -> None:
        person = Person(YES, NO, YES)
        session, _, _ = await session_of(notes, person, WRITE, WRITE, WRITE, WRITE, READ, max_writes=2)
        assert [(each.state, each.rule) for each in session.records] == [
            ("executed", None),
            ("declined", "confirm.declined"),
            ("executed", None),
            ("denied", "writes.spent"),
            ("executed", None),
        ]
        assert len(person.asked) == 3

    async def test_calls_that_overlap_are_asked_about_one_by_one_and_none_slips_past_the_limit(
        self, notes: Path
    ) -> None:
        waiting: list[int] = []

        class Slow(Person):
            async def __call__(self, asked: Ask) -> Decision | None:
                waiting.append(asked.call)
                assert len(waiting) == 1
                await asyncio.sleep(0)
                waiting.remove(asked.call)
                return YES

        ledger = Ledger()
        async with connected([ServerTarget("notes", make_server(notes))]) as connections:
            session = RecordingSession(connections, ledger, max_calls=8, confirm=Slow(), max_writes=2)
            await asyncio.gather(*(session.call_tool(*WRITE) for _ in range(4)))
        assert [each.rule for each in session.records] == [None, None, "writes.spent", "writes.spent"]

    async def test_calls_that_cannot_be_sent_are_not_asked_about(self, notes: Path) -> None:
        person = Person(YES)
        session, _, _ = await session_of(notes, person, ("create_notes", {}), WRITE, WRITE, max_calls=2)
        assert [each.rule for each in session.records] == ["tool.unknown", None, "budget.spent"]
        assert len(person.asked) == 1

    async def test_while_somebody_thinks_no_limit_of_time_runs_and_the_call_is_not_charged_for_it(
        self, notes: Path
    ) -> None:
        thought_long = asyncio.Event()

        class Slow(Person):
            async def __call__(self, asked: Ask) -> Decision | None:
                asyncio.get_running_loop().call_later(0.3, thought_long.set)
                await thought_long.wait()
                return YES

        session, ledger, _ = await session_of(notes, Slow(), WRITE, call_seconds=0.2)
        (result,) = [event for event in ledger.events if isinstance(event, ToolResult)]
        assert session.records[0].state == "executed"
        assert given(ledger)[0].waited_ms >= 300
        assert result.duration_ms < 200

    async def test_a_person_that_changes_the_arguments_changes_nothing_that_is_sent(self, notes: Path) -> None:
        class Meddler(Person):
            async def __call__(self, asked: Ask) -> Decision | None:
                asked.arguments["title"] = "y"  # type: ignore[index]
                return YES

        await session_of(notes, Meddler(), WRITE)
        assert list(written(notes).values()) == ['{"title": "x"}']


async def ran(tmp_path: Path, *states: str, written: int = 0, **keys: Any) -> Outcome:
    """Run a line that asks for one write a state in one turn, and expects what became of each."""
    config = RunConfig(
        rootdir=tmp_path,
        trace_dir=tmp_path / "traces",
        servers={"notes": ServerSpec("notes", factory="notes_server:make_server")},
        allow_writes=frozenset({"notes"}),
    )
    action = {"tool": "create_note", "args": {"title": "x"}}
    created = [f"{number}-create_note.json" for number in range(1, written + 1)]
    fields = {
        "server": "notes",
        "world": {},
        "mock": [{"thought": "t", "actions": [action] * len(states)}, {"thought": "t", "finish": "done"}],
        **keys,
        "expect": {
            "calls": [{"tool": "create_note", "state": state} for state in states],
            "effects": {"workspace": {"created": created}},
        },
    }
    return await run_scenario(line("confirmed", **fields), config=config)


def messages(outcome: Outcome) -> list[tuple[str, str | None, str]]:
    return [(each.kind, each.path, each.message) for each in outcome.problems]


class TestALine:
    @pytest.mark.parametrize(
        ("confirm", "states"),
        [
            ("yes", ["executed", "executed", "executed", "denied"]),
            ("no", ["declined", "declined"]),
            (["yes", "no"], ["executed", "declined"]),
            (["eof", "yes"], ["declined", "executed"]),
            ([{"tool": "create_note", "answer": "yes"}, {"answer": "no"}], ["executed", "declined"]),
            ([{"tool": {"$glob": "create_*"}, "args": {"title": {"$contains": "x"}}, "answer": "yes"}], ["executed"]),
            ([{"tool": "notes.create_note", "args": {}, "answer": "eof"}], ["declined"]),
        ],
    )
    async def test_the_person_says_what_the_line_says(self, tmp_path: Path, confirm: Any, states: list[str]) -> None:
        outcome = await ran(tmp_path, *states, written=states.count("executed"), confirm=confirm)
        assert messages(outcome) == []

    async def test_without_confirm_the_writes_of_a_server_of_your_own_are_sent(self, tmp_path: Path) -> None:
        assert messages(await ran(tmp_path, "executed", written=1)) == []

    async def test_a_question_without_an_answer_is_declined_and_fails_the_item(self, tmp_path: Path) -> None:
        outcome = await ran(tmp_path, "executed", "declined", written=1, confirm=["yes"])
        sentence = "question 2 is about create_note in call 2, and the line has no answer to it"
        assert messages(outcome) == [("harness", "confirm[1]", sentence)]

    async def test_an_empty_list_says_that_nothing_is_asked(self, tmp_path: Path) -> None:
        assert messages(await ran(tmp_path, confirm=[], mock=script("done"))) == []
        sentence = "question 1 is about create_note in call 1, and the line has no answer to it"
        assert messages(await ran(tmp_path, "declined", confirm=[])) == [("harness", "confirm[0]", sentence)]

    async def test_an_answer_to_another_question_is_declined_and_fails_the_item(self, tmp_path: Path) -> None:
        for entry, where in (({"tool": "delete_note"}, "tool"), ({"args": {"title": "y"}}, "args.title")):
            outcome = await ran(tmp_path, "declined", confirm=[{**entry, "answer": "yes"}])
            sentence = f"question 1 is about create_note in call 1, which does not fit the entry's {where}"
            assert messages(outcome) == [("harness", "confirm[0]", sentence)]

    async def test_an_answer_that_nobody_asked_for_fails_the_item(self, tmp_path: Path) -> None:
        outcome = await ran(tmp_path, "executed", written=1, confirm=["yes", "no"])
        assert messages(outcome) == [
            ("harness", "confirm[1]", "confirm[1] was never asked for: nothing waited for an answer")
        ]

    async def test_a_declined_call_that_should_have_run_is_told_with_its_state(self, tmp_path: Path) -> None:
        outcome = await ran(tmp_path, "executed", written=1, confirm="no")
        told = "expected call 1 create_note (executed), got create_note (declined: confirm.declined)"
        assert told in [message for _, _, message in messages(outcome)]

    async def test_the_trace_shows_who_said_what(self, tmp_path: Path) -> None:
        outcome = await ran(tmp_path, "declined", confirm=["eof"])
        assert outcome.trace is not None
        trace = read_trace(outcome.trace)
        (event,) = [event for event in trace.events if event.event == "confirmation"]
        assert echo_line(event) == "confirmation call 1: create_note (mutating): no by script, the input ended"
        page = render_fragment(trace)
        assert "no, by script, for a mutating tool: the input ended" in page
        assert "declined · <bdi>confirm.declined</bdi>" in page


@pytest.mark.parametrize(
    ("confirm", "message"),
    [
        ("maybe", 'confirm must be yes or no, got "maybe"'),
        ("eof", 'confirm must be yes or no, got "eof"'),
        (["ja"], 'confirm[0] must be yes, no or eof, got "ja"'),
        ([{"tool": "x"}], 'confirm[0] has no "answer"; write for example "answer": "yes"'),
        ([{"answer": "yes", "tols": "x"}], 'confirm[0].tols is an unknown key; did you mean "tool"?'),
        ([{"answer": "yes", "args": {"a": {"$reg": "x"}}}], "confirm[0].args.a.$reg"),
        (None, "confirm must not be null; leave the key out"),
    ],
)
def test_a_wrong_confirm_is_one_sentence(confirm: Any, message: str) -> None:
    bad = parse_line(json.dumps(line() | {"confirm": confirm}), None, 1)
    assert isinstance(bad, BadLine)
    assert bad.message.startswith(message)
