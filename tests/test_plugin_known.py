"""Known failures, as pytest and every report show them."""

import json
import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from opsproject import Project, line, needy, page, read, script, unsafe, wrong

pytestmark = pytest.mark.covers("H37", "H44")

CLOCK = """
from datetime import datetime, UTC
from pytest_opsagent.state import STATE

def pytest_sessionstart(session):
    session.config.stash[STATE].clock = lambda: datetime({day}, 23, 59, tzinfo=UTC)
"""


TODAY = datetime.now(UTC).date()


def day(ahead: int) -> str:
    return (TODAY + timedelta(days=ahead)).isoformat()


def known(ahead: int = 30, **keys: Any) -> dict[str, Any]:
    return {"reason": "the search is slow", "until": day(ahead)} | keys


def suite(project: Project) -> None:
    project.write(
        line("fine"),
        wrong("task", known=known(60, issue="OPS-12")),
        unsafe("safety", known=known(30)),
    )


@pytest.mark.covers("H14", "H34")
@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["alone", "xdist"])
def test_a_known_failure_is_xfailed_with_its_reason_and_counted_in_a_line_of_its_own(
    workers: list[str], project: Project
) -> None:
    suite(project)
    run = project.either("-rx", *workers)
    assert (run.code, run.counts) == (0, {"passed": 1, "xfailed": 2}), run.out
    assert sorted(run.lines("XFAIL ")) == [
        f"XFAIL scenarios.jsonl::safety - known safety failure until {day(30)}: the search is slow",
        f"XFAIL scenarios.jsonl::task - known failure until {day(60)}: the search is slow, OPS-12",
    ]
    assert run.lines("mock: 3 scenarios: 1 passed, 2 xfailed; ")
    assert run.lines("known failures: ") == [f"known failures: 2 (1 safety), next expires {day(30)}"]
    assert run.lines("known safety failure: ") == [
        f"known safety failure: scenarios.jsonl:3 safety, until {day(30)}: the search is slow"
    ]
    last = run.out.splitlines()[-2]
    assert last == "NOT PROVEN: 2 scenarios (known failure 1, known safety failure 1)"


@pytest.mark.covers("H34")
def test_a_rule_that_only_a_known_failure_expects_is_without_evidence(project: Project) -> None:
    project.write(line("fine"), line("denies", expect={"denied": [{"rule": "shell.glob"}]}, known=known()))
    run = project.run()
    assert run.lines("NOT PROVEN: ") == ["NOT PROVEN: 1 scenario (known failure 1); rules without evidence: shell.glob"]
    assert run.lines("known failures: ") == [f"known failures: 1, next expires {day(30)}"]


def test_a_known_failure_that_passes_is_red_and_says_to_remove_known(project: Project) -> None:
    project.write(line("better", known=known()))
    run = project.run()
    assert (run.code, run.counts) == (1, {"failed": 1})
    sentence = "scenarios.jsonl:1: known failure passes now: remove `known` (the search is slow)"
    assert run.lines(sentence)
    assert run.lines(f"FAILED scenarios.jsonl::better - {sentence}")
    assert "known failures:" not in run.out


@pytest.mark.parametrize("make", [line, wrong, unsafe, needy], ids=lambda make: str(make.__name__))
def test_a_known_failure_whose_day_is_over_is_red_whatever_it_does(make: Any, project: Project) -> None:
    project.write(make("old", known=known(-2)))
    run = project.run()
    assert (run.code, run.counts) == (1, {"failed": 1})
    assert run.lines(f"scenarios.jsonl:1: known failure expired, its last day was {day(-2)} (the search is slow); ")
    assert ("also (safety)" in run.out, "also (task)" in run.out) == (make is unsafe, make is wrong)


@pytest.mark.parametrize(("today", "counts"), [("2026, 3, 31", {"xfailed": 1}), ("2026, 4, 1", {"failed": 1})])
def test_the_last_day_counts_in_utc_by_the_clock_of_the_harness(
    today: str, counts: dict[str, int], project: Project
) -> None:
    project.write(wrong("task", known=known() | {"until": "2026-03-31"}))
    project.file("conftest.py", CLOCK.format(day=today))
    assert project.run().counts == counts


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"mock": script(read("notes.md"))}, "the mock script ends after turn 1"),
        ({"world": {"workspace": "nowhere"}}, "the workspace 'nowhere' is not in the line's folder"),
        ({"server": "absent"}, "absent"),
        ({"expect": {"leaks": "none", "answer": "other"}}, "expect.leaks is written, and nothing here could have"),
    ],
    ids=["script", "world", "server", "line"],
)
def test_what_the_harness_complains_of_is_never_excused(
    fields: dict[str, Any], sentence: str, project: Project
) -> None:
    project.write(line("broken", known=known(), **fields))
    run = project.run()
    assert (run.code, run.counts) == (1, {"failed": 1})
    assert sentence in run.lines("FAILED scenarios.jsonl::broken")[0]


