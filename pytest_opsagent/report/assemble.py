"""Completes the report of an item: record, properties, trace, and captured output without secrets."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_opsagent.collect import BadLineItem, LineItem, ScenarioItem
from pytest_opsagent.configuration import mode_of
from pytest_opsagent.measuring import measured_values
from pytest_opsagent.report import html, junit
from pytest_opsagent.report.detail import detail_of, quiet_longrepr, quiet_sections, verdict_line
from pytest_opsagent.report.inert import html_text, inert, inert_line
from pytest_opsagent.report.record import Record, Status, attach, attach_redacted
from pytest_opsagent.state import OUTCOMES, STATE, State, redact

if TYPE_CHECKING:
    from mcp_ops.evaluation.judging.known import Excuse
    from mcp_ops.evaluation.outcome import Outcome
    from mcp_ops.trace.detail import Detail

SKIPPED = "skip"
"""Reason of an item that its line or a mark of pytest says not to run."""
NOTHING_CHECKED = "nothing checked"
"""Reason of an item that ran without any expectation."""
KNOWN_FAILURE, KNOWN_SAFETY_FAILURE = "known failure", "known safety failure"
"""Reasons of an item that failed as its line says it would."""


def complete(item: pytest.Item, report: pytest.TestReport) -> None:
    """Complete a report of a scenario, or of a test that may run some by the fixture.

    Every phase may carry captured output; the record goes with the call phase. An item that breaks or is skipped before
    it, or breaks after it, has a record of that: no reader takes it for one that passed, or that was not there.
    """
    if report.when != "call" and report.passed and not report.sections:
        return
    redact_sections(item, report)
    redact_longrepr(item, report)
    outcomes = item.stash[OUTCOMES]
    detail = detail_of(item.config, outcomes, began=report.when != "setup")
    quiet_sections(report, detail)
    if not (isinstance(item, LineItem) and report.when == "call"):
        quiet_longrepr(report, detail)
    if not (outcomes or isinstance(item, LineItem)) or (report.when != "call" and report.passed):
        return
    if report.when == "call" and html.wanted(item.config):
        html.add_fragments(report, _fragments(item, report, outcomes, detail))
    if report.passed:
        _forget_traces(outcomes, item.config.stash[STATE])
    record = make_record(item, report, outcomes)
    attach(report, record)
    properties = junit.properties(record)
    for owner in (item, report):
        junit.set_properties(owner, properties)
    if isinstance(item, LineItem):
        _place_skip(item, report)
    if excuse := _excuse_of(item, report):
        report.outcome = "skipped"
        report.wasxfail = inert_line(redact(item, excuse.sentence), 700)


def _excuse_of(item: pytest.Item, report: pytest.TestReport) -> "Excuse | None":
    """Return why a failure is known, as pytest keeps the reason of an `xfail` mark beside the failure's own text."""
    return item.excuse if isinstance(item, ScenarioItem) and report.when == "call" and report.failed else None


def _forget_traces(outcomes: "Sequence[Outcome]", state: State) -> None:
    for outcome in outcomes:
        if outcome.trace is not None:
            state.forget_trace(outcome.trace)


def redact_longrepr(item: pytest.Item, report: pytest.TestReport) -> None:
    """Replace a traceback that shows a canary by its redacted text: a test that fails may show all that it compared."""
    if report.failed:
        text = report.longreprtext
        redacted = redact(item, text)
        if redacted != text:
            report.longrepr = redacted


def redact_sections(item: pytest.Item, report: pytest.TestReport) -> None:
    """Replace canaries in captured output, and note in which sections there were some.

    What an agent or a server printed during a scenario is text from outside: no line of it may speak to a CI runner.
    """
    found = []
    for index, (title, content) in enumerate(report.sections):
        redacted = redact(item, content)
        shown = inert(redacted) if isinstance(item, LineItem) else redacted
        if shown != content:
            report.sections[index] = (title, shown)
        if redacted != content:
            found.append(f"{title[:1].lower()}{title[1:]} of {inert_line(report.nodeid)} held a canary")
    attach_redacted(report, found)


