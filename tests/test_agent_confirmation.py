"""`mcp-ops agent` on a terminal: every write is shown in full and asked about, and only a yes is a yes."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pseudo_terminal import CTRL_C, CTRL_D, Screen, on_a_terminal, without_colours
from scripted_model import ScriptedModel, calls, says, scripted_model

from mcp_ops.trace.reader import Trace, read_trace

pytestmark = pytest.mark.covers("D8")

QUESTION = "Send create_note of server notes? [y/N] "
NOTE = {"title": "Restart the cache", "body": "It is full."}


class Desk:
    """Where a person sits: the notes, the runs, and the agent to start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "notes").mkdir()

    @contextmanager
    def agent(self, model: ScriptedModel, *options: str, **terminal: Any) -> Iterator[Screen]:
        server = f"notes={sys.executable} {Path(__file__).parent / 'notes_server.py'} {self.folder / 'notes'}"
        command = [sys.executable, "-m", "mcp_ops.cli", "agent", "Write it down.", "--server", server]
        command += ["--runs", str(self.folder / "runs"), *options]
        env = {"PATH": os.environ["PATH"], "TERM": "xterm", **model.environment}
        with on_a_terminal(command, env, **terminal) as screen:
            yield screen

    @property
    def written(self) -> list[dict[str, Any]]:
        """The arguments of every call that reached the server and changed something."""
        return [json.loads(path.read_text("utf-8")) for path in sorted((self.folder / "notes").iterdir())]

    @property
    def trace(self) -> Trace:
        (run,) = (self.folder / "runs").iterdir()
        return read_trace(run / "trace.jsonl")

    @property
    def confirmations(self) -> list[tuple[str, str, str]]:
        given = [event.payload for event in self.trace.events if event.event == "confirmation"]
        return [(each.answer, each.by, each.why) for each in given]

    @property
    def states(self) -> list[tuple[str, str | None]]:
        results = [event.payload for event in self.trace.events if event.event == "tool_result"]
        return [(each.state, each.rule) for each in results]


DECLINED = ("declined", "confirm.declined")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def one_write(note: Mapping[str, Any] = NOTE) -> tuple[dict[str, Any], dict[str, Any]]:
    return calls(("create_note", note)), says("So be it.")


def test_a_yes_sends_the_call(desk: Desk) -> None:
    with scripted_model(*one_write()) as model, desk.agent(model) as screen:
        shown = screen.until(QUESTION)
        assert desk.written == []
        screen.type("y\n")
        assert screen.end() == 0
    assert desk.written == [NOTE]
    assert "create_note, a mutating tool of server notes:" in shown
    assert "title:\n    | Restart the cache\n  body:\n    | It is full.\n" in shown
    assert "| So be it." in screen.shown
    assert desk.confirmations == [("yes", "person", "")]


def test_a_no_is_told_to_the_model_and_nothing_is_sent(desk: Desk) -> None:
    with scripted_model(*one_write()) as model, desk.agent(model) as screen:
        screen.until(QUESTION)
        screen.type("n\n")
        assert screen.end() == 0
    assert desk.written == []
    assert desk.confirmations == [("no", "person", "")]
    assert desk.states == [DECLINED]
    assert "create_note was not confirmed" in json.dumps(model.requests[1])


def test_the_end_of_the_input_is_a_no(desk: Desk) -> None:
    with scripted_model(*one_write()) as model, desk.agent(model) as screen:
        screen.until(QUESTION)
        screen.type(CTRL_D)
        assert screen.end() == 0
    assert desk.written == []
    assert desk.confirmations == [("no", "person", "the input ended")]


def test_ctrl_c_at_the_question_is_a_no_and_the_run_goes_on(desk: Desk) -> None:
    with scripted_model(*one_write()) as model, desk.agent(model) as screen:
        screen.until(QUESTION)
        screen.type(CTRL_C)
        assert screen.end() == 0
    assert desk.written == []
    assert desk.confirmations == [("no", "person", "Ctrl-C")]
    assert desk.states == [DECLINED]
    assert "| So be it." in screen.shown


