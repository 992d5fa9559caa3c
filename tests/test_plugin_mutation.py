"""`--ops-mutate-guards` and `--ops-guard-coverage`, as users see them."""

import json
from dataclasses import replace
from typing import Any

import pytest
from opsproject import HOSTILE, Project, Run, denied, line, page, read, script, wrong

from mcp_ops.evaluation.measuring.mutation import switchable
from mcp_ops.evaluation.session import servers
from mcp_ops.ops.guards.shell.rules import SHELL_BINARY
from mcp_ops.servers import ops

pytestmark = pytest.mark.covers("H26")

MUTATE = "--ops-mutate-guards"
RULE = "shell.binary"
RULES = switchable(servers.own_rules(["ops"]))
"""Of the one server that these lines use."""


def known(*but: str, more: str = "") -> str:
    """An ini file that knows every rule but these."""
    lines = "".join(f" {rule} = it is not our subject\n" for rule in RULES if rule not in but)
    return f"[pytest]\nops_known_survivors =\n{lines}{more}"


def looks_away(name: str = "looks-away", **fields: Any) -> dict[str, Any]:
    """A line in which a call is denied, and that does not care."""
    return denied(name, **({"expect": {"answer": {"$contains": "No"}}, "mock": script(CALL, "No.")} | fields))


CALL = {"tool": "run_shell", "args": {"command": "kubectl delete deploy web"}}


def said(run: Run) -> list[str]:
    return [text for text in run.out.splitlines() if text.startswith(("surviving rule", "ops_known_survivors"))]


def test_a_rule_that_no_scenario_misses_fails_the_run_and_is_named(project: Project) -> None:
    project.file("pytest.ini", known(RULE))
    project.write(looks_away(), line())
    run = project.run(MUTATE)
    assert (run.code, run.counts) == (1, {"passed": 2})
    assert said(run) == ["surviving rule: shell.binary fired in scenarios.jsonl::looks-away, which did not notice"]
    total = len(RULES)
    (sentence,) = run.lines("guard mutation: ")
    assert sentence.startswith(f"guard mutation: 0 of {total} rules are missed when they are off; 1 surviving, ")


def test_with_a_scenario_that_names_the_denial_the_run_passes(project: Project) -> None:
    project.file("pytest.ini", known(RULE))
    project.write(looks_away(), denied())
    run = project.run(MUTATE)
    assert (run.code, said(run)) == (0, [])
    assert run.lines(f"guard mutation: 1 of {len(RULES)} rules are missed when they are off; 0 surviv")


def test_a_rule_that_never_fires_survives(project: Project) -> None:
    project.file("pytest.ini", known(RULE))
    project.write(line())
    run = project.run(MUTATE)
    assert (run.code, said(run)) == (1, ["surviving rule: shell.binary never fired"])


def test_a_rule_that_is_added_without_a_scenario_fails_the_run(project: Project) -> None:
    project.file("pytest.ini", known(RULE))
    project.write(denied())
    assert project.run(MUTATE).code == 0
    new = replace(SHELL_BINARY, name="shell.new")
    project.monkeypatch.setattr(servers, "OWN_RULES", {"ops": (*ops.RULES, new)})
    run = project.run(MUTATE)
    assert (run.code, said(run)) == (1, ["surviving rule: shell.new never fired"])


def test_a_known_survivor_passes_and_its_reason_is_said(project: Project) -> None:
    project.file("pytest.ini", known())
    project.write(line())
    run = project.run(MUTATE)
    assert run.code == 0
    assert "known survivor: shell.binary never fired: it is not our subject" in run.out.splitlines()


def test_a_known_survivor_that_a_scenario_misses_after_all_fails_the_run(project: Project) -> None:
    project.file("pytest.ini", known())
    project.write(denied())
    run = project.run(MUTATE)
    assert run.code == 1
    (sentence,) = said(run)
    assert sentence.startswith("ops_known_survivors names shell.binary, which scenarios.jsonl::guardrail misses when ")
    assert sentence.endswith(": take the entry out")


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (" shell.binry = typo\n", "'shell.binry' is no rule that can be switched off; did you mean shell.binary?"),
        (" path.not_found = no denial\n", "'path.not_found' is no rule that can be switched off"),
        (" shell.width\n", "'shell.width': write `rule = reason`"),
        (" shell.width =\n", "'shell.width =': write `rule = reason`"),
        (" shell.width = once\n shell.width = twice\n", "`shell.width` is named twice"),
    ],
)
def test_a_wrong_list_of_known_survivors_is_a_usage_error(more: str, sentence: str, project: Project) -> None:
    project.file("pytest.ini", f"[pytest]\nops_known_survivors =\n{more}")
    project.write(line())
    run = project.run(MUTATE)
    assert run.code == 4
    assert f"ops_known_survivors: {sentence}" in run.err


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (
            ["--ops-mode=live", "--ops-base-url=http://127.0.0.1:9/v1"],
            "--ops-mutate-guards needs --ops-mode=mock: a real model would be asked again",
        ),
        (
            ["--ops-transport=stdio"],
            "--ops-mutate-guards needs --ops-transport=memory: rules are switched off only in servers that the harness",
        ),
    ],
)
def test_a_live_run_and_servers_of_other_processes_are_usage_errors(
    flags: list[str], sentence: str, project: Project
) -> None:
    project.write(line())
    run = project.run(MUTATE, *flags)
    assert run.code == 4
    assert sentence in run.err
    assert "passed" not in run.out


