"""From results to rules: which scenarios show that a rule holds, which show that it lets work through, and the gaps."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from mcp_ops.evaluation.line.neighbours import HARMLESS_TAG, stands_beside
from mcp_ops.evaluation.session.rules import RULES as HARNESS_RULES
from mcp_ops.evidence.results import ResultRecord, Results
from mcp_ops.gate import Rule, State
from mcp_ops.servers.rules import all_rules

Standing = Literal["failing", "known failure", "no evidence", "not expected", "one-sided", "shown"]
"""failing: a scenario that expects the rule failed, or one for which the rule is to blame. known failure: one failed as
its line says. no evidence: it fired
in no scenario that passed. not expected: it fired, and no scenario would fail if it had not. one-sided: it denies, and
no harmless neighbour was seen to pass. shown: none of these. All but the last are gaps, the worst first."""


@dataclass(frozen=True)
class Source:
    """One results file."""

    name: str
    sha256: str
    results: Results

    @property
    def final(self) -> list[tuple[ResultRecord, int]]:
        """The record of each item, the first in which safety broke or else the last, and how often it was run again."""
        runs: dict[str, list[ResultRecord]] = {}
        for record in self.results.records:
            runs.setdefault(record.nodeid, []).append(record)
        return [(_standing_record(records), len(records) - 1) for records in runs.values()]


def _standing_record(records: Sequence[ResultRecord]) -> ResultRecord:
    return next((record for record in records if not record.safety_held), records[-1])


@dataclass(frozen=True)
class Shown:
    """One scenario in one results file."""

    scenario: str
    nodeid: str
    location: str
    line_sha256: str
    outcome: str
    why: str
    """Why it is not green; empty when it is."""
    mode: str
    model: str
    cluster: str
    safety_held: bool
    runs: tuple[str, ...]
    reruns: int
    """How often pytest had run it before."""
    source: int
    """Number of the results file, from 1."""
    date: str
    """When the results were written, in UTC."""


@dataclass(frozen=True)
class RuleEvidence:
    """What there is about one rule."""

    rule: str
    state: str
    meaning: str
    standing: Standing
    shown_by: tuple[Shown, ...]
    """Passed, fired in it, and expected by it."""
    fired_in: tuple[Shown, ...]
    """Passed and fired in it, and it would not have failed without."""
    neighbours: tuple[Shown, ...]
    """Harmless scenarios beside it that passed without it."""
    failed: tuple[Shown, ...]
    """Failed or known to fail, and expects it, or it is to blame for that."""
    not_run: tuple[Shown, ...]
    """Expects it, and was not proven in this run."""

    @property
    def is_gap(self) -> bool:
        """Whether something is missing."""
        return self.standing != "shown"


@dataclass(frozen=True)
class Evidence:
    """Everything, the gaps first."""

    sources: tuple[Source, ...]
    rules: tuple[RuleEvidence, ...]
    not_green: tuple[Shown, ...]
    """Scenarios of any file that failed, are known to fail, or were not proven."""

    @property
    def gaps(self) -> tuple[RuleEvidence, ...]:
        """The rules with something missing."""
        return tuple(rule for rule in self.rules if rule.is_gap)


@dataclass(frozen=True)
class _Entry:
    record: ResultRecord
    shown: Shown

    @property
    def passed(self) -> bool:
        return self.record.status == "ran" and self.record.outcome == "passed"

    @property
    def file(self) -> str:
        return self.record.nodeid.partition("::")[0]

    @property
    def line(self) -> str:
        """Id of the line; a variant's name says its kind in brackets behind it."""
        return self.record.scenario.partition("[")[0]


def build(sources: Sequence[Source]) -> Evidence:
    """Return the evidence of results files, in which one file is counted once however often it is named."""
    distinct = tuple({source.sha256: source for source in sources}.values())
    entries = [entry for number, source in enumerate(distinct, 1) for entry in _entries(source, number)]
    rules = [_rule(rule, entries) for rule in _all_rules(entries)]
    order = get_args(Standing)
    return Evidence(
        distinct,
        tuple(sorted(rules, key=lambda rule: order.index(rule.standing))),
        tuple(entry.shown for entry in entries if entry.shown.why),
    )


def _entries(source: Source, number: int) -> Iterator[_Entry]:
    for record, reruns in source.final:
        if record.status != "other_mode":
            yield _Entry(record, _shown(record, reruns, number, source.results.written))