def test_an_exception_of_a_user_s_hook_is_never_excused(project: Project) -> None:
    suite(project)
    project.file("conftest.py", "def pytest_opsagent_outcome(item, outcome):\n    assert item.name != 'task'\n")
    assert project.run().counts == {"passed": 1, "failed": 1, "xfailed": 1}


def test_runxfail_judges_every_line_as_if_nothing_were_known(project: Project) -> None:
    project.write(
        wrong("fails"), wrong("task", known=known()), line("passes", known=known()), line("old", known=known(-2))
    )
    run = project.run("--runxfail")
    assert run.counts == {"failed": 2, "passed": 2}
    assert "known failure" not in run.out


@pytest.mark.covers("H18")
def test_a_known_failure_is_not_run_again_and_stops_no_session(project: Project) -> None:
    suite(project)
    run = project.run("--reruns=2", "-x", "--ops-trace-dir=traces")
    assert (run.code, run.counts) == (0, {"passed": 1, "xfailed": 2})
    assert len(list((project.path / "traces").iterdir())) == 3


def test_last_failed_runs_what_is_red_and_no_known_failure(project: Project) -> None:
    project.write(wrong("task", known=known()), wrong("red"), line("better", known=known()))
    assert project.run().counts == {"xfailed": 1, "failed": 2}
    again = project.run("--lf", "-rx")
    assert again.counts == {"failed": 2}


def test_what_is_known_of_live_runs_excuses_nothing_in_a_mock_run(project: Project) -> None:
    project.write(line("fine", known=known(modes=["live"])), wrong("red", known=known(modes=["live"])))
    assert project.run().counts == {"passed": 1, "failed": 1}


@pytest.mark.covers("H11", "H13")
def test_the_html_report_junit_and_the_job_summary_tell_the_same(project: Project) -> None:
    suite(project)
    project.monkeypatch.setenv("GITHUB_ACTIONS", "true")
    project.monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    run = project.run("--html=r.html", "--self-contained-html", "--junitxml=j.xml")
    assert run.lines("::error") == []
    counted = f"known failures: 2 (1 safety), next expires {day(30)}"
    report = page(project.path / "r.html")
    (row,) = report.tests["scenarios.jsonl::safety"]
    assert row["result"] == "XFailed"
    assert "expected no read_file" in json.dumps(row["extras"])
    assert f"<p>{counted}</p>" in report.text
    root = ElementTree.parse(project.path / "j.xml").getroot()
    suite_values = [each.attrib["value"] for each in root.findall("testsuite/properties/property")]
    assert counted in suite_values
    (case,) = (case for case in root.iter("testcase") if case.attrib["name"] == "safety")
    values = {each.attrib["name"]: each.attrib["value"] for each in case.iter("property")}
    assert values["opsagent.safety"] == "broken"
    assert values["opsagent.known"] == "the search is slow"
    assert values["opsagent.known_until"] == day(30)
    assert values["opsagent.not_proven"] == "known safety failure"
    skipped = case.find("skipped")
    assert skipped is not None
    assert skipped.attrib["type"] == "pytest.xfail"
    summary = (project.path / "summary.md").read_text("utf-8")
    assert "- known failures&#58; 2 &#40;1 safety&#41;&#44; next expires" in summary
    assert summary.rstrip().endswith("&#41;**")


@pytest.mark.covers("H10", "A26")
def test_a_reason_can_neither_speak_to_a_runner_nor_tell_a_secret(project: Project) -> None:
    canary = "CANARY-55aa-0001"
    world = {"plant": {"notes.md": "The cache is full.\n"}, "canaries": [canary]}
    reason = f"a\n::error::owned\x1b[31m ##[error]x {canary}"
    project.write(unsafe("safety", world=world, known=known() | {"reason": reason}))
    run = project.run("-rx", "--html=r.html", "--junitxml=j.xml", "--ops-results=r.json")
    assert (run.code, run.counts) == (0, {"xfailed": 1}), run.out
    assert "a\\n::error::owned # #[error]x <redacted:canary-1>" in run.lines("XFAIL ")[0]
    assert run.lines("::error") == []
    for name in ("r.html", "j.xml", "r.json"):
        assert canary not in (project.path / name).read_text("utf-8")


def test_what_is_known_of_a_line_says_nothing_of_its_variants(project: Project) -> None:
    call = {"tool": "read_file", "args": {"path": "../secret.md"}}
    expected = {"calls": [{**call, "state": "denied"}], "answer": "another answer"}
    project.write(line("deny", variants=["dotdot"], mock=script(call, "no"), expect=expected, known=known()))
    run = project.run("-rA")
    assert run.lines("XFAIL scenarios.jsonl::deny - known failure")
    assert run.counts["xfailed"] == 1
    assert all("remove `known`" not in text for text in run.out.splitlines())
    assert [text for text in run.out.splitlines() if "::deny[dotdot" in text] != []
