"""`--ops-results`: what a run leaves for evidence."""

import dataclasses
import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from opsproject import HOSTILE, Project, denied, line, needy, unsafe, wrong

from mcp_ops.evidence.results import Results, read_results
from pytest_opsagent.report.record import Record

pytestmark = pytest.mark.covers("H40")

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CANARY = "CANARY-55aa-0001"


def written(project: Project, name: str = "results.json") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project.path / name).read_text("utf-8"))
    return found


def results(project: Project) -> Results:
    return read_results(project.path / "results.json")[0]


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["alone", "xdist"])
def test_a_run_leaves_one_file_with_a_record_of_each_item_and_what_it_was_made_with(
    workers: list[str], project: Project
) -> None:
    suite = [line("reads", tags=["a-tag"]), denied("guardrail"), wrong("wrong"), unsafe("unsafe"), needy("needy")]
    file = project.write(*suite, line("bad", tsak=""))
    run = project.either("--ops-results=results.json", *workers)
    assert run.code == 1
    document = written(project)
    assert (document["v"], document["mode"], document["interrupted"], document["commit"]) == (1, "mock", False, None)
    assert {"python", "pytest", "pytest-opsagent", "mcp", "langgraph"} <= document["versions"].keys()
    assert "kubectl" not in document["versions"]
    assert {"kernel", "second_wall", "children_network"} == document["machine"].keys()
    records = {record["scenario"]: record for record in document["records"]}
    assert {name: record["outcome"] for name, record in records.items()} == {
        "reads": "passed", "guardrail": "passed", "wrong": "failed", "unsafe": "failed", "needy": "skipped",
        "bad": "failed",
    }  # fmt: skip
    assert set(records["reads"]) == {field.name for field in dataclasses.fields(Record)}
    assert records["reads"]["tags"] == ["a-tag"]
    assert records["guardrail"]["rules_seen"] == records["guardrail"]["rules_wanted"] == ["shell.binary"]
    assert (records["guardrail"]["calls"], records["guardrail"]["denials"]) == (1, 1)
    assert (records["unsafe"]["safety_held"], records["wrong"]["safety_held"]) == (False, True)
    assert (records["needy"]["reasons"], records["needy"]["rules_wanted"]) == (["cluster"], ["kubectl.secret"])
    text = file.read_text("utf-8").split("\n")[1]
    assert records["guardrail"]["line_sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert len({run_id for record in records.values() for run_id in record["runs"]}) == 4


def test_the_ids_of_runs_are_those_of_the_traces(project: Project) -> None:
    project.write(line("reads"), wrong("wrong"))
    project.run("--ops-results=results.json", "--ops-trace-dir=kept")
    named = [run for record in results(project).records for run in record.runs]
    assert sorted(named) == sorted(folder.name for folder in (project.path / "kept").iterdir())


@pytest.mark.covers("H18")
def test_what_was_run_again_has_a_record_of_every_run(project: Project) -> None:
    project.write(wrong("wrong"))
    project.run("--ops-results=results.json", "--reruns=2")
    assert len(results(project).records) == 3


def test_the_commit_of_the_checkout_is_written_down(project: Project) -> None:
    project.file(".git/HEAD", "ref: refs/heads/main\n")
    project.file(".git/refs/heads/main", COMMIT + "\n")
    project.write(line("reads"))
    project.run("--ops-results=results.json")
    assert results(project).commit == COMMIT


@pytest.mark.covers("A26", "H10")
def test_hostile_text_and_secrets_are_not_in_it(project: Project) -> None:
    hostile = HOSTILE.replace("\ud800", "")
    world = {"plant": {"notes.md": "The cache is full.\n"}, "canaries": [CANARY]}
    known = {"reason": f"{hostile} {CANARY}", "until": (datetime.now(UTC) + timedelta(days=9)).date().isoformat()}
    project.write(wrong("hostile", world=world, known=known))
    assert project.run("--ops-results=results.json").counts == {"xfailed": 1}
    text = (project.path / "results.json").read_text("utf-8")
    assert CANARY not in text
    assert not set("\x1b\x00\u202e\x07") & set(text)
    assert "<redacted:canary-1>" in results(project).records[0].known


@pytest.mark.covers("H10")
def test_a_secret_that_got_into_it_all_the_same_fails_the_run(project: Project) -> None:
    project.write(line("tells", world={"plant": {"notes.md": "The cache is full.\n"}, "canaries": [CANARY]}))
    project.file(
        "conftest.py",
        "import dataclasses\n"
        "from pytest_opsagent.state import STATE\n"
        "def pytest_sessionstart(session):\n"
        "    global records\n"
        "    records = session.config.stash[STATE].records\n"
        "def pytest_runtest_teardown():\n"
        f"    records[-1] = dataclasses.replace(records[-1], message='CANARY-' + {CANARY[7:]!r})\n",
    )
    run = project.start("--ops-results=results.json")
    assert run.code == 1, run.out
    assert "results.json holds canary-1" in run.lines("redaction failed: ")[0]


def test_nothing_is_written_unless_it_is_asked_for_or_when_nothing_runs(project: Project) -> None:
    project.write(line("reads"))
    project.run()
    project.run("--collect-only", "--ops-results=results.json")
    project.file("test_other.py", "def test_other():\n    pass\n")
    project.run("test_other.py", "--ops-results=results.json")
    assert not (project.path / "results.json").exists()


def test_the_file_is_named_in_the_ini_file_too_and_its_folder_is_made(project: Project) -> None:
    project.file("pytest.ini", "[pytest]\nops_results = out/deep/results.json\n")
    project.write(line("reads"))
    project.run()
    assert written(project, "out/deep/results.json")["v"] == 1
    assert [path.name for path in (project.path / "out/deep").iterdir()] == ["results.json"]


def test_results_that_cannot_be_written_fail_the_run_and_are_said(project: Project) -> None:
    project.file("file", "")
    project.write(line("reads"))
    run = project.run("--ops-results=file/results.json")
    assert (run.code, run.counts) == (1, {"passed": 1})
    assert run.lines("the results cannot be written: ")


def test_a_run_that_was_interrupted_writes_what_it_has_and_says_so(project: Project) -> None:
    project.write(line("first"), line("second"))
    project.file(
        "conftest.py",
        "def pytest_opsagent_outcome(item):\n    if item.name == 'second':\n        raise KeyboardInterrupt\n",
    )
    run = project.start("--ops-results=results.json")
    assert run.code == 2, run.out
    found = results(project)
    assert found.interrupted
    assert [record.scenario for record in found.records] == ["first"]


@pytest.mark.covers("H12")
def test_the_command_that_runs_an_item_again_does_not_write_over_the_results(project: Project) -> None:
    project.write(wrong("wrong"))
    run = project.run("--ops-results=results.json")
    (again,) = run.lines("  again: ")
    assert "--ops-results" not in again


def test_a_file_beside_it_is_never_left(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcp_ops.evidence.results import write_whole

    target = project.file("old.json", "old")

    def refuse(self: Path, other: Path) -> Path:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(Path, "replace", refuse)
        with pytest.raises(OSError, match="No space left"):
            write_whole(target, "new")
    assert {path.name: path.read_text() for path in project.path.iterdir()} == {"old.json": "old"}
    write_whole(target, "new")
    assert {path.name: path.read_text() for path in project.path.iterdir()} == {"old.json": "new"}


BREAKS = """
import os
import pytest

def pytest_runtest_setup(item):
    if item.name == "no-setup":
        raise RuntimeError("no setup")

def pytest_runtest_call(item):
    if item.name == "crash":
        os._exit(3)

@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item):
    if item.name in ("no-teardown", "known"):
        raise RuntimeError("no teardown")
"""


def test_an_item_that_broke_outside_its_run_is_recorded_as_failed_and_shows_no_rule(project: Project) -> None:
    known = {"reason": "it is not built yet", "until": str(datetime.now(UTC).date() + timedelta(days=30))}
    project.write(denied("no-setup"), denied("no-teardown"), wrong("known", known=known), denied("fine"))
    project.file("conftest.py", BREAKS)
    run = project.either("--ops-results=results.json")
    assert run.counts == {"passed": 2, "xfailed": 1, "error": 3}
    assert run.lines("mock: 4 scenarios: 1 passed, 3 failed")
    records = {record.scenario: record for record in results(project).records}
    assert {name: (each.status, each.outcome, each.known, each.message) for name, each in records.items()} == {
        "no-setup": ("not_run", "failed", "", "RuntimeError: no setup"),
        "no-teardown": ("ran", "failed", "", "RuntimeError: no teardown"),
        "known": ("ran", "failed", "", "RuntimeError: no teardown"),
        "fine": ("ran", "passed", "", ""),
    }
    assert records["no-setup"].rules_wanted == ("shell.binary",)


def test_an_item_that_took_its_worker_along_is_recorded_as_failed(project: Project) -> None:
    project.write(line("crash"), line("fine"))
    project.file("conftest.py", BREAKS)
    project.start("--ops-results=results.json", "-n1")
    found = {record.scenario: (record.status, record.outcome) for record in results(project).records}
    assert found == {"crash": ("not_run", "failed"), "fine": ("ran", "passed")}


def test_an_item_that_a_mark_skips_is_recorded_as_not_proven(project: Project) -> None:
    project.write(denied("marked"))
    project.file(
        "conftest.py",
        "import pytest\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items:\n"
        "        item.add_marker(pytest.mark.skip(reason='not today'))\n",
    )
    run = project.either("--ops-results=results.json")
    assert run.lines("NOT PROVEN: 1 scenario (skip 1)")
    (record,) = results(project).records
    assert (record.status, record.outcome, record.rules_wanted) == ("not_proven", "skipped", ("shell.binary",))


def test_a_run_that_stopped_at_its_first_failure_says_that_it_was_broken_off(project: Project) -> None:
    project.write(wrong("first"), line("second"))
    project.run("--ops-results=results.json", "-x")
    assert results(project).interrupted


def test_safety_that_broke_before_its_worker_crashed_is_not_cleared_in_another_one(project: Project) -> None:
    """The item forgets with its worker; the record does not."""
    project.write(unsafe("unsafe"))
    project.file(
        "conftest.py",
        "import dataclasses, os\n"
        "from pathlib import Path\n"
        "def pytest_opsagent_outcome(item):\n"
        "    tries = Path(item.config.rootpath, 'tries')\n"
        "    tries.write_text('again')\n"
        "def pytest_runtest_call(item):\n"
        "    tries = Path(item.config.rootpath, 'tries')\n"
        "    if tries.exists() and tries.read_text() == 'again':\n"
        "        tries.write_text('crashed')\n"
        "        os._exit(3)\n"
        "    if tries.exists():\n"
        "        spec = item.scenario.spec\n"
        "        better = spec.model_copy(update={'expect': spec.expect.model_copy(update={'forbid': ()})})\n"
        "        item.scenario = dataclasses.replace(item.scenario, spec=better)\n",
    )
    run = project.start("--ops-results=results.json", "-n1", "--reruns=3")
    assert run.code == 1
    assert run.counts == {"passed": 1, "rerun": 2}, "what pytest itself makes of it"
    assert run.lines("mock: 1 scenario: 1 failed")
