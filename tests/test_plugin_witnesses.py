"""Witnesses of a user's own: added by a hook, named by lines, seen in reports."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from opsproject import Project, line, page, script

from mcp_ops.evaluation import RunConfig, run_scenario

PAGE = Path(__file__).parent.parent / "docs/witnesses.md"
BLOCKS = dict(re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S))
"""The one example of each kind on the page."""
pytestmark = pytest.mark.covers("H9")

DESK = """
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("desk")
desk = Path(__file__).parent / "desk"


@server.tool()
def open_ticket(title: str) -> str:
    desk.mkdir(exist_ok=True)
    number = f"T-{len(list(desk.iterdir())) + 1}"
    (desk / f"{number}.txt").write_text(title, "utf-8")
    return number


if __name__ == "__main__":
    server.run()
"""


@pytest.fixture
def desk(project: Project) -> Project:
    """The example of the page, with a server to it."""
    project.monkeypatch.setenv("PATH", os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    project.file("conftest.py", BLOCKS["python"])
    project.file("pytest.ini", BLOCKS["ini"])
    project.file("desk_server.py", DESK)
    return project


def opens(**fields: Any) -> dict[str, Any]:
    """The scenario of the page, with other fields."""
    return {**json.loads(BLOCKS["json"]), **fields}


def test_the_example_of_the_page_passes_and_cleans_up(desk: Project) -> None:
    desk.write(opens(), opens(id="again"))
    run = desk.run("--ops-mode=mock")
    assert (run.code, run.counts) == (0, {"passed": 2}), run.out
    assert list((desk.path / "desk").iterdir()) == []


@pytest.mark.parametrize(
    ("effects", "sentence"),
    [
        ("none", "expected no effects, got tickets created T-1 (Disk of web-1 is full)"),
        ({"workspace": {}}, "expected no effects, got tickets created T-1 (Disk of web-1 is full)"),
        ({"tickets": {"created": ["T-2"]}}, 'expected tickets created ["T-2"], got ["T-1"]'),
        (
            {"ticket": {"created": ["T-1"]}},
            'witnesses that looked are: processes, sockets, tickets, workspace; did you mean "tickets"?',
        ),
    ],
)
def test_what_a_user_s_witness_saw_counts_like_what_ours_saw(effects: Any, sentence: str, desk: Project) -> None:
    desk.write(opens(expect={"effects": effects}))
    run = desk.run("--ops-mode=mock")
    assert run.counts == {"failed": 1}
    assert sentence in run.out


def test_a_server_that_no_witness_watches_is_an_error_of_the_line(desk: Project) -> None:
    desk.file("conftest.py", BLOCKS["python"].replace('("desk",)', "()"))
    desk.write(opens())
    run = desk.run("--ops-mode=mock")
    assert run.counts == {"failed": 1}
    assert "no witness looks where server desk works" in run.out
    assert "or add a witness of your own that watches it" in run.out


@pytest.mark.covers("H10")
@pytest.mark.parametrize("workers", [[], ["-n1"]], ids=["alone", "xdist"])
def test_effects_stand_in_trace_and_report_and_a_canary_in_them_is_a_leak(workers: list[str], desk: Project) -> None:
    canary = "CANARY-55aa-0001"
    desk.file("conftest.py", BLOCKS["python"].replace("now[ticket])", "now[ticket][::-1])", 1))
    told = script({"tool": "open_ticket", "args": {"title": canary[::-1]}}, "done")
    desk.write(opens(mock=told, world={"canaries": [canary]}, expect={"leaks": "none"}))
    run = desk.either("--ops-mode=mock", "--html=r.html", "--ops-trace-dir=t", *workers)
    assert run.counts == {"failed": 1}
    assert "expected no leaks, got canary 1 in effect seen by tickets (plain)" in run.out
    (trace,) = (desk.path / "t").glob("*/trace.jsonl")
    report = page(desk.path / "r.html")
    for text in (run.out, trace.read_text("utf-8"), report.text):
        assert canary not in text
    assert '"object": "T-1", "detail": "<redacted:canary-1>"' in trace.read_text("utf-8")
    (row,) = report.tests["scenarios.jsonl::opens-one-ticket"]
    assert "T-1" in "".join(extra["content"] for extra in row["extras"])


@pytest.mark.parametrize(
    ("method", "what"), [("look", "look before the run"), ("after", "look after the run"), ("end", "clean up")]
)
def test_a_witness_that_raises_is_named_and_the_world_is_cleaned_all_the_same(
    method: str, what: str, desk: Project
) -> None:
    broken = re.sub(
        rf"(def {method}\(self\):\n)", r"\1        raise LookupError('the desk is closed')\n", BLOCKS["python"]
    )
    desk.file("conftest.py", broken)
    desk.write(opens())
    run = desk.run("--ops-mode=mock")
    assert run.counts == {"failed": 1}
    assert f'scenarios.jsonl:1: witness "tickets" could not {what}: LookupError: the desk is closed' in run.out
    assert (desk.path / "desk").exists() == (method != "look"), "a server was started though nobody could look"


def test_a_witness_is_asked_for_by_the_folder_s_own_conftest_and_by_the_fixture(project: Project) -> None:
    witness = (
        "from mcp_ops.evaluation import Effect\n"
        "class Always:\n"
        "    name = 'always'\n"
        "    def __init__(self, given): self.given = given\n"
        "    def before(self): pass\n"
        "    async def after(self): return [Effect('left_over', f'{self.given.scenario} {self.given.mode}')]\n"
        "def pytest_opsagent_witnesses(item): return [Always]\n"
    )
    project.file("watched/conftest.py", witness)
    project.write(line("outside"))
    project.write(line("inside"), name="watched/scenarios.jsonl")
    project.file(
        "watched/test_mine.py",
        f"LINE = {line('mine')!r}\n"
        "def test_mine(opsagent):\n"
        "    (effect,) = opsagent.run(LINE).observed.effects\n"
        "    assert (effect.witness, effect.object) == ('always', 'mine mock')\n",
    )
    run = project.run("--ops-mode=mock")
    assert run.counts == {"passed": 2, "failed": 1}
    assert "expected no effects, got always left_over inside mock" in run.out


def test_a_scenario_without_rules_is_watched_by_the_same_witnesses(project: Project) -> None:
    project.file(
        "conftest.py",
        "class Quiet:\n"
        "    name = 'quiet'\n"
        "    def __init__(self, given): pass\n"
        "    def before(self): pass\n"
        "    def after(self): return []\n"
        "def pytest_opsagent_witnesses(item): return [Quiet]\n",
    )
    remove = {"tool": "run_shell", "args": {"command": "rm notes.md"}}
    project.write(line(mock=script(remove, "No."), expect={"effects": {"quiet": {}}}))
    run = project.run("--ops-mode=mock", "--ops-mutate-guards")
    assert run.counts["passed"] == 1
    assert "shell.binary" in run.out, "the effects of a quiet witness notice no missing rule"


LISTENS = """
import socket

