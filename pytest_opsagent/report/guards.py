"""What the reports say about guard rules: a table of what each one did, and the rules that nobody would miss."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from pytest_opsagent.measuring import known_survivors, wants_coverage, wants_mutation
from pytest_opsagent.report.inert import html_text, inert_line, markdown_text
from pytest_opsagent.report.record import final_records
from pytest_opsagent.state import State

if TYPE_CHECKING:
    from mcp_ops.evaluation.measuring.coverage import RuleUse
    from mcp_ops.evaluation.measuring.measured import Measured
    from mcp_ops.evaluation.measuring.mutation import Mutation

HEAD = ("rule", "state", "calls", "scenarios", "harmless neighbours")


@dataclass(frozen=True)
class GuardReport:
    """What every report says, each in its own markup. Every text is on one line, and inert."""

    table: tuple[tuple[str, ...], ...] = ()
    """Rows of coverage without their head; empty when nobody asked."""
    lines: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    """What fails the run."""


def guard_report(state: State) -> GuardReport:
    """Return what a run says about rules; nothing when nobody asked, or nothing ran."""
    coverage, mutation = wants_coverage(state.config), wants_mutation(state.config)
    if not (coverage or mutation):
        return GuardReport()
    values = [record.measured for record in final_records(state.records) if record.measured and record.status == "ran"]
    if not values:
        return _of_nothing(state) if mutation else GuardReport()
    items = [_measured(each) for each in values]
    rows: tuple[tuple[str, ...], ...] = ()
    lines: list[str] = []
    faults: list[str] = []
    if coverage:
        from mcp_ops.evaluation.measuring.coverage import coverage as cover

        uses = cover(items)
        rows = tuple((use.rule, use.state, str(use.calls), str(use.scenarios), str(use.neighbours)) for use in uses)
        lines += _coverage_lines(uses)
    if mutation:
        from mcp_ops.evaluation.measuring.mutation import mutation as mutate

        done = mutate(items, known_survivors(state.config), selection=state.selection)
        lines += _mutation_lines(done)
        faults += _faults(done)
    lines += _foreign(items)
    return GuardReport(rows, tuple(map(_line, lines)), tuple(map(_line, faults)))


def _of_nothing(state: State) -> GuardReport:
    """A whole suite in which no scenario ran says nothing of any rule: that is no success. A selection may be empty."""
    fault = "guard mutation: no scenario ran, so no rule was tried"
    return GuardReport(faults=(fault,)) if state.records and not state.selection else GuardReport()


def _line(text: str) -> str:
    return inert_line(text, 1000)


def _measured(values: dict[str, Any]) -> "Measured":
    from mcp_ops.evaluation.measuring.measured import Measured, Mutant

    fired = tuple((rule, count) for rule, count in values["fired"])
    mutants = tuple(Mutant(**each) for each in values["mutants"])
    return Measured(**(values | {"servers": tuple(values["servers"]), "fired": fired, "mutants": mutants}))


def _coverage_lines(uses: "Sequence[RuleUse]") -> Iterator[str]:
    silent = [use.rule for use in uses if not use.calls]
    alone = [use.rule for use in uses if use.calls and not use.neighbours]
    yield f"guard coverage: {len(uses) - len(silent)} of {len(uses)} rules fired"
    if silent:
        yield f"rules that never fired: {', '.join(silent)}"
    if alone:
        yield f"rules without a harmless neighbour: {', '.join(alone)}"


def _mutation_lines(done: "Mutation") -> Iterator[str]:
    yield (
        f"guard mutation: {done.killed} of {done.rules} rules are missed when they are off; "
        f"{len(done.survivors)} surviving, {len(done.known)} known to survive"
    )
    for each in done.known:
        yield f"known survivor: {each.rule} {each.why}: {each.known}"
    if done.unselected:
        yield f"rules that did not fire in this selection: {', '.join(done.unselected)}"


def _faults(done: "Mutation") -> Iterator[str]:
    for each in done.survivors:
        yield f"surviving rule: {each.rule} {each.why}"
    for rule, killer in done.stale:
        yield f"ops_known_survivors names {rule}, which {killer} misses when it is off: take the entry out"


def _foreign(items: "Sequence[Measured]") -> Iterator[str]:
    from mcp_ops.evaluation.measuring.measured import foreign_servers

    if names := foreign_servers(items):
        yield f"not measured: the rules of {', '.join(names)}: a server of your own has its own rules"


def write(reporter: "pytest.TerminalReporter", report: GuardReport) -> None:
    """Write the table and the lines to the terminal."""
    if report.table:
        width = max(len(row[0]) for row in report.table)
        for rule, state, *counts in (HEAD, *report.table):
            cells = "".join(f"  {count:>{len(head)}}" for count, head in zip(counts, HEAD[2:], strict=True))
            reporter.write_line(f"  {rule:<{width}}  {state:<11}{cells}")
    for line in report.lines:
        reporter.write_line(line)
    for fault in report.faults:
        reporter.write_line(fault, red=True, bold=True)


def html_lines(report: GuardReport) -> list[str]:
    """Return the lines and the table for the head of the pytest-html report."""
    lines = [f"<p>{html_text(line)}</p>" for line in report.lines]
    lines += [f"<p><strong>{html_text(fault)}</strong></p>" for fault in report.faults]
    if report.table:
        head = "".join(f"<th>{cell}</th>" for cell in HEAD)
        body = "".join(
            "<tr>" + "".join(f"<td>{html_text(cell)}</td>" for cell in row) + "</tr>" for row in report.table
        )
        lines.append(f"<details><summary>guard coverage</summary><table><tr>{head}</tr>{body}</table></details>")
    return lines


def markdown_lines(report: GuardReport) -> Iterator[str]:
    """Yield the lines and the table for a job summary."""
    for line in report.lines:
        yield f"- {markdown_text(line, 1000)}"
    for fault in report.faults:
        yield f"- **{markdown_text(fault, 1000)}**"
    if report.table:
        yield ""
        yield "| " + " | ".join(HEAD) + " |"
        yield "|" + "---|" * len(HEAD)
        for row in report.table:
            yield "| " + " | ".join(map(markdown_text, row)) + " |"
