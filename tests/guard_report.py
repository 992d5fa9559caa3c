"""`make guard-report`: what the guards let through and what they refuse, over every line of the test data.

An attack is only judged, never run. A harmless line is run, and works when it ends as bash would have it end.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from calls import Reply, ask
from pydantic import ValidationError
from shelllab import OUTSIDE, SECRET, build_lab, commands, lines

from mcp_ops.gate import ARGS_INVALID, GUARD_ERROR, TIME_LIMIT, Denied, Refuse
from mcp_ops.ops.context import OpsContext
from mcp_ops.ops.workspace import Workspace
from mcp_ops.servers.ops import TOOLS, describe_second_wall

BY_NAME = {tool.name: tool for tool in TOOLS}
NEEDS_CLUSTER = frozenset({"kubectl_get", "kubectl_describe", "kubectl_logs"})
WITHHELD = frozenset({"withheld", "allowed"})
"""Classes whose lines may cover secrets, FIFOs and huge files: they are not given to bash, which would read those."""
LARGE = 100_000_000
"""Bytes: beyond what a program may read whole."""
MAX_SHOWN = 20


@dataclass(frozen=True)
class Line:
    """One call and what is to become of it."""

    corpus: str
    kind: str
    tool: str
    arguments: dict[str, Any]
    expect: Literal["attack", "harmless", "policy"]
    rule: str | None = None
    """The rule that must refuse it, where the data says so."""
    policy: str = ""
    """Why a line that is harmless by itself is refused."""

    @property
    def shown(self) -> str:
        return str(self.arguments.get("command", f"{self.tool} {self.arguments}"))


@dataclass(frozen=True)
class Judged:
    """What became of a line."""

    line: Line
    rule: str | None
    """Who refused it; None when it is allowed."""
    fault: str = ""
    """How an allowed line went wrong when it was run."""


Guard = Callable[[Line, OpsContext], str | None]
"""Returns the rule that refuses a line, or None."""


def guarded(line: Line, context: OpsContext, off: Sequence[str] = ()) -> str | None:
    """Judge a line by the guard of its tool, with the rules `off` switched off. Nothing runs."""
    tool = BY_NAME[line.tool]
    given = {name: value for name, value in line.arguments.items() if value is not None}
    try:
        tool.guard(tool.arguments.model_validate(given), context, Refuse(frozenset(off)))
    except ValidationError:
        return ARGS_INVALID.name
    except Denied as denied:
        return denied.rule.name
    except OSError:
        # A path without its rules can raise anywhere; the gate turns that into a refusal.
        return GUARD_ERROR.name
    return None


def all_lines() -> Iterator[Line]:
    """Yield every line of the corpora that the guards are measured with."""
    yield from _shared("shell.jsonl")
    for rule, command in commands():
        harmless = rule == "allowed"
        expect: Literal["attack", "harmless"] = "harmless" if harmless else "attack"
        yield Line("shell_commands.txt", rule, "run_shell", {"command": command}, expect, None if harmless else rule)
    for line in lines("guard_lines.jsonl"):
        policy = line.get("policy", "")
        outcome: Literal["attack", "harmless", "policy"] = "attack" if line["expect"] == "deny" else "harmless"
        yield Line(
            "guard_lines.jsonl",
            line["class"],
            line["tool"],
            line["args"],
            "policy" if policy else outcome,
            line.get("rule"),
            policy,
        )


def _shared(name: str) -> Iterator[Line]:
    """Yield the strict lines, and of the others those that are refused: a policy, with the reason in the data."""
    for line in lines(name):
        command = {"command": line["command"]}
        if line["strict"]:
            expect: Literal["attack", "harmless"] = "attack" if line["expect"] == "deny" else "harmless"
            yield Line(name, line["class"], "run_shell", command, expect)
        elif line["expect"] == "deny":
            yield Line(name, line["class"], "run_shell", command, "policy", policy=line["why"])


@dataclass
class Report:
    """All lines, judged."""

    judged: list[Judged] = field(default_factory=list)

    def of(self, expect: str, corpus: str | None = None) -> list[Judged]:
        return [each for each in self.judged if each.line.expect == expect and corpus in (None, each.line.corpus)]

    @property
    def passed(self) -> list[Judged]:
        """Attacks that nothing refuses."""
        return [each for each in self.of("attack") if each.rule is None]

    @property
    def refused(self) -> list[Judged]:
        """Harmless lines that are refused, or do not work."""
        return [each for each in self.of("harmless") if each.rule is not None or each.fault]

    @property
    def by_another_rule(self) -> list[Judged]:
        """Attacks that are refused for another reason than the data names."""
        return [each for each in self.of("attack") if each.rule and each.line.rule not in (None, each.rule)]


async def measure(ws: Path, guard: Guard = guarded, *, every: int | None = 1) -> Report:
    """Judge every line in the lab at `ws`; of those that are harmless and allowed run one in `every`, or none."""
    context = OpsContext(Workspace(ws))
    report = Report()
    for number, line in enumerate(all_lines()):
        rule = guard(line, context)
        run = every is not None and number % every == 0
        works = run and line.expect == "harmless" and rule is None and line.tool not in NEEDS_CLUSTER
        report.judged.append(Judged(line, rule, await _fault(line, context) if works else ""))
    return report


async def _fault(line: Line, context: OpsContext) -> str:
    reply: Reply = await ask(BY_NAME[line.tool], context, line.arguments)
    if SECRET in reply.text or OUTSIDE in reply.text:
        return "shows what must be withheld"
    if line.tool != "run_shell":
        return "" if reply.reading.state in ("executed", "failed") else f"ended as {reply.reading.state}"
    if line.kind in WITHHELD and reply.reading.rule == TIME_LIMIT.name:
        return ""
    if reply.reading.state != "executed":
        return f"ended as {reply.reading.state} ({reply.reading.rule})"
    if line.kind in WITHHELD:
        return ""
    wanted = _in_bash(str(line.arguments["command"]), context.workspace.root)
    return "" if reply.reading.exit_code == wanted else f"exit code {reply.reading.exit_code}, in bash {wanted}"


def _in_bash(command: str, ws: Path) -> int:
    environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC", "HOME": str(ws)}
    ended = subprocess.run(
        ["bash", "-c", command.replace("\r\n", "\n")],
        cwd=ws,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=20,
    )
    return ended.returncode


def text(report: Report) -> Iterator[str]:
    """Yield the lines of the report."""
    for corpus in dict.fromkeys(each.line.corpus for each in report.judged):
        attacks, harmless = report.of("attack", corpus), report.of("harmless", corpus)
        passed = sum(each.rule is None for each in attacks)
        refused = sum(each.rule is not None or bool(each.fault) for each in harmless)
        yield f"{corpus:<20} attacks: {len(attacks):>4}, {passed} pass"
        yield f"{'':<20} harmless: {len(harmless):>3}, {refused} refused"
    yield from _listed("Attacks that pass", report.passed)
    yield from _listed("Harmless lines that are refused or do not work", report.refused)
    yield from _listed("Attacks that another rule refuses than the data names", report.by_another_rule)
    yield from ("", "By rule                refused attacks   refused by policy   refused though harmless")
    counts = {name: Counter(each.rule for each in report.of(name)) for name in ("attack", "policy", "harmless")}
    for rule in sorted({each.rule for each in report.judged if each.rule}):
        row = (counts[name][rule] for name in ("attack", "policy", "harmless"))
        yield f"  {rule:<20} " + " ".join(f"{count:>15}" for count in row)
    yield from ("", "Refused by policy, harmless by themselves")
    for each in report.of("policy"):
        if each.rule is not None:
            yield f"  {each.rule:<16} {each.line.shown[:60]!r}: {each.line.policy}"
    yield from ("", "Allowed by policy, though the data would refuse them too")
    for each in report.of("policy"):
        if each.rule is None:
            yield f"  {each.line.shown[:60]!r}: {each.line.policy}"
    yield ""
    yield f"Second wall: {describe_second_wall()}"


def _listed(title: str, judged: Sequence[Judged]) -> Iterator[str]:
    if judged:
        yield from ("", f"{title}: {len(judged)}")
    for each in judged[:MAX_SHOWN]:
        yield f"  {each.line.corpus} {each.line.kind}: {each.line.shown[:80]!r} {each.rule or ''} {each.fault}"


def build(folder: Path) -> Path:
    """Build the lab, and return its workspace. The large file is as large as it must be and no larger."""
    ws = build_lab(folder)
    os.truncate(ws / "sparse.img", LARGE)
    return ws


def main() -> int:
    """Print the report; 1 when an attack passes or a harmless line does not."""
    with tempfile.TemporaryDirectory(prefix="guard-report-") as folder:
        report = asyncio.run(measure(build(Path(folder))))
    sys.stdout.write("\n".join(text(report)) + "\n")
    return 1 if report.passed or report.refused else 0


if __name__ == "__main__":
    sys.exit(main())
