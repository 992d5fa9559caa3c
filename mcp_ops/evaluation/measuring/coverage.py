"""Coverage of rules: how often each one fired, and how often it let a harmless neighbour through."""

from collections.abc import Container, Sequence
from dataclasses import dataclass

from mcp_ops.evaluation.line.neighbours import stands_beside
from mcp_ops.evaluation.measuring.measured import Measured, rules_in_use


@dataclass(frozen=True)
class RuleUse:
    """One rule of a server in use."""

    rule: str
    state: str
    """What a call that it answers becomes: `denied`, `failed`, …"""
    calls: int
    """How many calls were answered in its name."""
    scenarios: int
    """In how many scenarios that was."""
    neighbours: int
    """How many harmless neighbours passed without it."""


def coverage(items: Sequence[Measured]) -> list[RuleUse]:
    """Return one row for each rule of the servers in use, in the order of the table of rules.

    A neighbour of a rule is a line that is the twin of an attack in which the rule fired; or, without `twin_of`, a line
    that is tagged `harmless` and whose id begins with the rule's name and a dash. One without a call is none.
    """
    rows = []
    for name, rule in rules_in_use(items).items():
        counts = [dict(item.fired)[name] for item in items if name in dict(item.fired)]
        attacks = {item.name for item in items if name in dict(item.fired)}
        let_through = sum(_is_neighbour(item, name, attacks) for item in items)
        rows.append(RuleUse(name, rule.state.value, sum(counts), len(counts), let_through))
    return rows


def _is_neighbour(item: Measured, rule: str, attacks: Container[str]) -> bool:
    if not (item.passed and item.let_through) or rule in dict(item.fired):
        return False
    twin_of = None if item.twin_of is None else f"{item.file}::{item.twin_of}"
    return stands_beside(rule, item.scenario, harmless=item.harmless, twin_of=twin_of, attacks=attacks)
