"""What `known` in a line makes of an outcome, day by day."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from observations import line, observed

from mcp_ops.evaluation.judging.known import against_known
from mcp_ops.evaluation.line.known_spec import is_too_far, utc_today
from mcp_ops.evaluation.line.parse import from_dict, parse_line
from mcp_ops.evaluation.line.scenario import BadLine, Scenario
from mcp_ops.evaluation.outcome import Outcome, Problem, ProblemKind

pytestmark = pytest.mark.covers("H37")

LAST = date(2026, 12, 31)
TASK, SAFETY = Problem("task", "too slow"), Problem("safety", "wrote a file")
PASSED = Outcome("s", "scenarios.jsonl:1", (), observed=observed())
FAILED = replace(PASSED, problems=(TASK,))


def known(**keys: Any) -> Scenario:
    return from_dict(line(known={"reason": "slow", "until": LAST.isoformat()} | keys))


@pytest.mark.parametrize(("problems", "safety"), [((TASK,), False), ((TASK, SAFETY), True), ((SAFETY,), True)])
def test_a_failed_expectation_is_excused_to_the_end_of_the_last_day_and_safety_is_named(
    problems: tuple[Problem, ...], safety: bool
) -> None:
    outcome = replace(PASSED, problems=problems)
    for today in (LAST - timedelta(days=300), LAST):
        judged, excuse = against_known(known(), outcome, today)
        assert judged == outcome
        assert excuse is not None
        assert (excuse.reason, excuse.until, excuse.safety) == ("slow", "2026-12-31", safety)
        assert ("safety" in excuse.sentence) is safety


def test_the_day_after_the_last_nothing_is_excused_and_what_failed_is_still_said() -> None:
    judged, excuse = against_known(known(), FAILED, LAST + timedelta(days=1))
    assert excuse is None
    assert [problem.message for problem in judged.problems][1:] == ["too slow"]
    first = judged.first()
    assert first is not None
    assert "its last day was 2026-12-31" in first.message


@pytest.mark.parametrize("kind", ["line", "harness", "infrastructure"])
def test_what_is_no_expectation_is_never_excused_though_an_expectation_failed_too(kind: ProblemKind) -> None:
    outcome = replace(PASSED, problems=(Problem(kind, "x"), SAFETY))
    assert against_known(known(), outcome, LAST) == (outcome, None)


def test_a_secret_that_was_written_down_is_never_excused_and_is_no_pass() -> None:
    for outcome in (PASSED, FAILED):
        written = replace(outcome, redaction_failures=("trace.jsonl",))
        assert against_known(known(), written, LAST) == (written, None)


def test_a_pass_is_a_problem_of_the_line_and_of_nothing_else() -> None:
    judged, excuse = against_known(known(issue="OPS-1"), PASSED, LAST)
    assert excuse is None
    assert [(each.kind, each.message) for each in judged.problems] == [
        ("line", "known failure passes now: remove `known` (slow, OPS-1)")
    ]
    assert judged.safety_held


@pytest.mark.parametrize("keys", [{"unmet_needs": ("cluster",)}, {"skipped": "later"}, {"unchecked": True}])
def test_what_did_not_run_or_was_not_checked_neither_passes_nor_fails(keys: dict[str, Any]) -> None:
    outcome = replace(PASSED, **keys)
    assert against_known(known(), outcome, LAST) == (outcome, None)
    judged, _ = against_known(known(), outcome, LAST + timedelta(days=1))
    assert "it was not run" in judged.problems[0].message


def test_a_mode_that_known_does_not_name_is_judged_as_if_it_were_not_there() -> None:
    live = known(modes=["live"])
    for outcome in (PASSED, FAILED):
        assert against_known(live, outcome, LAST + timedelta(days=1)) == (outcome, None)
    assert against_known(live, replace(FAILED, mode="live"), LAST)[1] is not None


def test_a_line_that_is_not_for_this_mode_is_left_alone_even_when_its_day_is_over() -> None:
    outcome = replace(PASSED, skipped_mode=True)
    assert against_known(known(), outcome, LAST + timedelta(days=1)) == (outcome, None)


def test_a_day_lies_at_most_a_year_ahead() -> None:
    today = date(2026, 11, 30)
    assert not is_too_far(date(2027, 11, 30), today)
    assert not is_too_far(date(2028, 2, 29), date(2027, 2, 28))
    assert is_too_far(date(2027, 12, 2), today)
    within, beyond = (utc_today() + timedelta(days=days) for days in (365, 368))
    assert isinstance(parsed(within), Scenario)
    bad = parsed(beyond)
    assert isinstance(bad, BadLine)
    assert "is more than a year ahead" in bad.message


def parsed(until: date) -> Scenario | BadLine:
    text = from_dict(line()).text.replace("{", f'{{"known": {{"reason": "r", "until": "{until}"}}, ', 1)
    return parse_line(text, None, 1)
