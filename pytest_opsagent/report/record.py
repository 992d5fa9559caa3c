"""What one run of an item came to, in plain values: it travels with its report from an xdist worker."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakKeyDictionary

import pytest

Status = Literal["ran", "not_run", "bad_line", "other_mode", "not_proven"]
"""ran: the agent ran and its run was judged. not_run: its set-up failed, or its xdist worker crashed. bad_line: there
was nothing to run. other_mode: the line is for another mode. not_proven: a need was not met, or nothing was checked."""

Outcome = Literal["passed", "failed", "skipped", "xfailed"]
"""What pytest says of the attempt; xfailed: it failed, and its line says that this is known."""
ATTRIBUTE = "opsagent"
"""Name of the report's attribute that holds the record."""
REDACTED = "opsagent_redacted"
"""Name of the report's attribute that names captured output in which there was a canary."""


@dataclass(frozen=True)
class Record:
    """One run of an item. Every text in it is cleaned, redacted and on one line."""

    nodeid: str
    location: str
    """`scenarios/scenarios.jsonl:17`."""
    scenario: str
    """Id of the scenario."""
    status: Status
    outcome: Outcome
    mode: str = "mock"
    model: str = ""
    cluster: str = "none"
    finish: str = ""
    calls: int = 0
    denials: int = 0
    turns: int = 0
    tokens: int | None = None
    usd: float | None = None
    seconds: float = 0.0
    safety_held: bool = True
    task_done: bool = True
    attempts: int = 0
    """How often an agent was run: several times where a live line says so."""
    held: int = 0
    """In how many attempts safety held."""
    done: int = 0
    """In how many attempts the task was done, those that died left out."""
    died: int = 0
    """How many attempts died of an error of the provider or the network."""
    injections: int = 0
    """In how many attempts the agent met hostile text."""
    injections_succeeded: int = 0
    """In how many of them it did what the text asks for."""
    injection_tasks: int = 0
    """In how many of them something says whether the user's task was done."""
    injection_tasks_done: int = 0
    problems: tuple[str, ...] = ()
    """Kinds of problems, such as `task`, each once; empty when every expectation held."""
    reasons: tuple[str, ...] = ()
    """Why it is not proven: names of needs, `nothing checked`, or `known failure`."""
    known: str = ""
    """Why its failure is known, with the issue; empty when it did not fail, or is red."""
    known_until: str = ""
    """The last day of the known failure, `2027-01-31`."""
    message: str = ""
    """First line of the failure, without its location."""
    trace: str | None = None
    redaction_failures: tuple[str, ...] = ()
    rules_seen: tuple[str, ...] = ()
    """Rules that fired in it."""
    rules_wanted: tuple[str, ...] = ()
    """Rules that the line expects to fire."""
    tags: tuple[str, ...] = ()
    twin_of: str = ""
    """Id of the scenario in the same file whose harmless twin it is."""
    guard_side: Literal["", "attack", "harmless"] = ""
    """What it tries on guards, if it ran."""
    guard_rules: tuple[str, ...] = ()
    """The rules that it tries."""
    guard_failed: bool = False
    """The attack passed, or the harmless work was refused."""
    guard_blamed: tuple[str, ...] = ()
    """Those of the rules that are to blame for it."""
    line_sha256: str = ""
    """SHA-256 of the line as it stands in its file; empty for a scenario from Python."""
    runs: tuple[str, ...] = ()
    """Ids of the runs, which are in their traces, kept or not."""
    measured: dict[str, Any] | None = None
    """What it says about rules: a `mcp_ops.evaluation.measuring.measured.Measured` in plain values, if asked for."""


_RECORDS: WeakKeyDictionary[Any, Record] = WeakKeyDictionary()
"""Records of the reports of this process, as they were before or are after the journey from a worker."""


def attach(report: pytest.TestReport, record: Record) -> None:
    """Put a record on a report, in a form that every serialiser of reports takes."""
    values = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(record).items()}
    setattr(report, ATTRIBUTE, values)
    _RECORDS[report] = record


def attach_redacted(report: pytest.TestReport, sentences: list[str]) -> None:
    """Note on a report what had to be redacted in it."""
    if sentences:
        setattr(report, REDACTED, sentences)


def redacted_of(report: Any) -> list[str]:
    """Return what had to be redacted in a report."""
    sentences = getattr(report, REDACTED, [])
    return sentences if isinstance(sentences, list) else []


def record_of(report: Any) -> Record | None:
    """Return the record of a report, or None when it is not a scenario's."""
    values = getattr(report, ATTRIBUTE, None)
    if not isinstance(values, dict):
        return None
    if report in _RECORDS:
        return _RECORDS[report]
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    return _RECORDS.setdefault(report, Record(**fields))


def keep(records: list[Record], record: Record, when: str) -> None:
    """Add the record of a report; one of the teardown stands for the run that it ends, in place of that run's own."""
    if when == "teardown":
        for number in reversed(range(len(records))):
            if records[number].nodeid == record.nodeid:
                records[number] = record
                return
    records.append(record)


def records_with_the_worst(records: Sequence[Record], is_bad: Callable[[Record], bool]) -> list[Record]:
    """Return a record of each item, the first that is bad, else the last: what is bad is cleared by no run after it."""
    bad = {record.nodeid: record for record in reversed(records) if is_bad(record)}
    return [bad.get(record.nodeid, record) for record in final_records(records)]


def final_records(records: Sequence[Record]) -> list[Record]:
    """Return a record of each item: the first in which safety broke, else the last, before which it was run again.

    An item that broke safety may run anew in another xdist worker, when the first one crashed: that clears nothing.
    """
    final: dict[str, Record] = {}
    for record in records:
        if record.nodeid not in final or final[record.nodeid].safety_held:
            final[record.nodeid] = record
    return list(final.values())
