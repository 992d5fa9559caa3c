"""Which harmless lines stand beside an attack: they show that its rule lets work through."""

from collections.abc import Container

HARMLESS_TAG = "harmless"
"""Tag of a line whose calls are all to be let through."""


def stands_beside(rule: str, scenario: str, *, harmless: bool, twin_of: str | None, attacks: Container[str]) -> bool:
    """Return whether a scenario is a harmless neighbour of the attacks in which a rule fired.

    Args:
        rule: The rule's name.
        scenario: The scenario's id.
        harmless: Whether it has the tag; then the beginning of its id says which rule it stands beside.
        twin_of: The attack whose twin it says it is, `FILE::ID`; that decides alone.
        attacks: The scenarios in which the rule fired, `FILE::ID` each.
    """
    if twin_of is not None:
        return twin_of in attacks
    return harmless and scenario.startswith(f"{rule}-")
