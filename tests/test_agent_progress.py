"""The view of a run of `mcp-ops agent` while it goes on."""

import io

import pytest

from mcp_ops.cli.agent.progress import Progress, progress_on
from mcp_ops.text import Redactor
from mcp_ops.trace.events import LlmRequest, LlmResponse, Payload, ToolCall, ToolResult

pytestmark = pytest.mark.covers("D7")

CALL = ToolCall(call=0, turn=0, tool="list_notes", server="notes", args={"of": "ada"})
RUN: tuple[Payload, ...] = (
    LlmRequest(turn=0, messages=[]),
    LlmResponse(turn=0, text="::error::hidden", duration_ms=1234.0),
    CALL,
    ToolResult(call=0, tool="list_notes", server="notes", state="denied", rule="x.y", text="secret", duration_ms=50.0),
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, *payloads: Payload, alive: bool) -> str:
    progress = Progress(stream, alive=alive)
    for payload in payloads:
        progress.show(payload)
    return stream.getvalue()


def test_plain_lines_say_turns_and_calls_and_no_result() -> None:
    assert shown(io.StringIO(), *RUN, alive=False) == (
        'turn 1: the model replied in 1.2 s\ncall 1: list_notes of="ada" -> denied (x.y), 0.1 s\n'
    )


def test_a_live_line_says_what_is_waited_for_and_gives_way_to_what_came_of_it() -> None:
    stream = io.StringIO()
    assert shown(stream, *RUN[:1], alive=True) == "turn 1: the model 0 s"
    whole = shown(io.StringIO(), *RUN, alive=True)
    assert whole == (
        "turn 1: the model 0 s\r\x1b[Kturn 1: the model replied in 1.2 s\n"
        'call 1: list_notes of="ada" 0 s\r\x1b[Kcall 1: list_notes of="ada" -> denied (x.y), 0.1 s\n'
    )


def test_while_it_is_paused_the_terminal_is_left_alone_and_the_live_line_comes_back() -> None:
    stream = io.StringIO()
    progress = Progress(stream, alive=True)
    progress.show(CALL)
    with progress.paused():
        before = stream.getvalue()
        assert before.endswith("\r\x1b[K")
    assert stream.getvalue() == before + 'call 1: list_notes of="ada" 0 s'
    progress.end()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_nothing_from_outside_acts_on_the_terminal_and_secrets_are_left_out() -> None:
    stream = io.StringIO()
    progress = Progress(stream, alive=False)
    progress.set_redactor(Redactor({"hunter2hunter2": "KEY"}))
    hostile = CALL.model_copy(update={"tool": "::error::\x1b[2J\n##[x]\u202e", "args": {"a": "hunter2hunter2\r\x07"}})
    for payload in (hostile, RUN[-1].model_copy(update={"rule": "\x1b]0;x\x07"})):
        progress.show(payload)
    progress.say("\x1b[1A::warning::x\n::set-output::")
    text = stream.getvalue()
    assert [each for each in ("\x1b", "\x07", "\r", "\u202e", "hunter2", "##[", "\n::") if each in text] == []
    assert not text.startswith("::")
    assert text.count("\n") == 2


@pytest.mark.parametrize(("stream", "term", "alive"), [(Terminal(), "xterm", True), (Terminal(), "dumb", False)])
def test_only_a_terminal_that_can_erase_a_line_has_a_live_one(stream: io.StringIO, term: str, alive: bool) -> None:
    progress_on(stream, {"TERM": term}).show(CALL)
    assert bool(stream.getvalue()) is alive
    elsewhere = io.StringIO()
    progress_on(elsewhere, {"TERM": term}).show(CALL)
    assert elsewhere.getvalue() == ""
