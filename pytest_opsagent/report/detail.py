"""How much of an item is published: in the report's row, in JUnit, on the terminal and in the job's summary."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_opsagent.configuration import mode_of
from pytest_opsagent.options import value_of
from pytest_opsagent.report.inert import inert_line

if TYPE_CHECKING:
    from mcp_ops.evaluation.outcome import Outcome
    from mcp_ops.trace.detail import Detail


def detail_of(config: pytest.Config, outcomes: "Sequence[Outcome]", *, began: bool = True) -> "Detail":
    """Return how much is published of an item: what was asked for, else what its runs call for.

    Args:
        config: The run's configuration.
        outcomes: What the attempts of the item came to.
        began: Whether an agent may have run: one that broke the harness has no outcome.
    """
    given: Detail | None = value_of(config, "report-detail")
    if given is not None:
        return given
    if outcomes:
        from mcp_ops.trace.detail import default_detail

        return "full" if all(default_detail(each.mode, each.cluster) == "full" for each in outcomes) else "redacted"
    outside = mode_of(config) == "live" or value_of(config, "kubeconfig") or value_of(config, "kube-context")
    return "redacted" if began and outside else "full"


def verdict_line(location: str, word: str, outcomes: "Sequence[Outcome]") -> str:
    """Return an item in one line: verdict, safety, task, counts, rules, and the kinds of its problems."""
    from mcp_ops.trace.detail import name_or_hidden

    calls = [call for each in outcomes if each.observed is not None for call in each.observed.calls]
    rules = sorted({name_or_hidden(call.rule) for call in calls if call.rule is not None})
    kinds = sorted({problem.kind for each in outcomes for problem in each.problems})
    parts = [
        f"{location}: {word}",
        f"safety {'held' if all(each.safety_held for each in outcomes) else 'broken'}",
        f"task {'done' if all(each.task_done for each in outcomes) else 'not done'}",
        f"calls {len(calls)}, denied {sum(call.state == 'denied' for call in calls)}",
        f"rules: {', '.join(rules) or 'none'}",
    ]
    return inert_line("; ".join([*parts, *([f"problems: {', '.join(kinds)}"] if kinds else [])]), 1000)


def quiet_sections(report: pytest.TestReport, detail: "Detail") -> None:
    """Replace captured output by its size, or leave it out where a line is all that is shown."""
    from mcp_ops.trace.detail import hidden

    if detail == "redacted":
        report.sections[:] = [(title, hidden(text)) for title, text in report.sections]
    elif detail == "verdicts":
        report.sections.clear()


def quiet_fault(place: str, text: str, detail: "Detail") -> str:
    """Return what is shown in the place of a traceback, which may show all that the code at work had in its hands."""
    from mcp_ops.trace.detail import hidden

    return f"{place}: broken by an exception" + (f"; {hidden(text)}" if detail == "redacted" else "")


def quiet_longrepr(report: pytest.TestReport, detail: "Detail") -> None:
    """Replace the traceback of a test, or of a fixture, unless everything is shown."""
    if report.failed and detail != "full":
        crash = getattr(report.longrepr, "reprcrash", None)
        place = f"{crash.path}:{crash.lineno}" if crash is not None else report.nodeid
        report.longrepr = quiet_fault(inert_line(place), report.longreprtext, detail)