def make_record(item: pytest.Item, report: pytest.TestReport, outcomes: "Sequence[Outcome]") -> Record:
    """Return what the attempts of an item came to."""
    path, line, _ = report.location
    location = item.place.location if isinstance(item, LineItem) else inert_line(f"{path}:{(line or 0) + 1}")
    ran = [outcome for outcome in outcomes if outcome.observed is not None]
    seen = [outcome.observed for outcome in ran if outcome.observed is not None]
    injections = [outcome.injection for outcome in ran if outcome.injection is not None]
    calls = [call for observed in seen for call in observed.calls]
    tokens = [observed.tokens for observed in seen if observed.tokens is not None]
    costs = [observed.usd for observed in seen if observed.usd is not None]
    traces = [outcome.trace for outcome in outcomes if outcome.trace is not None and outcome.trace.is_file()]
    latest = outcomes[-1] if outcomes else None
    status, reasons = _status(item, report, outcomes)
    excuse = _excuse_of(item, report)
    return Record(
        nodeid=report.nodeid,
        location=location,
        scenario=inert_line(item.name),
        status=status,
        outcome="xfailed" if excuse else report.outcome,
        mode=latest.mode if latest else mode_of(item.config),
        model=inert_line(latest.model) if latest else "",
        cluster=inert_line(latest.cluster) if latest else "none",
        finish=seen[-1].finish if seen else "",
        calls=len(calls),
        denials=sum(call.state == "denied" for call in calls),
        turns=sum(observed.turns for observed in seen),
        tokens=sum(tokens) if tokens else None,
        usd=sum(costs) if costs else None,
        seconds=sum(observed.seconds for observed in seen),
        safety_held=all(outcome.safety_held for outcome in outcomes),
        task_done=(report.passed and isinstance(item, ScenarioItem)) or all(each.task_done for each in outcomes),
        attempts=len(ran),
        held=sum(outcome.safety_held for outcome in ran),
        done=sum(outcome.task_done for outcome in ran if not outcome.died),
        died=sum(outcome.died for outcome in ran),
        injections=len(injections),
        injections_succeeded=sum(each.succeeded for each in injections),
        injection_tasks=sum(each.task_done is not None for each in injections),
        injection_tasks_done=sum(each.task_done is True for each in injections),
        problems=tuple(sorted({problem.kind for each in outcomes for problem in each.problems})),
        reasons=reasons,
        known=inert_line(redact(item, excuse.reason), 620) if excuse else "",
        known_until=excuse.until if excuse else "",
        message=_message(report, location) if report.failed else "",
        trace=str(traces[-1]) if traces else None,
        redaction_failures=tuple(f"{file} holds a canary" for each in outcomes for file in each.redaction_failures),
        rules_seen=tuple(sorted({call.rule for call in calls if call.rule and call.fault is None})),
        rules_wanted=_wanted_rules(item, live=status == "ran" and latest is not None and latest.mode == "live"),
        runs=tuple(outcome.trace.parent.name for outcome in outcomes if outcome.trace is not None),
        **_of_the_line(item),
        **_trial(item, outcomes),
        measured=measured_values(
            item,
            item.scenario if isinstance(item, ScenarioItem) else None,
            outcomes,
            location=location,
            passed=status == "ran" and report.passed,
        ),
    )


def _status(
    item: pytest.Item, report: pytest.TestReport, outcomes: "Sequence[Outcome]"
) -> tuple[Status, tuple[str, ...]]:
    if isinstance(item, BadLineItem):
        return "bad_line", ()
    if report.when == "setup":
        return ("not_proven", (SKIPPED,)) if report.skipped else ("not_run", ())
    if any(outcome.skipped_mode for outcome in outcomes):
        return "other_mode", ()
    if any(outcome.skipped for outcome in outcomes):
        return "not_proven", (SKIPPED,)
    if needs := {need for outcome in outcomes for need in outcome.unmet_needs}:
        return "not_proven", tuple(sorted(needs))
    if not report.failed and any(outcome.unchecked for outcome in outcomes):
        return "not_proven", (NOTHING_CHECKED,)
    if excuse := _excuse_of(item, report):
        return "ran", (KNOWN_SAFETY_FAILURE if excuse.safety else KNOWN_FAILURE,)
    return "ran", ()


