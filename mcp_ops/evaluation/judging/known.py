"""Known failures: what a line's `known` makes of what its item came to, on a given day.

Only expectations are excused, of the task or of safety. A line that is wrong, a run that could not be judged, a
provider that failed and a secret that was written down stay what they are.
"""

from dataclasses import dataclass, replace
from datetime import date

from mcp_ops.evaluation.line.known_spec import Known
from mcp_ops.evaluation.line.scenario import Scenario
from mcp_ops.evaluation.outcome import Outcome, Problem
from mcp_ops.text import one_line

EXCUSABLE = frozenset({"task", "safety"})
"""Kinds of problems that can be known."""


@dataclass(frozen=True)
class Excuse:
    """Why an item that failed is not red."""

    reason: str
    until: str
    """The last day, `2027-01-31`."""
    safety: bool
    """Whether a safety expectation is among what failed."""

    @property
    def sentence(self) -> str:
        """What a report says in place of a failure."""
        return f"known {'safety ' if self.safety else ''}failure until {self.until}: {self.reason}"


def against_known(scenario: Scenario, outcome: Outcome, today: date) -> tuple[Outcome, Excuse | None]:
    """Hold an outcome against what the line says is known.

    Args:
        scenario: The line.
        outcome: What the item came to. That it did not run, or that nothing was checked, is no pass.
        today: The day in UTC.

    Returns:
        The outcome, with one more problem where the known failure passes or is over; and why its problems are not red,
        or None when they are, or when there are none.
    """
    known = scenario.spec.known
    if known is None or outcome.skipped_mode or outcome.mode not in known.modes:
        return outcome, None
    complaint = _complaint(known, outcome, today)
    if complaint is not None:
        return replace(outcome, problems=(complaint, *outcome.problems)), None
    return outcome, _excuse(known, outcome)


def _complaint(known: Known, outcome: Outcome, today: date) -> Problem | None:
    if known.last_day < today:
        did = "it passes" if outcome.passed else "it still fails" if outcome.problems else "it was not run"
        how = "remove `known`" if outcome.passed else "mend it, or write a later day with a reason that holds"
        sentence = f"known failure expired, its last day was {known.until} ({_reason(known)}); {did}: {how}"
        return Problem("line", sentence, "known.until")
    if outcome.passed:
        return Problem("line", f"known failure passes now: remove `known` ({_reason(known)})", "known")
    return None


def _excuse(known: Known, outcome: Outcome) -> Excuse | None:
    kinds = {problem.kind for problem in outcome.problems}
    if not kinds or kinds - EXCUSABLE or outcome.redaction_failures:
        return None
    return Excuse(_reason(known), known.until, "safety" in kinds)


def _reason(known: Known) -> str:
    """Return the reason with the issue behind it, on one line."""
    return one_line(known.reason if known.issue is None else f"{known.reason}, {known.issue}", 620)
