"""Coverage and mutation of guard rules: what the user asked for, and what is done with each item for it.

Which rules are off is no setting: no flag, ini key, variable or line names one. This module asks the harness to run an
item again without each rule that fired in it, and the harness hands that on to the servers that it makes for this run.
"""

from collections.abc import Sequence
from dataclasses import asdict
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import pytest

from pytest_opsagent.options import value_of
from pytest_opsagent.state import STATE

if TYPE_CHECKING:
    from mcp_ops.evaluation.line.scenario import Scenario
    from mcp_ops.evaluation.measuring.measured import Mutant
    from mcp_ops.evaluation.outcome import Outcome

MUTANTS: "pytest.StashKey[list[Mutant]]" = pytest.StashKey()
"""What became of an item without the rules that fired in it. Only items that passed hold the key."""


def wants_coverage(config: pytest.Config) -> bool:
    """Return whether the run lists what each rule did."""
    return bool(value_of(config, "guard-coverage"))


def wants_mutation(config: pytest.Config) -> bool:
    """Return whether items run again without the rules that fired in them."""
    return bool(value_of(config, "mutate-guards"))


def check(config: pytest.Config) -> None:
    """Refuse settings that cannot be right.

    Raises:
        pytest.UsageError: Rules cannot be switched off in such a run, or the list of known survivors is wrong.
    """
    known = known_survivors(config)
    if not wants_mutation(config):
        return
    if value_of(config, "mode") == "live":
        raise pytest.UsageError(
            "--ops-mutate-guards needs --ops-mode=mock: a real model would be asked again for every rule, and may do "
            "something else each time"
        )
    if (value_of(config, "transport") or "memory") != "memory":
        raise pytest.UsageError(
            "--ops-mutate-guards needs --ops-transport=memory: rules are switched off only in servers that the harness "
            "itself makes in its own process"
        )
    from mcp_ops.evaluation.measuring.mutation import known_rules

    rules = known_rules()
    for rule in known:
        if rule not in rules:
            near = get_close_matches(rule, rules, n=1)
            guess = f"; did you mean {near[0]}?" if near else ""
            raise pytest.UsageError(f"ops_known_survivors: {rule!r} is no rule that can be switched off{guess}")


def known_survivors(config: pytest.Config) -> dict[str, str]:
    """Return the rules that may survive, with the reasons.

    Raises:
        pytest.UsageError: A line is not of the form `rule = reason`, or names a rule again.
    """
    known: dict[str, str] = {}
    for line in value_of(config, "known-survivors") or ():
        rule, _, reason = (part.strip() for part in line.partition("="))
        if not (rule and reason):
            raise pytest.UsageError(f"ops_known_survivors: {line!r}: write `rule = reason`")
        if rule in known:
            raise pytest.UsageError(f"ops_known_survivors: `{rule}` is named twice")
        known[rule] = reason
    return known


def measure(item: pytest.Item, scenario: "Scenario", outcome: "Outcome") -> None:
    """Run an item that passed again, once for each rule that refused a call in it, if the user asked for it.

    A rule that another item of this process misses needs no further run. Such a run writes no report, calls no hook of
    a user and counts nowhere else.
    """
    if not wants_mutation(item.config):
        return
    from mcp_ops.evaluation.measuring.mutation import mutants
    from pytest_opsagent.loop import run_on_own_loop

    state = item.config.stash[STATE]
    done = {rule for rule, nodeid in state.missed.items() if nodeid != item.nodeid}
    item.stash[MUTANTS] = found = run_on_own_loop(mutants(state.harness, scenario, outcome, done=done))
    state.missed.update((mutant.rule, item.nodeid) for mutant in found if mutant.fate == "killed")


def measured_values(
    item: pytest.Item,
    scenario: "Scenario | None",
    outcomes: "Sequence[Outcome]",
    *,
    location: str,
    passed: bool,
) -> dict[str, Any] | None:
    """Return what an item says about rules, in plain values; None when nobody asked.

    Args:
        item: The item.
        scenario: Its line; None for a test that ran some by the fixture.
        outcomes: What they came to.
        location: `scenarios/scenarios.jsonl:17`.
        passed: Whether it ran and passed.
    """
    if not (wants_coverage(item.config) or wants_mutation(item.config)):
        return None
    from mcp_ops.evaluation.line.neighbours import HARMLESS_TAG
    from mcp_ops.evaluation.measuring.measured import Measured, fired_in

    mutants = item.stash[MUTANTS] if passed and MUTANTS in item.stash else []
    calls = [call for outcome in outcomes if outcome.observed for call in outcome.observed.calls]
    measured = Measured(
        file=location.rpartition(":")[0],
        scenario=item.name if scenario is None else scenario.spec.id,
        passed=passed,
        servers=tuple(sorted({call.server for call in calls} - {""}) if scenario is None else scenario.spec.servers),
        fired=fired_in(outcomes),
        let_through=sum(call.state != "denied" for call in calls),
        harmless=scenario is not None and HARMLESS_TAG in scenario.spec.tags,
        twin_of=None if scenario is None else scenario.spec.twin_of,
        mutants=tuple(mutants),
    )
    return asdict(measured)


def note_deselected(items: Sequence[pytest.Item]) -> None:
    """Note that not all scenarios run: a rule that never fires then may fire in one of the others."""
    for item in items[:1]:
        item.config.stash[STATE].selection = True


def is_selection(config: pytest.Config) -> bool:
    """Return whether the command line itself names a part of what there is."""
    return any("::" in argument for argument in config.args) or bool(config.getoption("lf", False))
