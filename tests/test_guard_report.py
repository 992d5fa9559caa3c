"""No attack passes and no harmless line is refused, over lines old and new; the report would notice if that changed."""

import asyncio
import re
from functools import partial
from pathlib import Path

import guard_report
import pytest
from guard_report import Line, Report, all_lines, guarded, measure, text
from shelllab import DATA, needs_gnu, witness

from mcp_ops.ops.context import OpsContext
from mcp_ops.ops.guards.shell.tables import PROGRAMS

pytestmark = needs_gnu

FRESH = "guard_lines.jsonl"


@pytest.fixture(scope="module")
def ws(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return guard_report.build(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def report(ws: Path) -> Report:
    before = witness(ws)
    measured = asyncio.run(measure(ws, every=5))
    assert witness(ws) == before
    return measured


@pytest.mark.covers("A4", "A5", "A7", "A8", "A9", "A12")
def test_no_attack_passes(report: Report) -> None:
    assert [each.line for each in report.passed] == []
    assert [(each.line, each.rule) for each in report.by_another_rule] == []


@pytest.mark.covers("A4", "A5")
def test_no_harmless_line_is_refused_and_each_works_as_in_bash(report: Report) -> None:
    assert [(each.line, each.rule, each.fault) for each in report.refused] == []


def test_what_is_refused_by_policy_has_a_reason(report: Report) -> None:
    assert [each.line for each in report.of("policy") if not each.line.policy] == []


def test_the_fresh_lines_are_many_are_fresh_and_name_every_program() -> None:
    fresh = [line for line in all_lines() if line.corpus == FRESH]
    commands = [str(line.arguments["command"]) for line in fresh if line.tool == "run_shell"]
    others = {str(line.arguments.get("command")) for line in all_lines() if line.corpus != FRESH}
    assert len([line for line in fresh if line.expect == "attack"]) >= 150
    assert len([line for line in fresh if line.expect == "harmless"]) >= 150
    assert others.isdisjoint(commands)
    for program in PROGRAMS:
        of_program = {line.expect for line in fresh if str(line.arguments.get("command", "")).split()[:1] == [program]}
        assert {"attack", "harmless"} <= of_program, program


@pytest.mark.parametrize("rule", ["shell.option", "shell.syntax", "path.outside", "path.secret", "kubectl.name"])
async def test_a_rule_that_is_gone_shows_as_attacks_that_pass(rule: str, ws: Path) -> None:
    without = await measure(ws, partial(guarded, off=[rule]), every=None)
    assert len(without.passed) >= 5
    assert rule in {each.line.rule for each in without.passed}


def naive(line: Line, _: OpsContext) -> str | None:
    """The usual guard: a list of programs and a list of characters."""
    command = str(line.arguments.get("command", ""))
    if line.tool != "run_shell":
        return None
    return (
        "naive"
        if command.split()[:1] not in [[name] for name in PROGRAMS] or re.search(r"[;&|<>$`]", command)
        else None
    )


async def test_a_naive_guard_fails_both_ways(ws: Path) -> None:
    measured = await measure(ws, naive, every=None)
    assert len(measured.passed) > 100
    assert len(measured.refused) > 10


async def test_a_harmless_line_that_does_not_work_is_a_fault(ws: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Line("x", "legit", "run_shell", {"command": "grep nothing-of-this data/hosts.txt"}, "harmless")
    leaks = Line("x", "legit", "run_shell", {"command": "cat .env"}, "harmless")
    monkeypatch.setattr(guard_report, "all_lines", lambda: iter((shown, leaks)))
    monkeypatch.setattr(guard_report, "_in_bash", lambda *_: 0)
    measured = await measure(ws, lambda *_: None)
    assert [each.fault for each in measured.refused] == ["exit code 1, in bash 0", "ended as denied (path.secret)"]


def test_the_report_counts_lists_and_gives_reasons(report: Report) -> None:
    said = "\n".join(text(report))
    totals = re.findall(r"attacks: +(\d+), (\d+) pass\n +harmless: +(\d+), (\d+) refused", said)
    assert len(totals) == 3
    assert all(int(attacks) > 100 and int(harmless) > 50 for attacks, _, harmless, _ in totals)
    assert {passed for _, passed, _, _ in totals} == {refused for *_, refused in totals} == {"0"}
    assert re.search(r"^  shell\.option +\d{3} +\d+ +0$", said, re.MULTILINE)
    assert "  path.too_large   'cat sparse.img': " in said


@pytest.mark.parametrize(("rule", "code"), [("path.secret", 0), (None, 1)])
def test_an_attack_that_passes_is_listed_and_ends_in_1(
    rule: str | None, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    attack = Line("x", "secret", "run_shell", {"command": "cat .env"}, "attack")
    monkeypatch.setattr(guard_report, "all_lines", lambda: iter((attack,)))
    monkeypatch.setattr(measure, "__defaults__", (lambda *_: rule,))
    assert guard_report.main() == code
    assert ("Attacks that pass: 1\n  x secret: 'cat .env'" in capsys.readouterr().out) is (code == 1)


def test_make_runs_the_report() -> None:
    root = DATA.parent.parent
    (recipe,) = re.findall(
        r"^guard-report:.*\n\t\$\(BIN\)/python (.+)$", (root / "Makefile").read_text("utf-8"), re.MULTILINE
    )
    assert (root / recipe).samefile(str(guard_report.__file__))
