"""What one item says about rules, in plain values."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from mcp_ops.evaluation.observed import CallRecord
from mcp_ops.evaluation.outcome import Outcome
from mcp_ops.evaluation.session.servers import own_rules
from mcp_ops.gate import Rule
from mcp_ops.servers.rules import OWN_RULES

Fate = Literal["killed", "survived", "unjudged"]
"""killed: without the rule the item fails. survived: it passes all the same. unjudged: the run itself went wrong."""


@dataclass(frozen=True)
class Mutant:
    """One item, run again without one rule."""

    rule: str
    fate: Fate
    why: str = ""
    """What went wrong, when it could not be judged."""


@dataclass(frozen=True)
class Measured:
    """What one run of one item says about rules."""

    file: str
    """Path of the scenario file."""
    scenario: str
    """Id of the line."""
    passed: bool
    """Whether it ran and passed."""
    servers: tuple[str, ...] = ()
    """The servers that it used."""
    fired: tuple[tuple[str, int], ...] = ()
    """Rules of our own servers, with the number of calls that were answered in their names."""
    let_through: int = 0
    """How many calls no guard refused."""
    harmless: bool = False
    """Whether it is tagged `harmless`."""
    twin_of: str | None = None
    """Id of the attack in the same file whose harmless twin it is."""
    mutants: tuple[Mutant, ...] = ()

    @property
    def name(self) -> str:
        """How people find it: `scenarios/shell.scenarios.jsonl::deny-rm`."""
        return f"{self.file}::{self.scenario}"


def fired_in(outcomes: Iterable[Outcome]) -> tuple[tuple[str, int], ...]:
    """Return the rules in whose names our own servers answered calls, and how many calls each."""
    calls: Iterable[CallRecord] = (call for each in outcomes if each.observed for call in each.observed.calls)
    counts = Counter(call.as_said.rule for call in calls if call.as_said.rule in own_rules([call.server]))
    return tuple(sorted((rule, count) for rule, count in counts.items() if rule is not None))


def rules_in_use(items: Sequence[Measured]) -> dict[str, Rule]:
    """Return every rule that one of our servers in use can answer with."""
    return own_rules(dict.fromkeys(server for item in items for server in item.servers))


def foreign_servers(items: Sequence[Measured]) -> list[str]:
    """Return the servers in use whose rules are not ours to know."""
    return sorted({server for item in items for server in item.servers} - OWN_RULES.keys())
