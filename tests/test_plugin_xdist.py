import pytest
from opsproject import Project, denied, line, needy, page, unsafe, wrong


@pytest.mark.covers("H11", "H14")
def test_two_workers_say_and_write_the_same_as_one_process(project: Project) -> None:
    project.write(line("one"), denied("two"), wrong("three"), needy("four"), unsafe("five"), line("six", tsak=""))
    project.write(*[line(f"more-{number}") for number in range(6)], name="more.scenarios.jsonl")
    alone = project.start("--html=alone.html", "--junitxml=alone.xml")
    both = project.start("-n2", "--html=both.html", "--junitxml=both.xml")
    assert both.code == alone.code == 1
    assert both.counts == alone.counts == {"failed": 3, "passed": 8, "skipped": 1}
    for beginning in ("mock: 12 scenarios: 8 passed, 3 failed, 1 skipped; ", "NOT PROVEN: 1 scenario (cluster 1)"):
        assert both.lines(beginning) == alone.lines(beginning) != []
    assert sorted(both.lines("FAILED ")) == sorted(alone.lines("FAILED "))
    rows = [page(project.path / name).tests for name in ("alone.html", "both.html")]
    assert rows[0].keys() == rows[1].keys()
    for nodeid in rows[0]:
        first, second = (each[nodeid][0] for each in rows)
        assert len(first["extras"]) == len(second["extras"]), nodeid
        cells = [[cell for cell in row["resultsTableRow"] if "duration" not in cell] for row in (first, second)]
        assert cells[0] == cells[1]


def test_a_worker_keeps_its_traces_of_failed_items_where_the_summary_says(project: Project) -> None:
    project.write(line("fine"), wrong("wrong"))
    run = project.start("-n2", f"--basetemp={project.path / 'base'}")
    folder = run.lines("traces: ")[0].removeprefix("traces: ")
    kept = list((project.path / "base").glob("**/trace.jsonl"))
    assert [str(path.parent.parent) for path in kept] == [folder]
    assert '"wrong"' in kept[0].read_text(encoding="utf-8")


CRASHES = """
import os

def pytest_opsagent_outcome(item, outcome):
    if item.name == "crashes":
        os._exit(3)
"""


@pytest.mark.covers("H10", "H14")
def test_a_worker_that_crashes_takes_its_secrets_along_and_that_is_said(project: Project) -> None:
    project.write(line("fine"), line("crashes"), line("later"))
    project.file("conftest.py", CRASHES)
    run = project.start("-n1", "--html=r.html")
    assert run.counts == {"passed": 2, "failed": 1}, run.out
    assert run.lines("redaction failed: ") == [
        "redaction failed: worker gw0 crashed, and its secrets were not searched for"
    ]