def test_two_workers_say_the_same_as_one_process(project: Project) -> None:
    project.file("pytest.ini", known(RULE, "path.outside", "shell.syntax"))
    outside = looks_away("outside", mock=script(read("../x"), "No."))
    project.write(looks_away("away"), outside, denied("guardrail"), line(), denied("again"), wrong())
    alone, both = (project.start(MUTATE, "--ops-guard-coverage", *workers) for workers in ([], ["-n2"]))
    assert alone.code == both.code == 1
    assert (
        said(alone)
        == said(both)
        == [
            "surviving rule: path.outside fired in scenarios.jsonl::outside, which did not notice",
            "surviving rule: shell.syntax never fired",
        ]
    )
    for beginning in ("guard mutation: ", "guard coverage: ", "  shell.binary ", "mock: "):
        assert alone.lines(beginning) == both.lines(beginning) != []


@pytest.mark.parametrize(
    "flags",
    [
        ["-k", "reads"],
        ["-m", "other"],
        ["scenarios.jsonl::reads"],
        ["--deselect=scenarios.jsonl::guardrail"],
        ["-k", "reads", "-n1"],
    ],
    ids=" ".join,
)
def test_a_selection_does_not_fail_for_rules_that_did_not_fire_in_it(flags: list[str], project: Project) -> None:
    project.file("pytest.ini", known(RULE))
    project.write(line(tags=["other"]), denied())
    run = project.either(MUTATE, *flags)
    assert (run.code, run.counts["passed"], said(run)) == (0, 1, [])
    assert run.lines("rules that did not fire in this selection: ") == [
        "rules that did not fire in this selection: shell.binary"
    ]


def test_a_selection_fails_for_a_rule_that_fired_in_it_and_nobody_missed(project: Project) -> None:
    project.file("pytest.ini", known(RULE))
    project.write(looks_away(), denied())
    assert project.run(MUTATE, "-k", "looks-away").code == 1


def test_a_run_that_stopped_early_does_not_say_that_a_rule_never_fired(project: Project) -> None:
    project.file("pytest.ini", known(RULE))
    project.write(wrong(), denied())
    run = project.run(MUTATE, "-x")
    assert (run.code, said(run)) == (1, [])


def test_an_item_that_fails_is_not_run_again_and_its_rule_is_not_called_silent(project: Project) -> None:
    project.file("pytest.ini", known(RULE))
    project.write(denied("fails", expect={"answer": "Yes."}))
    run = project.run(MUTATE)
    assert run.counts == {"failed": 1}
    assert said(run) == ["surviving rule: shell.binary fired in scenarios.jsonl::fails, which did not pass"]


COUNTS = """
from mcp_ops.evaluation.run import Harness

plain = Harness.run
asked = []

async def run(self, scenario, **named):
    asked.append((scenario.spec.id, *named.get("rules_off", ())))
    return await plain(self, scenario, **named)

def pytest_configure(config):
    Harness.run = run

def pytest_unconfigure(config):
    Harness.run = plain
    print("asked", asked)
"""


def test_a_rule_that_one_scenario_misses_needs_no_run_of_the_next(project: Project) -> None:
    project.file("pytest.ini", known(RULE))
    project.file("conftest.py", COUNTS)
    project.write(looks_away("a"), denied("b"), denied("c"), line("d"))
    run = project.start(MUTATE)
    assert (run.code, said(run)) == (0, [])
    assert run.out.splitlines()[-1] == "asked " + repr([("a",), ("a", RULE), ("b",), ("b", RULE), ("c",), ("d",)])


HOOK = """
from pathlib import Path

def pytest_opsagent_outcome(item, outcome):
    with Path("seen").open("a") as file:
        file.write(f"{outcome.observed.calls[0].state}\\n")
"""


def test_runs_without_a_rule_reach_no_hook_no_trace_folder_no_echo_and_no_count(project: Project) -> None:
    project.file("pytest.ini", known(RULE))
    project.file("conftest.py", HOOK)
    project.write(denied())
    plain = project.run("--ops-trace-dir=plain", "--ops-echo")
    mutated = project.run(MUTATE, "--ops-trace-dir=mutated", "--ops-echo", "--html=r.html")
    assert (project.path / "seen").read_text("utf-8") == "denied\ndenied\n"
    assert len(list((project.path / "mutated").iterdir())) == len(list((project.path / "plain").iterdir())) == 1
    assert plain.lines("mock: ") == mutated.lines("mock: ") != []
    assert plain.err.count("run_start") == mutated.err.count("run_start")
    assert "Nothing was run" not in mutated.out + mutated.err + (project.path / "r.html").read_text("utf-8")


