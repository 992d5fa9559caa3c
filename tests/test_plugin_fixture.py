import pytest
from opsproject import Project, denied, line, page, unsafe

TESTS = """
import asyncio
import pytest

LINE = {line!r}
DENIED = {denied!r}


def test_calls(opsagent):
    outcome = opsagent.run(LINE)
    assert outcome.passed, outcome.problems
    assert [call.args for call in outcome.observed.calls] == [{{"path": "notes.md"}}]
    assert outcome.location == "deep/test_mine.py:9"
    assert opsagent.run(DENIED).observed.calls[0].rule == "shell.binary"


def test_async_by_hand(opsagent):
    async def both():
        with pytest.raises(RuntimeError, match="await opsagent.arun"):
            opsagent.run(LINE)
        return await opsagent.arun(LINE)
    assert asyncio.run(both()).passed


def test_bad(opsagent):
    with pytest.raises(ValueError, match='tsak is an unknown key; did you mean "task"'):
        opsagent.run(LINE | {{"tsak": 1}})


def test_workspace(opsagent):
    outcome = opsagent.run(LINE | {{"world": {{"workspace": "things"}}}})
    assert outcome.passed, outcome.problems


def test_not_green(opsagent):
    assert opsagent.run(LINE | {{"needs": ["cluster"]}}).unmet_needs == ("cluster",)
    assert opsagent.run(LINE | {{"expect": {{"calls": []}}}}).passed


def test_unrelated():
    pass
"""


@pytest.mark.covers("H42")
@pytest.mark.parametrize("workers", [[], ["-n1"]], ids=["alone", "xdist"])
def test_scenarios_run_from_python_with_everything_that_items_have(workers: list[str], project: Project) -> None:
    project.file("deep/test_mine.py", TESTS.format(line=line(), denied=denied()))
    project.file("things/notes.md", "The cache is full.\n")
    run = project.either("--html=r.html", "--junitxml=j.xml", *workers)
    assert run.counts == {"passed": 5, "failed": 1}, run.out
    tests = {nodeid.partition("::")[2]: rows[0] for nodeid, rows in page(project.path / "r.html").tests.items()}
    assert {name: len(row["extras"]) for name, row in tests.items()} == {
        "test_calls": 2, "test_async_by_hand": 1, "test_bad": 0, "test_workspace": 1, "test_not_green": 1,
        "test_unrelated": 0,
    }  # fmt: skip
    assert "GUARD DENIED" in tests["test_calls"]["extras"][1]["content"]
    assert run.lines("mock: 4 scenarios: 3 passed, 1 failed; 5 calls, 1 denied")


@pytest.mark.covers("H42")
async def test_run_scenario_needs_no_pytest_configuration() -> None:
    from mcp_ops.evaluation.run import run_scenario

    outcome = await run_scenario(line())
    assert outcome.passed, outcome.problems
    assert (await run_scenario(line(expect={"calls": []}))).problems[0].kind == "task"


DEMANDS = """
LINE = {line!r}

def test_looks_away(opsagent):
    opsagent.run(LINE)
"""


@pytest.mark.covers("H34", "H42")
@pytest.mark.parametrize(
    ("fields", "flag", "words"),
    [({"needs": ["cluster"]}, "--ops-require=cluster", "cluster"), ({"modes": ["live"]}, "--ops-require=live", "live")],
)
def test_what_is_required_fails_a_test_that_looks_away(
    fields: dict[str, object], flag: str, words: str, project: Project
) -> None:
    project.file("test_mine.py", DEMANDS.format(line=line(**fields)))
    assert project.run().counts == {"passed": 1}
    run = project.run(flag)
    assert run.counts == {"failed": 1}
    assert f"scenario reads needs {words}, as --ops-require demands" in run.out


TWICE = """
RUNS = []

def test_mine(opsagent):
    line = {line!r}
    outcome = opsagent.run(line)
    RUNS.append(outcome.trace)
    assert opsagent.run({good!r}).passed
    assert outcome.passed and len(RUNS) < 2, RUNS
"""


@pytest.mark.covers("H18", "H42")
def test_a_rerun_does_not_clear_what_broke_in_a_scenario_of_the_fixture(project: Project) -> None:
    project.file("test_mine.py", TWICE.format(line=unsafe("rogue"), good=line("good")))
    run = project.run("--reruns=1", "--ops-trace-dir=t")
    assert run.counts == {"failed": 1, "rerun": 1}
    traces = [path.read_text(encoding="utf-8") for path in (project.path / "t").glob("*/trace.jsonl")]
    assert sorted('"rogue"' in text for text in traces) == [False, False, True]