def _shown(record: ResultRecord, reruns: int, source: int, date: str) -> Shown:
    return Shown(
        scenario=record.scenario,
        nodeid=record.nodeid,
        location=record.location,
        line_sha256=record.line_sha256,
        outcome=record.outcome,
        why=_why(record),
        mode=record.mode,
        model=record.model,
        cluster=record.cluster,
        safety_held=record.safety_held,
        runs=record.runs,
        reruns=reruns,
        source=source,
        date=date,
    )


def _why(record: ResultRecord) -> str:
    if record.known:
        kind = "known failure" if record.safety_held else "known safety failure"
        return f"{kind} until {record.known_until}: {record.known}"
    if record.outcome == "failed":
        return f"failed: {record.message}"
    if record.status == "not_proven" or record.reasons:
        return f"not proven: {', '.join(record.reasons)}"
    return "" if record.outcome == "passed" else record.outcome


def _all_rules(entries: Iterable[_Entry]) -> Iterator[Rule]:
    """Yield the rules that ship here, then those that results name besides."""
    known = (*all_rules(), *HARNESS_RULES)
    yield from known
    named = {rule for entry in entries for rule in (*entry.record.rules_seen, *entry.record.rules_wanted)}
    for name in sorted(named - {rule.name for rule in known}):
        yield Rule(name, State.DENIED, "Not a rule of this version.")


def _rule(rule: Rule, entries: Sequence[_Entry]) -> RuleEvidence:
    fired = [entry for entry in entries if entry.passed and rule.name in entry.record.rules_seen]
    wanting = [entry for entry in entries if rule.name in entry.record.rules_wanted]
    about = [entry for entry in entries if entry in wanting or rule.name in entry.record.guard_blamed]
    failed = [entry for entry in about if entry.record.outcome in ("failed", "xfailed")]
    not_run = [entry for entry in wanting if not entry.passed and entry not in failed]
    expected = [entry for entry in fired if rule.name in entry.record.rules_wanted]
    neighbours = list(_neighbours(rule.name, entries))
    return RuleEvidence(
        rule.name,
        rule.state.value,
        rule.meaning,
        _standing(rule, failed, fired, expected, neighbours),
        shown_by=_all_shown(expected),
        fired_in=_all_shown(entry for entry in fired if entry not in expected),
        neighbours=_all_shown(neighbours),
        failed=_all_shown(failed),
        not_run=_all_shown(not_run),
    )


def _all_shown(entries: Iterable[_Entry]) -> tuple[Shown, ...]:
    return tuple(entry.shown for entry in entries)


def _standing(
    rule: Rule,
    failed: Sequence[_Entry],
    fired: Sequence[_Entry],
    expected: Sequence[_Entry],
    neighbours: Sequence[_Entry],
) -> Standing:
    if any(entry.record.outcome == "failed" for entry in failed):
        return "failing"
    if failed:
        return "known failure"
    if not fired:
        return "no evidence"
    if not expected:
        return "not expected"
    return "one-sided" if rule.state is State.DENIED and not neighbours else "shown"


def _neighbours(rule: str, entries: Sequence[_Entry]) -> Iterator[_Entry]:
    """Yield what passed without the rule beside an attack: its twin, or a line named after the rule.

    One in which no call was let through shows nothing.
    """
    attacks = {f"{entry.file}::{entry.line}" for entry in entries if rule in entry.record.rules_seen}
    for entry in entries:
        record = entry.record
        if not entry.passed or rule in record.rules_seen or record.calls <= record.denials:
            continue
        harmless = HARMLESS_TAG in record.tags
        twin_of = f"{entry.file}::{record.twin_of}" if record.twin_of else None
        if stands_beside(rule, entry.line, harmless=harmless, twin_of=twin_of, attacks=attacks):
            yield entry


def as_document(evidence: Evidence, written: str) -> Mapping[str, Any]:
    """Return the evidence as JSON values.

    Args:
        evidence: What was built.
        written: The time in UTC.
    """
    return {
        "v": 1,
        "written": written,
        "rules": [_values(rule) for rule in evidence.rules],
        "not_green": [vars(shown) for shown in evidence.not_green],
        "sources": [
            {
                "source": number,
                "name": source.name,
                "sha256": source.sha256,
                **source.results.model_dump(exclude={"v", "records"}),
                "scenarios": len(source.final),
            }
            for number, source in enumerate(evidence.sources, 1)
        ],
    }


def _values(rule: RuleEvidence) -> dict[str, Any]:
    return {
        name: [vars(shown) for shown in value] if isinstance(value, tuple) else value
        for name, value in vars(rule).items()
    }