def test_a_second_ctrl_c_ends_the_program_and_the_trace_is_whole(desk: Desk) -> None:
    twice = calls(("create_note", NOTE), ("create_note", {"title": "another"}))
    with scripted_model(twice) as model, desk.agent(model) as screen:
        screen.until(QUESTION)
        screen.type(CTRL_C)
        screen.until(QUESTION)
        screen.type(CTRL_C)
        assert screen.end() == 130
    assert desk.written == []
    assert desk.trace.finish is not None
    assert (desk.trace.finish.finish, desk.trace.finish.error) == ("error", "the run was interrupted")
    assert "Traceback" not in screen.shown


def test_ctrl_c_while_the_model_thinks_ends_the_program_and_its_server(desk: Desk) -> None:
    with scripted_model(says("too late"), held=True) as model, desk.agent(model) as screen:
        assert model.asked.acquire(timeout=60)
        server = int((desk.folder / "server.pid").read_text("utf-8"))
        os.kill(server, 0)
        screen.type(CTRL_C)
        assert screen.end() == 130
        with pytest.raises(ProcessLookupError):
            os.kill(server, 0)
    assert desk.trace.finish is not None
    assert "mcp-ops: interrupted" in screen.shown
    assert "Traceback" not in screen.shown


def test_what_was_typed_before_the_question_does_not_answer_it(desk: Desk) -> None:
    with scripted_model(*one_write(), held=True) as model, desk.agent(model) as screen:
        assert model.asked.acquire(timeout=60)
        screen.type("y\nyes\n")
        screen.until("yes\n")  # the terminal has taken it: it echoes what it takes
        model.may_reply.set()
        screen.until(QUESTION)
        screen.type("n\n")
        assert screen.end() == 0
    assert desk.written == []
    assert desk.confirmations == [("no", "person", "")]


def test_two_equal_writes_of_one_turn_are_asked_about_twice(desk: Desk) -> None:
    twice = calls(("create_note", NOTE), ("create_note", NOTE))
    with scripted_model(twice, says("x")) as model, desk.agent(model) as screen:
        screen.until(QUESTION)
        screen.type("y\n")
        screen.until(QUESTION)
        screen.type("n\n")
        assert screen.end() == 0
    assert desk.written == [NOTE]
    assert desk.confirmations == [("yes", "person", ""), ("no", "person", "")]


def test_the_question_reaches_the_person_when_input_and_output_are_pipes(desk: Desk) -> None:
    with scripted_model(*one_write()) as model, desk.agent(model, piped=True) as screen:
        screen.until(QUESTION)
        screen.type("y\n")
        assert screen.end() == 0
    assert desk.written == [NOTE]


def test_nothing_in_an_argument_acts_on_the_terminal(desk: Desk) -> None:
    hostile = {"body": "\x1b[2J\x1b]0;title\x07\rover\x08\u202eevil\x9b1m", "k\x1b[2Jey": 1}
    with scripted_model(*one_write(hostile)) as model, desk.agent(model, columns=160) as screen:
        shown = without_colours(screen.until(QUESTION))
        screen.type("n\n")
        assert screen.end() == 0
    whole = without_colours(screen.shown)
    assert [each for each in ("\x1b", "\x07", "\x08", "\u202e", "\x9b") if each in whole] == []
    assert "    | <U+001B>[2J<U+001B>]0;title<U+0007><U+000D>over<U+0008><U+202E>evil<U+009B>1m\n" in shown
    assert "  k<U+001B>[2Jey: 1\n" in shown


def test_a_call_that_is_longer_than_the_screen_is_shown_page_by_page_before_the_question(desk: Desk) -> None:
    note = {"body": "\n".join(f"line {number}" for number in range(50)) + "\nTHE END"}
    more = "of 53 lines; Enter shows more, anything else is no] "
    with scripted_model(*one_write(note)) as model, desk.agent(model, rows=24) as screen:
        pages = [screen.until(more)]
        assert "[y/N]" not in screen.shown
        for end in (more, "Send create_note of server notes, with all 53 lines above? [y/N] "):
            screen.type("\n")
            pages.append(screen.until(end))
        screen.type("y\n")
        assert screen.end() == 0
    assert desk.written == [note]
    # No page is higher than the screen, so that nothing scrolls away before Enter.
    assert all(page.count("\n") <= 24 for page in pages[1:])
    rows = [row for page in pages for row in page.split("\n") if row.startswith("    | ")]
    assert rows == [f"    | line {number}" for number in range(50)] + ["    | THE END"]