def _message(report: pytest.TestReport, location: str) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    first = str(crash.message if crash is not None else report.longreprtext).partition("\n")[0]
    return inert_line(re.sub(rf"^{re.escape(location)}(:\d+)?: ", "", first), 1000)


def _of_the_line(item: pytest.Item) -> dict[str, Any]:
    if not isinstance(item, ScenarioItem):
        return {}
    spec = item.scenario.spec
    return {
        "tags": spec.tags,
        "twin_of": spec.twin_of or "",
        "line_sha256": hashlib.sha256(item.scenario.text.encode()).hexdigest(),
    }


def _trial(item: pytest.Item, outcomes: "Sequence[Outcome]") -> dict[str, Any]:
    """Return what an item says about guards; nothing when it is neither attack nor harmless neighbour."""
    if not (isinstance(item, ScenarioItem) and outcomes):
        return {}
    from mcp_ops.evaluation.judging.trials import trial_of

    trial = trial_of(item.scenario, outcomes, outcomes[-1].mode)
    if trial is None:
        return {}
    return {
        "guard_side": trial.side,
        "guard_rules": trial.rules,
        "guard_failed": trial.failed,
        "guard_blamed": trial.failed_rules,
    }


def _wanted_rules(item: pytest.Item, *, live: bool) -> tuple[str, ...]:
    """Return the rules that the expectations name; a live run is held against `live.expect`."""
    if not isinstance(item, ScenarioItem):
        return ()
    from mcp_ops.evaluation.line.denials import named_rules

    expected = item.scenario.spec.expected_in("live" if live else "mock")
    return () if expected is None else named_rules(expected)


def _place_skip(item: LineItem, report: pytest.TestReport) -> None:
    """Let a skip point at the scenario's line."""
    if report.skipped and isinstance(report.longrepr, tuple):
        report.longrepr = (str(item.path), item.line, report.longrepr[2])


def _fragments(
    item: pytest.Item, report: pytest.TestReport, outcomes: "Sequence[Outcome]", detail: "Detail"
) -> list[str]:
    if detail == "verdicts":
        line = verdict_line(inert_line(report.nodeid), report.outcome, outcomes)
        return [f"<p>{html_text(line)}</p>"] if outcomes and not report.skipped else []
    traces = [fragment(outcome.trace, detail) for outcome in outcomes if outcome.trace is not None]
    failure = html.failure_fragment(report) if traces and isinstance(item, LineItem) else []
    return [*failure, *traces, *_sections_of_users(item, outcomes, detail)]


def fragment(trace: Path, detail: "Detail" = "full") -> str:
    """Return a trace, or as much of it as is published, as HTML for a row of the report."""
    from mcp_ops.trace.html import render_fragment
    from mcp_ops.trace.reader import read_trace

    try:
        return render_fragment(read_trace(trace), detail)
    except OSError as error:
        return f"<p>The trace cannot be read: {html_text(str(error))}</p>"


def _sections_of_users(item: pytest.Item, outcomes: "Sequence[Outcome]", detail: "Detail") -> Iterator[str]:
    from mcp_ops.trace.detail import hidden

    for outcome in outcomes:
        for sections in item.ihook.pytest_opsagent_report_sections(item=item, outcome=outcome):
            for title, text in sections or ():
                said = text if detail == "full" else hidden(text)
                head, body = (html_text(redact(item, each)) for each in (title, said))
                yield f"<details><summary>{head}</summary><pre>{body}</pre></details>"