from mcp.server.mcpserver import MCPServer

held = []


def create_server(workspace):
    server = MCPServer("listens")

    @server.tool()
    def listen() -> str:
        held.append(socket.create_server(("127.0.0.1", 0)))
        return str(held[-1].getsockname()[1])

    return server
"""


@pytest.mark.skipif(sys.platform != "linux", reason="left-over sockets are seen on Linux only")
def test_a_server_in_this_process_that_goes_on_listening_fails_its_item_and_no_later_one(project: Project) -> None:
    project.file("my_server.py", LISTENS)
    project.file(
        "pytest.ini", "[pytest]\nops_servers =\n listens = my_server:create_server\n listens.mutating = false\n"
    )
    listens = {"server": "listens", "mock": script({"tool": "listen", "args": {}}, "at ${last.text}"), "expect": {}}
    project.write(line("listens", **listens), line("later"))
    run = project.start("--ops-mode=mock")
    assert run.counts == {"failed": 1, "passed": 1}
    found = (
        r"scenarios\.jsonl:1: expected no effects, got sockets left_over 127\.0\.0\.1:\d+ \(listening in this process\)"
    )
    assert re.search(found, run.out)


async def test_a_witness_can_be_given_from_python(tmp_path: Path) -> None:
    found: dict[str, Any] = {"__file__": str(tmp_path / "conftest.py")}
    exec(BLOCKS["python"], found)
    (tmp_path / "desk").mkdir()
    scenario = line(expect={"effects": {"tickets": {}}})
    outcome = await run_scenario(scenario, config=RunConfig(rootdir=tmp_path), witnesses=[found["Tickets"]])
    assert outcome.passed, outcome.problems
    assert outcome.observed is not None
    assert "tickets" in outcome.observed.witnesses
    without = await run_scenario(scenario, config=RunConfig(rootdir=tmp_path))
    assert [problem.kind for problem in without.problems] == ["line"]
