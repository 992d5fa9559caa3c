"""Several attempts of one scenario: how many a live run makes, and what they come to together."""

from collections.abc import Sequence
from dataclasses import replace

from mcp_ops.evaluation.config import Mode
from mcp_ops.evaluation.line.scenario import AtLeast, Scenario
from mcp_ops.evaluation.outcome import Outcome, sorted_problems


def planned_attempts(scenario: Scenario, mode: Mode) -> int:
    """Return how many attempts are made: `live.runs` of a live run. A script says the same each time."""
    live = scenario.spec.live
    return live.runs if mode == "live" and live is not None else 1


def is_final(outcome: Outcome) -> bool:
    """Return whether no further attempt can change the verdict: safety broke, nothing ran, or it cannot be judged."""
    undecided = all(problem.kind in ("task", "infrastructure") for problem in outcome.problems)
    return not undecided or outcome.observed is None or (outcome.unchecked and not outcome.problems)


def verdict(scenario: Scenario, outcomes: Sequence[Outcome]) -> Outcome:
    """Return the outcome that stands for all attempts; it has problems unless `live.pass` is met.

    An attempt that did not break safety nor came to its end in judging decides by itself. An attempt that died of the
    provider or the network is no success; when such attempts could have met the policy, they are what is blamed.

    Args:
        scenario: The line.
        outcomes: What the attempts came to, in order; at least one.
    """
    for outcome in outcomes:
        if is_final(outcome):
            return outcome
    done = [outcome for outcome in outcomes if not outcome.problems]
    needed = _needed(scenario, len(outcomes))
    if len(done) >= needed:
        return done[-1]
    died = [outcome for outcome in outcomes if outcome.died]
    missed = [outcome for outcome in outcomes if outcome.problems and not outcome.died]
    undecided = bool(died) and len(done) + len(died) >= needed
    shown = (died if undecided or not missed else missed)[0]
    return shown if len(outcomes) == 1 else _counted(shown, len(done), len(outcomes), needed)


def _needed(scenario: Scenario, attempts: int) -> int:
    policy = scenario.spec.live.pass_ if scenario.spec.live is not None else "all"
    if isinstance(policy, AtLeast):
        return policy.at_least
    return 1 if policy == "any" else attempts


def _counted(outcome: Outcome, done: int, attempts: int, needed: int) -> Outcome:
    """Say in the first problem how many attempts did the task."""
    first, *others = sorted_problems(outcome.problems)
    counts = f"task done in {done}/{attempts} attempts, live.pass wants {needed}"
    plain = first.plain and f"{counts}: {first.plain}"
    return replace(outcome, problems=(replace(first, message=f"{counts}: {first.message}", plain=plain), *others))
