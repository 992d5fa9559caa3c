"""What the documentation shows is what happens."""

import json
import os
import re
import shutil
import sys
import tomllib
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import Any, get_args

import pytest
from apidouble import ClusterDouble, serving, write_kubeconfig
from opsproject import Project, line, read, script
from opsproject import page as read_report
from traces import DENIED_RUN, unwritten_run, write_run

from mcp_ops.cli import main
from mcp_ops.cli.guards import guard_tables
from mcp_ops.evaluation.config import RunConfig
from mcp_ops.evaluation.judging.known import against_known
from mcp_ops.evaluation.line.parse import BadLine, parse_line
from mcp_ops.evaluation.line.scenario import ScenarioLine
from mcp_ops.evaluation.measuring.mutation import known_rules
from mcp_ops.evaluation.run import Harness
from mcp_ops.evidence.matrix import Standing
from mcp_ops.evidence.results import Results
from mcp_ops.trace.events import read_event
from pytest_opsagent.report.record import Record

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/scenario-line.md"
README = ROOT / "README.md"
OWN = ROOT / "docs/own-server-and-agent.md"
PAGES = (README, *sorted((ROOT / "docs").glob("*.md")), ROOT / "k3d/README.md", ROOT / "CHANGELOG.md")
RECORD = {field.name for field in fields(Record)}
GROUPS = ("test", "lint", "typing", "fuzz")
BLOCK = re.compile(r"^```(\w+(?: \w+)?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(kind: str, page: Path = PAGE) -> list[str]:
    return [text for found, text in BLOCK.findall(page.read_text("utf-8")) if found == kind]


def examples() -> list[str]:
    """Return the scenarios of the page, each as one line."""
    wrapped = [json.dumps(json.loads(text), ensure_ascii=False) for text in blocks("json")]
    return [line for text in blocks("jsonl") for line in text.splitlines()] + wrapped


@pytest.mark.covers("H42")
@pytest.mark.parametrize("line", examples(), ids=lambda line: json.loads(line)["id"])
async def test_an_example_of_the_page_runs_and_passes(line: str, tmp_path: Path) -> None:
    scenario = parse_line(line, PAGE, 1)
    assert not isinstance(scenario, BadLine), scenario.message
    outcome = await Harness(RunConfig(rootdir=ROOT), scratch=tmp_path).run(scenario)
    assert [problem.message for problem in outcome.problems] == []
    assert outcome.passed


@pytest.mark.covers("H37")
async def test_the_known_failure_of_the_page_fails_and_is_excused(tmp_path: Path) -> None:
    (text,) = blocks("json known")
    scenario = parse_line(json.dumps(json.loads(text)), PAGE, 1)
    assert not isinstance(scenario, BadLine), scenario.message
    outcome = await Harness(RunConfig(rootdir=ROOT), scratch=tmp_path).run(scenario)
    judged, excuse = against_known(scenario, outcome, date(2027, 1, 31))
    assert [problem.kind for problem in judged.problems] == ["task"]
    assert excuse is not None
    assert excuse.until == "2027-01-31"


@pytest.mark.covers("H40")
def test_the_page_of_evidence_names_every_standing_and_every_key_of_the_results() -> None:
    page = (ROOT / "docs/evidence.md").read_text("utf-8")
    named = re.findall(r"^\| `([\w -]+)` \|", page, re.MULTILINE)
    assert named == [*get_args(Standing), *Results.model_fields]
    assert [name for name in re.findall(r"`(\w+)`", page.split("A record says")[1]) if name not in RECORD] == []


@pytest.mark.covers("H14")
def test_the_bad_line_of_the_page_gets_the_sentence_of_the_page() -> None:
    (line,), (sentence,) = blocks("jsonl bad"), blocks("text")
    bad = parse_line(line.strip(), PAGE, 1)
    assert isinstance(bad, BadLine)
    assert bad.message == sentence.strip()


@pytest.mark.covers("H15")
def test_the_table_of_the_page_names_every_key_of_a_line() -> None:
    table = PAGE.read_text("utf-8").split("## All keys")[1]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(ScenarioLine.model_fields)


def test_every_dependency_has_its_line_of_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    groups = project["dependency-groups"]
    wanted = [*project["project"]["dependencies"], *(each for name in GROUPS for each in groups[name])]
    names = [re.split(r"[<>=\[]", entry)[0] for entry in wanted]
    page = (ROOT / "docs/dependencies.md").read_text("utf-8")
    assert re.findall(r"^\| `([a-z0-9-]+)` \| \S.* \|$", page, re.MULTILINE) == names


def test_the_line_of_the_readme_runs_as_the_readme_says(project: Project) -> None:
    (shown,) = blocks("jsonl", README)
    project.write(shown.strip())
    for arguments in (["scenarios.jsonl::cannot-delete"], ["-m", "guardrail"], ["-k", "delete"]):
        run = project.run("--ops-mode=mock", *arguments)
        assert (run.code, run.counts) == (0, {"passed": 1}), run.out


def test_the_commands_without_pytest_do_what_the_readme_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (replies,) = re.findall(r"`(\[\{.+?\}\])`", README.read_text("utf-8"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MCP_OPS_MODE", raising=False)
    Path("DIR").mkdir()
    Path("replies.json").write_text(replies, "utf-8")
    (shown,) = re.findall(r"^mcp-ops (run .*?) +#", README.read_text("utf-8"), re.MULTILINE)
    assert main(shown.replace('"', "").split()) == 0
    assert capsys.readouterr().out == "| Nothing to do.\n"
    assert main(["report", *map(str, Path("runs").iterdir())]) == 0
    assert Path("trace.html").is_file()


def test_the_page_of_rules_is_what_the_guards_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["guards", "--markdown"]) == 0
    heading, said = "# Guards: rules, what they stop, and what they do not\n", capsys.readouterr().out
    text = (ROOT / "docs/guards.md").read_text("utf-8")
    assert text.startswith(heading)
    assert text.endswith("\n\n" + said), "write it anew: keep its first lines, then mcp-ops guards --markdown"
    assert "|" not in text.removesuffix(said)


def test_the_suite_of_the_page_on_measuring_misses_a_rule_as_the_page_says(project: Project) -> None:
    page = ROOT / "docs/measuring.md"
    asks_too_little, names_the_denial = (text.strip() for text in blocks("jsonl", page))
    (known,), (sentence,) = blocks("ini", page), blocks("text", page)
    others = [rule for rule in known_rules() if rule != "shell.binary" and rule not in known]
    project.file("pytest.ini", known + "".join(f"    {rule} = not here\n" for rule in others))
    project.write(asks_too_little)
    survived = project.run("--ops-mutate-guards")
    assert (survived.code, survived.counts) == (1, {"passed": 1})
    assert sentence.strip() in survived.out.splitlines()
    project.write(asks_too_little, names_the_denial)
    assert project.run("--ops-mutate-guards").code == 0


def test_every_refusal_says_what_it_answers_and_what_it_does_not_stop() -> None:
    refusals = [rule for rule in guard_tables()["rules"] if rule["state"] == "denied"]
    assert len(refusals) > 25
    assert [rule["rule"] for rule in refusals if not (rule["stands_for"].endswith(".") and rule["limits"])] == []


SERVER = """
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError


def create_server(workspace):
    server = MCPServer("notes")

    @server.tool()
    def look(name: str) -> str:
        return (Path(workspace) / name).read_text()

    @server.tool()
    def remove(name: str) -> str:
        raise ToolError("forbidden: nothing is removed here")

    return server


if __name__ == "__main__":
    assert sys.argv[1] == "--root"
    create_server(sys.argv[2]).run()
"""


def own(project: Project, *parts: int) -> None:
    """Write the examples of the page into a repository: 0 is the agent, 1 the test, 2 the conftest."""
    names = ("my_package/agent.py", "test_agent.py", "conftest.py")
    texts = blocks("python", OWN)
    assert len(texts) == len(names)
    project.file("my_package/__init__.py", "")
    for part in parts:
        project.file(names[part], texts[part])


def test_the_servers_of_the_page_start_and_deny(project: Project) -> None:
    project.monkeypatch.setenv("PATH", os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    project.file("inventory_server.py", SERVER)
    project.file("my_package/__init__.py", "")
    project.file("my_package/server.py", SERVER)
    project.file("pytest.ini", blocks("ini", OWN)[0])
    lines = [json.loads(text) for text in blocks("json", OWN)[0].splitlines()]
    assert lines == [{"server": "inventory"}, {"server": ["ops", "notes"]}]
    remove = script({"tool": "remove", "args": {"name": "x"}}, "No: ${denied.reason /nothing is removed/}")
    look = script({"tool": "look", "args": {"name": "notes.md"}}, "${last.text /cache is full/}")
    claimed = {"calls": [{"tool": "remove", "state": "denied", "rule": "claimed"}]}
    project.write(
        line("by-command", mock=remove, expect=claimed, **lines[0]),
        line("by-factory", mock=look, expect={"calls": [{"tool": "look"}], "answer": "cache is full"}, **lines[1]),
    )
    run = project.start("--ops-mode=mock")
    assert (run.code, run.counts) == (0, {"passed": 2}), run.out


FIX_SERVER = """
import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("fix")


@server.tool()
def look() -> str:
    return " ".join(sys.argv[1:])


if __name__ == "__main__":
    server.run()
"""


@pytest.mark.covers("H33")
def test_the_server_of_the_page_gets_a_cluster_that_is_listed_and_no_other(project: Project) -> None:
    project.monkeypatch.setenv("PATH", os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    project.file("fix_server.py", FIX_SERVER)
    ini = blocks("ini", OWN)[1]
    (listed,) = re.findall(r"^ +([0-9a-f]{8}-[0-9a-f-]+)$", ini, re.MULTILINE)
    shown = json.loads(blocks("json", OWN)[1])
    look = script({"tool": "look", "args": {}}, "${last.text /--context double/}")
    parsed = parse_line(json.dumps(line("fix", mock=look, **shown)), PAGE, 1)
    assert not isinstance(parsed, BadLine), parsed.message
    expected = {"calls": [{"tool": "look"}], "effects": {"cluster": {}}}
    project.write(line("fix", mock=look, **(shown | {"expect": expected})))
    with serving(ClusterDouble()) as double:
        given = ("--ops-mode=mock", f"--ops-kubeconfig={write_kubeconfig(project.path, double.url)}")
        project.file("pytest.ini", ini)
        refused = project.start(*given)
        project.file("pytest.ini", ini.replace(listed, "0b1c-uid"))
        run = project.start(*given)
    assert "add the line 0b1c-uid to ops_clusters in the ini file" in refused.out
    assert (run.code, run.counts) == (0, {"passed": 1}), run.out


def test_the_agent_of_the_page_runs(project: Project) -> None:
    own(project, 0)
    (literal,) = re.findall(r"`(\{\"raw\".*?\})`", OWN.read_text("utf-8"))
    project.file("pytest.ini", blocks("ini", OWN)[2])
    expected = {"calls": [{"tool": "read_file"}], "answer": json.loads(literal)["raw"]}
    project.write(line("own", mock=[json.loads(literal)], expect=expected))
    run = project.start("--ops-mode=mock")
    assert (run.code, run.counts) == (0, {"passed": 1}), run.out


def test_the_fixture_and_the_hooks_of_the_page_work(project: Project) -> None:
    own(project, 1, 2)
    run = project.start("--ops-mode=mock", "--html=report.html", "--self-contained-html")
    assert (run.code, run.counts) == (0, {"passed": 1}), run.out
    (rows,) = read_report(project.path / "report.html").tests.values()
    assert "platform team" in json.dumps(rows)


def test_the_reader_of_the_page_reads_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = blocks("python", ROOT / "docs/trace.md")
    (folder,) = re.findall(r'Path\("(.+?)"\)', example)
    (tmp_path / folder).mkdir(parents=True)
    shutil.copy(write_run(tmp_path), tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    exec(example, found)
    assert found["denied"] == ["shell.binary"]


def test_the_event_of_the_page_is_one_and_the_table_names_every_event() -> None:
    text = (ROOT / "docs/trace.md").read_text("utf-8")
    (event,) = blocks("json", ROOT / "docs/trace.md")
    assert read_event(event.encode()).event == "tool_call"
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == {
        event.event for event in unwritten_run(DENIED_RUN).events
    }


CONNECTS = """
import socket


async def run(given):
    if "connect" in given.task:
        socket.create_connection(("203.0.113.7", 443))
    return (await given.model.complete([])).text
"""


def test_each_heading_of_troubleshooting_is_what_a_run_says(project: Project) -> None:
    text = (ROOT / "docs/troubleshooting.md").read_text("utf-8")
    headings = [heading for title in re.findall(r"^## (.*)$", text, re.MULTILINE) for heading in _quoted(title)]
    list_it = {"tool": "kubectl_get", "args": {"resource": "pods"}}
    project.file("my_agent.py", CONNECTS)
    project.file("server.py", "import nowhere\n")
    project.file(
        "pytest.ini",
        f"[pytest]\nops_servers =\n mine = {sys.executable} server.py\n dead = {sys.executable} server.py\n"
        " dead.mutating = false\n",
    )
    canary = "CANARY-55aa-0001"
    project.write(
        line("cluster", needs=["cluster"]),
        line("unavailable", mock=script(list_it, "no")),
        line("short", mock=script(read("notes.md"))),
        line("long", mock=script("done", "done")),
        line("reference", mock=script(read("notes.md"), "${last.text /nowhere/}")),
        line("mutating", server="mine"),
        line("dead", server="dead"),
    )
    project.file(
        "test_leak.py",
        "def test_leak(opsagent):\n"
        f"    opsagent.run({line('leaks', world={'plant': {'notes.md': canary}, 'canaries': [canary]})!r})\n"
        f"    print('CANARY-' + '55aa-0001')\n    assert False\n",
    )
    said = project.start("--ops-mode=mock", "--junitxml=j.xml", quiet=()).out
    said += project.start("--ops-mode=live").err
    project.file("pytest.ini", "[pytest]\nops_agent = my_agent:run\n")
    project.write(line("network", task="connect"))
    said += project.start("--ops-mode=mock", "scenarios.jsonl").out
    said += _said_with_a_cluster(project)
    assert [heading for heading in headings if not _pattern(heading).search(said)] == []
    assert len(headings) >= 10


def _said_with_a_cluster(project: Project) -> str:
    """Return what runs say of a cluster that may not be changed, and whose objects cannot all be listed."""
    project.file("pytest.ini", f"[pytest]\nops_servers = mine = {sys.executable} server.py\nops_allow_writes = mine\n")
    project.write(line("writes", server="mine", needs=["cluster"]), line("unseen", needs=["cluster"]))
    with serving(ClusterDouble()) as double:
        double.kinds = {"v1": ("pods", "namespaces")}
        kubeconfig = write_kubeconfig(project.path, double.url)
        shown = ("--ops-report-detail=full", f"--ops-kubeconfig={kubeconfig}")
        return project.start("--ops-mode=mock", *shown, "scenarios.jsonl").out


def _quoted(title: str) -> list[str]:
    """Return the messages in a heading; one that begins without code is in our own words."""
    return re.findall(r"`(.+?)`", title) if title.startswith("`") else []


def _pattern(heading: str) -> re.Pattern[str]:
    return re.compile(".*?".join(re.escape(part) for part in heading.split("…")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[\w-]*)?\)", page.read_text("utf-8"))
    local = [target for target in targets if not re.match(r"https?://", target)]  # noqa: TID251
    assert [target for target in local if not (page.parent / target).exists()] == []
