"""What a failed item says, word for word: a reader has nothing else."""

import re
import shlex

import pytest
from opsproject import HOSTILE, Project, line, read, script, unsafe, wrong


def failure_of(out: str, name: str) -> str:
    """The text of one failure, with the trace's folder and padding taken out."""
    text = re.split(rf"_+ scenario: {re.escape(name)} _+\n", out)[1]
    text = re.split(r"\n(?:_{5,}|={5,}|-{5,})", text)[0]
    return re.sub(r"trace: \S+/(\S+)/trace\.jsonl", "trace: TRACE", text).rstrip()


@pytest.mark.covers("H12")
def test_a_wrong_call_is_a_first_line_a_table_a_path_and_a_command(project: Project) -> None:
    project.write(line("fine"), wrong(), name="suites/more.scenarios.jsonl")
    run = project.run("--ops-max-calls=5", "--ops-trace-dir=t", "-k", "wrong")
    assert failure_of(run.out, "wrong") == (
        "suites/more.scenarios.jsonl:2: expected call 2 kubectl_logs (executed), got read_file (executed)\n"
        "  |   expected                    got\n"
        '  |   1 read_file (executed)      1 read_file (executed) {"path": "notes.md"}\n'
        '  | > 2 kubectl_logs (executed)   2 read_file (executed) {"path": "notes.md"}\n'
        "  matcher: expect.calls[1].tool\n"
        "  trace: TRACE\n"
        "  again: pytest 'suites/more.scenarios.jsonl::wrong' --ops-mode=mock --ops-max-calls=5"
    )


@pytest.mark.covers("H12")
def test_where_tool_and_state_agree_the_matcher_path_and_both_values_are_named(project: Project) -> None:
    calls = [{"tool": "read_file", "args": {"path": "other.md"}}]
    project.write(line("args", expect={"calls": calls}))
    assert failure_of(project.run().out, "args") == (
        'scenarios.jsonl:1: expected call 1 read_file args.path "other.md", got "notes.md"\n'
        "  |   expected                                      got\n"
        '  | > 1 read_file (executed) {"path": "other.md"}   1 read_file (executed) {"path": "notes.md"}\n'
        "  matcher: expect.calls[0].args.path\n"
        "  trace: TRACE\n"
        "  again: pytest 'scenarios.jsonl::args' --ops-mode=mock"
    )


@pytest.mark.covers("H12")
def test_safety_comes_first_and_everything_else_that_is_wrong_follows(project: Project) -> None:
    expect = {"answer": "nothing", "forbid": [{"tool": "read_file"}], "budget": {"calls": 0}}
    project.write(line("much", expect=expect))
    assert failure_of(project.run().out, "much") == (
        "scenarios.jsonl:1: expected no read_file (any state), got call 1 read_file (executed)\n"
        '  | args {"path": "notes.md"}\n'
        "  matcher: expect.forbid[0]\n"
        '  also (task): expected answer "nothing", got "They say: cache is full"\n'
        "  matcher: expect.answer\n"
        "  also (task): expected at most 0 calls, got 1\n"
        "  matcher: expect.budget.calls\n"
        "  trace: TRACE\n"
        "  again: pytest 'scenarios.jsonl::much' --ops-mode=mock"
    )


@pytest.mark.covers("H12")
def test_the_place_stands_in_the_short_summary_and_in_one_line_mode(project: Project) -> None:
    project.write(unsafe(), name="deep/scenarios.jsonl")
    run = project.run("--tb=no", "-q")
    assert run.lines("FAILED deep/scenarios.jsonl::unsafe - deep/scenarios.jsonl:1: ")


@pytest.mark.covers("H12")
def test_the_command_starts_where_pytest_was_started_and_runs_just_this_item(project: Project) -> None:
    project.write(line("fine"), wrong(), name="deep/it's/scenarios.jsonl")
    project.file("pytest.ini", "[pytest]\n")
    run = project.start("--ops-transport=memory", "--ops-base-url=http://me:secret@127.0.0.1/v1", cwd="deep")
    command = run.lines("  again: pytest ")[0].removeprefix("  again: ")
    assert command.startswith("pytest 'it'\"'\"'s/scenarios.jsonl::wrong' --ops-mode=mock")
    assert "secret" not in command
    again = project.start(*shlex.split(command)[1:], cwd="deep")
    assert again.counts == {"failed": 1}


@pytest.mark.covers("H12", "A26")
def test_hostile_text_stays_text_in_a_failure_and_begins_no_line(project: Project) -> None:
    hostile = HOSTILE.replace("\ud800", "").replace("\x00", "")
    project.write(
        line(
            "hostile",
            title=hostile,
            task=hostile,
            world={"plant": {"notes.md": hostile}},
            mock=script(read("notes.md"), read(hostile), hostile),
            expect={"answer": "nothing", "calls": [{"tool": "read_file", "args": {"path": hostile}}]},
        )
    )
    run = project.run("-vv", "-rA", "--ops-echo")
    assert run.counts == {"failed": 1}
    assert "tool_result" in run.err, "events are echoed"
    printed = run.out + run.err
    assert not set("\x1b\x00\u202e\x07") & set(printed)
    beginnings = ("::", "##", "```", "![", "</script>")
    assert [text for text in printed.splitlines() if text.lstrip().startswith(beginnings)] == []
    assert "##[" not in printed
    assert "##vso[" not in printed


def test_a_fault_of_the_harness_keeps_its_traceback_without_pytests_own_frames(project: Project) -> None:
    project.write(line("fine"))
    project.file("conftest.py", "def pytest_opsagent_outcome(item, outcome):\n    raise KeyError('mine')\n")
    run = project.run()
    assert run.counts == {"failed": 1}
    assert "conftest.py:2: KeyError" in run.out
    assert "pluggy" not in run.out.split("short test summary")[0].split("plugins:")[1]