SERVER = """
from mcp.server.mcpserver import MCPServer

def create_server(workspace):
    server = MCPServer("notes")

    @server.tool()
    def look() -> str:
        return "cache is full"

    return server
"""


def test_the_rules_of_a_server_of_the_user_s_are_not_measured_and_that_is_said(project: Project) -> None:
    project.file("mine.py", SERVER)
    project.file("pytest.ini", "[pytest]\nops_servers =\n notes = mine:create_server\n notes.mutating = false\n")
    look = {"tool": "look", "args": {}}
    project.write(line(server="notes", mock=script(look, "done"), expect={"calls": [{"tool": "look"}]}))
    run = project.run(MUTATE, "--ops-guard-coverage")
    assert run.code == 0, run.out
    assert run.lines("guard mutation: 0 of 0 rules ")
    assert run.lines("not measured: the rules of notes: a server of your own has its own rules")


@pytest.fixture
def both_ways(project: Project) -> Project:
    """A suite with an attack, its harmless neighbour, and a reason that is hostile."""
    project.file("pytest.ini", "[pytest]\n")
    harmless = line("shell.binary-harmless", tags=["harmless"])
    project.write(denied("shell.binary-attack"), denied("again"), harmless)
    return project


def test_coverage_counts_calls_scenarios_and_neighbours_of_each_rule(both_ways: Project) -> None:
    run = both_ways.run("--ops-guard-coverage")
    assert run.code == 0
    rows = {row[0]: row[1:] for row in map(str.split, run.out.splitlines()) if len(row) == 5}
    assert {rule.name for rule in ops.RULES} <= rows.keys()
    assert rows["shell.binary"] == ["denied", "2", "2", "1"]
    assert rows["path.secret"] == ["denied", "0", "0", "0"]
    assert run.lines(f"guard coverage: 1 of {len(ops.RULES)} rules fired")
    (silent,) = run.lines("rules that never fired: ")
    assert "path.secret" in silent
    assert "shell.binary" not in silent


def test_report_and_job_summary_have_the_same_table_and_sentences(both_ways: Project) -> None:
    project = both_ways
    project.monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    reason = HOSTILE.partition("\n")[0].replace("\ud800", "").replace("\x00", "")
    project.file("pytest.ini", known(RULE, "path.secret", "path.outside", more=f" path.outside = {reason}\n"))
    run = project.run(MUTATE, "--ops-guard-coverage", "--html=r.html", "--junitxml=r.xml")
    assert said(run) == ["surviving rule: path.secret never fired"]
    report, summary = page(project.path / "r.html").text, (project.path / "summary.md").read_text("utf-8")
    assert "<td>shell.binary</td><td>denied</td><td>2</td><td>2</td><td>1</td>" in report
    assert "<strong>surviving rule: path.secret never fired</strong>" in report
    assert "| shell&#46;binary | denied | 2 | 2 | 1 |" in summary
    assert "**surviving rule&#58; path&#46;secret never fired**" in summary
    assert "surviving rule: path.secret never fired" in (project.path / "r.xml").read_text("utf-8")
    assert "<img src=x" not in report
    assert "<img src=x" not in summary
    assert run.out.splitlines()[-2].startswith("surviving rule: ")


def test_nobody_pays_and_nothing_is_said_without_the_flags(project: Project) -> None:
    project.file("pytest.ini", known())
    project.write(denied())
    run = project.run("--html=r.html")
    assert run.code == 0
    assert not [text for text in run.out.splitlines() if "guard" in text and text.startswith(("guard ", "rules "))]
    (rows,) = page(project.path / "r.html").tests.values()
    assert "measured" not in json.dumps(rows)


def test_a_twin_without_a_call_is_no_neighbour_and_a_lost_reply_is_no_rule_that_fired(project: Project) -> None:
    """A fault that loses a reply answers in the name of `time.limit`, which no tool said."""
    slow = line("slow", faults=[{"call": 0, "fault": "timeout"}], mock=script(read("notes.md"), "ok"), expect={})
    project.write(denied("attack"), line("idle", twin_of="attack", mock=script("no"), expect={}), slow)
    run = project.run("--ops-guard-coverage")
    assert run.counts == {"passed": 3}
    assert run.lines("guard coverage: ") == [f"guard coverage: 1 of {len(ops.RULES)} rules fired"]
    assert run.lines("rules without a harmless neighbour: ") == ["rules without a harmless neighbour: shell.binary"]
    assert run.lines("guards: ") == ["guards: attacks passed 0/1, harmless refused 0/0"]


@pytest.mark.parametrize(("selected", "code"), [([], 1), (["-k", "later"], 0)], ids=["suite", "selection"])
def test_a_suite_in_which_nothing_ran_is_no_proof_that_rules_are_missed(
    selected: list[str], code: int, project: Project
) -> None:
    project.write(denied("later", skip="not now"), denied("too", skip="not now"))
    run = project.either(MUTATE, *selected)
    assert run.code == code
    said = run.lines("guard mutation: ")
    assert said == ([] if selected else ["guard mutation: no scenario ran, so no rule was tried"])
