"""Mutation of guards: would any scenario notice if a rule were gone?

A run in which a rule refused nothing is the same without that rule. So an item that passed is run again only for the
rules that refused a call in it, each time with just that rule off, and only until one item misses the rule. A rule that
no item misses has survived.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mcp_ops.evaluation.line.scenario import Scenario
from mcp_ops.evaluation.measuring.measured import Fate, Measured, Mutant, fired_in, rules_in_use
from mcp_ops.evaluation.outcome import Outcome
from mcp_ops.evaluation.run import Harness
from mcp_ops.evaluation.session.servers import own_rules
from mcp_ops.gate import GUARD_ERROR, Rule, can_be_switched_off
from mcp_ops.servers.rules import OWN_RULES
from mcp_ops.text import one_line

ABOUT_THE_END = ("expect.finish", "expect.answer")
"""Expectations that no run meets which broke before its end, whatever the reason."""
SHOWN = 3
"""How many scenarios a sentence names."""


def switchable(rules: Mapping[str, Rule]) -> list[str]:
    """Return the names of those rules that can be switched off."""
    return [name for name, rule in rules.items() if can_be_switched_off(rule)]


def known_rules() -> list[str]:
    """Return the rules of all servers that ship here which can be switched off."""
    return switchable(own_rules(OWN_RULES))


async def mutants(harness: Harness, scenario: Scenario, outcome: Outcome, *, done: Container[str] = ()) -> list[Mutant]:
    """Run a scenario again, once for each rule that refused a call in it, with that rule off.

    Args:
        harness: What ran it. It must be in mock mode, with servers in this process.
        scenario: The line.
        outcome: What it came to with every rule on: it passed.
        done: Rules that need no further run: another item misses them already.

    Raises:
        ValueError: The harness is in live mode, or its servers are not in this process.
    """
    can_be_off = [rule for rule in switchable(own_rules(scenario.spec.servers)) if rule not in done]
    found = []
    for rule in (name for name, _ in fired_in([outcome]) if name in can_be_off):
        without = await harness.run(scenario, rules_off=frozenset({rule}))
        found.append(_judged(rule, without))
    return found


def _judged(rule: str, without: Outcome) -> Mutant:
    """Only an expectation that does not hold is a kill; one about the end of a run that broke does not count."""
    stumbled = [call for call in without.observed.calls if call.rule == GUARD_ERROR.name] if without.observed else []
    if stumbled:
        return Mutant(rule, "unjudged", f"the guard of {one_line(stumbled[0].tool, 60)} failed without it")
    missed = [problem for problem in without.problems if problem.kind in ("safety", "task")]
    broken = [problem for problem in without.problems if problem not in missed]
    if broken:
        missed = [problem for problem in missed if not (problem.path or "").startswith(ABOUT_THE_END)]
    if missed or not broken:
        return Mutant(rule, "killed" if missed else "survived")
    why = broken[0] if without.cluster == "none" else broken[0].quiet()
    return Mutant(rule, "unjudged", one_line(why.message, 200))


@dataclass(frozen=True)
class Survivor:
    """A rule that no scenario misses."""

    rule: str
    why: str
    """`never fired`, or in how many scenarios it fired and what came of it."""
    fired: bool
    known: str | None = None
    """The reason for which it is listed as known, if it is."""


@dataclass(frozen=True)
class Mutation:
    """What a session came to."""

    rules: int
    """How many rules could be switched off."""
    killed: int
    survivors: tuple[Survivor, ...]
    """Those that fail the run: neither known, nor beyond what was selected."""
    known: tuple[Survivor, ...]
    unselected: tuple[str, ...]
    """Rules that did not fire in a selection of the suite, which says nothing about them."""
    stale: tuple[tuple[str, str], ...]
    """Rules that are listed as known survivors and are killed after all, each with an item that does."""

    @property
    def passed(self) -> bool:
        """Whether every rule is missed by some scenario or known, and the list of known ones is true."""
        return not (self.survivors or self.stale)


def mutation(items: Sequence[Measured], known: Mapping[str, str], *, selection: bool) -> Mutation:
    """Say which rules survived a session.

    Args:
        items: The last run of each item.
        known: Rules that may survive, with the reasons.
        selection: Whether only a part of the suite ran. Then a rule that never fired does not fail the session.
    """
    names = switchable(rules_in_use(items))
    killers = {mutant.rule: item.name for item in items for mutant in item.mutants if mutant.fate == "killed"}
    alive = [_survivor(name, items, known.get(name)) for name in names if name not in killers]
    new = [each for each in alive if each.known is None]
    return Mutation(
        rules=len(names),
        killed=len(killers),
        survivors=tuple(each for each in new if each.fired or not selection),
        known=tuple(each for each in alive if each.known is not None),
        unselected=tuple(each.rule for each in new if selection and not each.fired),
        stale=tuple((rule, killers[rule]) for rule in known if rule in killers),
    )


def _survivor(rule: str, items: Sequence[Measured], known: str | None) -> Survivor:
    fates = [(item.name, mutant) for item in items for mutant in item.mutants if mutant.rule == rule]
    sentences = []
    if survived := _names(fates, "survived"):
        one = len(survived) == 1
        sentences.append(
            f"fired in {_listed(survived)}, which did not notice"
            if one
            else f"fired in {_listed(survived)}, none of which noticed"
        )
    for name, mutant in fates:
        if mutant.fate == "unjudged":
            sentences.append(f"{name} could not be judged: {mutant.why}")
    if failed := [item.name for item in items if not item.passed and rule in dict(item.fired)]:
        sentences.append(f"fired in {_listed(failed)}, which did not pass")
    return Survivor(rule, "; ".join(sentences) or "never fired", bool(sentences), known)


def _names(fates: Iterable[tuple[str, Mutant]], fate: Fate) -> list[str]:
    return [name for name, mutant in fates if mutant.fate == fate]


def _listed(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{len(names)} scenarios ({', '.join(names[:SHOWN])}{more})"
