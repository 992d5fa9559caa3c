"""What the terminal says at the end, and the lines that other reports share with it."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_args

import pytest

from pytest_opsagent.report import guards
from pytest_opsagent.report.inert import inert_line
from pytest_opsagent.report.injection import injection_lines
from pytest_opsagent.report.rates import rate_lines
from pytest_opsagent.report.record import Outcome, Record, final_records
from pytest_opsagent.state import State

NAMED = 20
"""Known safety failures that are named."""


def write(reporter: "pytest.TerminalReporter", state: State) -> None:
    """Write the section of the summary; nothing when the run had no scenario."""
    if not (state.records or state.unselected or state.ran):
        return
    reporter.section("opsagent", cyan=True)
    for line in count_lines(state.records):
        reporter.write_line(line)
    for text in state.unselected.values():
        reporter.write_line(f"bad line that was not selected: {text}", yellow=True)
    if kept := kept_traces(state):
        reporter.write_line(f"traces: {inert_line(str(kept), 1000)}")
    for failure in state.redaction_failures:
        reporter.write_line(f"redaction failed: {inert_line(failure)}", red=True, bold=True)
    if state.results_failure:
        reporter.write_line(state.results_failure, red=True, bold=True)
    for line in known_lines(state.records):
        reporter.write_line(line, yellow=True)
    for rate in rate_lines(state.records, every_rule=state.config.get_verbosity() > 0):
        reporter.write_line(rate)
    guards.write(reporter, guards.guard_report(state))
    if line := not_proven_line(state.records):
        reporter.write_line(line, yellow=True, bold=True)


def count_lines(records: Sequence[Record]) -> list[str]:
    """Return one line of counts for each mode that was run, and what hostile texts came to."""
    final = final_records(records)
    lines = []
    for mode in sorted({record.mode for record in final}):
        chosen = [record for record in final if record.mode == mode]
        lines.append(f"{mode}: {_counts(chosen)}{_cost(chosen)}")
        if mode == "live":
            lines.append(_split([record for record in records if record.mode == mode]))
    return lines + injection_lines(records)


def _counts(records: Sequence[Record]) -> str:
    words = Counter(record.outcome for record in records)
    parts = ", ".join(f"{words[word]} {word}" for word in get_args(Outcome) if words[word])
    calls, denials = sum(record.calls for record in records), sum(record.denials for record in records)
    return f"{_number(len(records), 'scenario')}: {parts}; {_number(calls, 'call')}, {denials} denied"


def _cost(records: Sequence[Record]) -> str:
    tokens = [record.tokens for record in records if record.tokens is not None]
    usd = [record.usd for record in records if record.usd is not None]
    return (f", {sum(tokens)} tokens" if tokens else "") + (f", {sum(usd):.4f} USD" if usd else "")


def _split(records: Sequence[Record]) -> str:
    """Return how often safety held, and how often the task was done: the first is never averaged away."""
    ran = list({(record.nodeid, record.trace): record for record in records if record.status == "ran"}.values())
    attempts, died = sum(record.attempts for record in ran), sum(record.died for record in ran)
    held, done = sum(record.held for record in ran), sum(record.done for record in ran)
    line = f"live: safety held in {held}/{attempts}, task done in {done}/{attempts - died}"
    return line + (f"; {_number(died, 'attempt')} died of an infrastructure error" if died else "")


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def not_proven_line(records: Sequence[Record]) -> str:
    """Return `NOT PROVEN: 3 scenarios (cluster 2, nothing checked 1)`, or nothing when all was proven."""
    final = final_records(records)
    open_ones = [record for record in final if record.status == "not_proven" or record.known]
    if not open_ones:
        return ""
    reasons = Counter(reason for record in open_ones for reason in record.reasons)
    named = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
    line = f"NOT PROVEN: {_number(len(open_ones), 'scenario')} ({inert_line(named)})"
    evidence = {rule for record in final if record.outcome == "passed" for rule in record.rules_seen}
    missing = sorted({rule for record in open_ones for rule in record.rules_wanted} - evidence)
    return line + (f"; rules without evidence: {inert_line(', '.join(missing))}" if missing else "")


def known_lines(records: Sequence[Record]) -> list[str]:
    """Return one line that counts known failures, then one for each that breaks safety; nothing when there is none."""
    known = [record for record in final_records(records) if record.known]
    if not known:
        return []
    unsafe = [record for record in known if not record.safety_held]
    among = f" ({len(unsafe)} safety)" if unsafe else ""
    expires = min(record.known_until for record in known)
    named = [
        f"known safety failure: {record.location} {record.scenario}, until {record.known_until}: {record.known}"
        for record in unsafe[:NAMED]
    ]
    if len(unsafe) > NAMED:
        named.append(f"known safety failure: and {len(unsafe) - NAMED} more")
    return [f"known failures: {len(known)}{among}, next expires {expires}", *named]


def kept_traces(state: State) -> Path | None:
    """Return the folder of the traces that are still there, or None."""
    traces = [Path(record.trace) for record in state.records if record.trace]
    folders = [trace.parent.parent for trace in traces if trace.is_file()]
    if not folders and state.has_traces:
        return state.trace_dir
    return _common(folders)


def _common(folders: Iterable[Path]) -> Path | None:
    paths = sorted({str(folder) for folder in folders})
    return Path(os.path.commonpath(paths)) if paths else None
