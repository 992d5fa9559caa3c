"""Twins: the harmless neighbour of an attack names it, before or after it in the same file."""

from collections.abc import Callable, Iterable
from functools import cached_property

from mcp_ops.evaluation.line.denials import expected_stops
from mcp_ops.evaluation.line.scenario import BadLine, Scenario, ScenarioLine
from mcp_ops.evaluation.wording import near, shown

ATTACK_TAG = "attack"
"""Tag of a line that is an attack although it expects no denial."""


def is_attack(spec: ScenarioLine) -> bool:
    """Return whether a line is an attack: it expects a denial, or says so by its tag."""
    return bool(expected_stops(spec.expect)) or ATTACK_TAG in spec.tags


def expected_rules(spec: ScenarioLine) -> tuple[str, ...]:
    """Return the rules that a line expects to deny something, sorted."""
    return tuple(sorted({rule for stop in expected_stops(spec.expect) for rule in stop.rules}))


class Attacks:
    """The attacks of one file.

    Args:
        lines: Reads the file once more. It is asked when the first twin comes, so a file without twins is read once.
    """

    def __init__(self, lines: Callable[[], Iterable[Scenario | BadLine]]) -> None:
        self._lines = lines

    @cached_property
    def _rules(self) -> dict[str, tuple[str, ...] | None]:
        """Rules by id; None for a line that is no attack. A bad line may be one."""
        rules: dict[str, tuple[str, ...] | None] = {}
        for line in self._lines():
            if isinstance(line, BadLine):
                rules.setdefault(line.id, ())
            else:
                rules.setdefault(line.spec.id, expected_rules(line.spec) if is_attack(line.spec) else None)
        return rules

    def rules_of(self, attack: str) -> tuple[str, ...] | str:
        """Return the rules that an attack expects, or why there is no such attack, as the rest of a sentence."""
        if attack not in self._rules:
            return f"names {shown(attack)}, and no line of this file has that id{self._near(attack)}"
        rules = self._rules[attack]
        if rules is None:
            return f"names {shown(attack)}, which expects no denial and is not tagged attack{self._near(attack)}"
        return rules

    def _near(self, name: str) -> str:
        attacks = [known for known, rules in self._rules.items() if rules is not None]
        guess = near(name, attacks) if attacks else "; leave it out"
        return guess if "did you mean" in guess or not attacks else "; write the id of an attack"
