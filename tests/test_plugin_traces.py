import json

import pytest
from opsproject import Project, denied, line, needy, wrong


@pytest.mark.covers("A20", "H14")
def test_by_default_only_failed_items_keep_their_traces_where_the_failure_says(project: Project) -> None:
    project.write(line("one"), wrong("two"), needy("three"))
    run = project.run(f"--basetemp={project.path / 'base'}")
    (trace,) = (project.path / "base").glob("**/trace.jsonl")
    assert f"  trace: {trace}" in run.out.splitlines()
    assert run.lines("traces: ") == [f"traces: {trace.parent.parent}"]
    first = json.loads(trace.read_text(encoding="utf-8").splitlines()[0])
    assert (first["event"], first["payload"]["scenario"], first["payload"]["location"]) == (
        "run_start",
        "two",
        "scenarios.jsonl:2",
    )
    assert [path.name for path in trace.parents[2].iterdir()] == ["traces"], "worlds are removed"
    assert "traces: " not in project.run("-k", "one").out


@pytest.mark.covers("A20")
def test_a_named_folder_keeps_all_traces_and_takes_more(project: Project) -> None:
    project.write(line("one"), wrong("two"))
    for count in (2, 4):
        run = project.run("--ops-trace-dir=kept/here")
        assert len(list((project.path / "kept/here").glob("*/trace.jsonl"))) == count
        assert run.lines("traces: ") == [f"traces: {project.path / 'kept/here'}"]


@pytest.mark.covers("A20")
@pytest.mark.parametrize("how", ["--ops-echo", "-s", "-oops_echo=true"])
def test_events_are_printed_as_they_happen_only_when_asked_for(how: str, project: Project) -> None:
    project.write(denied("guardrail"))
    loud = project.start(how)
    assert loud.code == 0
    assert "guard_denied" in loud.err
    assert "shell.binary" in loud.err
    assert [
        text
        for text in loud.err.splitlines()
        if text and not text.startswith(("run", "llm", "tool", "guard", "r-", "[", " "))
    ] == []
    quiet = project.run("-v")
    assert "guard_denied" not in quiet.out + quiet.err


@pytest.mark.covers("H17")
def test_a_hook_sees_every_outcome_and_can_fail_the_item(project: Project) -> None:
    project.write(line("one"), denied("two"))
    project.file(
        "conftest.py",
        "def pytest_opsagent_outcome(item, outcome):\n"
        "    calls = [call.tool for call in outcome.observed.calls]\n"
        "    assert calls == ['read_file'], item.name\n",
    )
    run = project.run()
    assert run.counts == {"passed": 1, "failed": 1}
    assert "AssertionError: two" in run.out
    assert run.lines("FAILED scenarios.jsonl::two - AssertionError: two")
