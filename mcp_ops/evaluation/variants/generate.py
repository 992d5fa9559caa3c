"""From a line to its variants: each a scenario of its own, in which one denied call is spelled another way.

What a variant expects: the call is denied, by whatever rule, and so is what the line says of all its other calls, of
effects, leaks and forbidden calls. `failed` will do only for spellings that another kind of server would take for the
target: a name that is not there was not read. `unavailable` will not do: the guard let the call through. The answer is
checked only where it holds nothing of the reply to the call.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from mcp_ops.evaluation.line.expect import Expect, ExpectedCall
from mcp_ops.evaluation.line.scenario import Scenario, ScenarioLine
from mcp_ops.evaluation.line.variants_spec import FAMILY_NAMES, FamilyName
from mcp_ops.evaluation.variants.attack import Attack, Changed
from mcp_ops.evaluation.variants.families import FAMILIES
from mcp_ops.evaluation.variants.script import Place, Target, answer_speaks_of, calls_of, targets_of, with_call
from mcp_ops.evaluation.wording import Path, shown

TAG = "variant"
"""Tag of every variant, besides those of its line."""

_NO_TARGET = (
    "finds no call to vary: it must be known which call is denied, so list every call in order in expect.calls,"
    ' the denied ones with "state": "denied"'
)


def variants_of(scenario: Scenario) -> list[Scenario]:
    """Return the variants that a line asks for, family by family; none when it asks for none."""
    return [variant for name in _wanted(scenario.spec) for variant in _of_family(scenario, name)]


def variants_fault(spec: ScenarioLine) -> tuple[Path, str] | None:
    """Return where `variants` is wrong, and the sentence: it asks for what the line cannot have. None if it is fine."""
    if spec.variants is None:
        return None
    if not targets_of(spec):
        return ("variants",), _NO_TARGET
    if isinstance(spec.variants, tuple):
        for index, name in enumerate(spec.variants):
            if not _fits(spec, name):
                return ("variants", index), f"{shown(name)} does not fit the denied calls of this line; leave it out"
    elif not any(_fits(spec, name) for name in FAMILY_NAMES):
        return ("variants",), "finds no family that fits the denied calls of this line; leave it out"
    return None


def _fits(spec: ScenarioLine, name: FamilyName) -> bool:
    return any(True for _ in _changes(spec, name))


def _wanted(spec: ScenarioLine) -> tuple[FamilyName, ...]:
    if isinstance(spec.variants, tuple):
        return tuple(name for name in FAMILY_NAMES if name in spec.variants)
    return FAMILY_NAMES if spec.variants else ()


def _of_family(scenario: Scenario, name: FamilyName) -> Iterator[Scenario]:
    for number, (target, changed) in enumerate(_changes(scenario.spec, name), 1):
        suffix = name if number == 1 else f"{name}-{number}"
        spec = _varied(scenario.spec, target, changed, f"{scenario.spec.id}[{suffix}]")
        yield replace(scenario, spec=spec, rules=target.stop.rules, links=changed.links)


def _changes(spec: ScenarioLine, name: FamilyName) -> Iterator[tuple[Target, Changed]]:
    """Yield what a family makes of the denied calls of a line, without calls that the line makes anyway."""
    made = {_key(place.call.tool, place.call.args) for place in calls_of(spec.mock or ())}
    for target in targets_of(spec):
        call = target.place.call
        for changed in FAMILIES[name](Attack(call.args, target.stop.rules)):
            key = _key(call.tool, changed.args)
            if key not in made:
                made.add(key)
                yield target, changed


def _key(tool: str, args: Mapping[str, Any]) -> str:
    return json.dumps([tool, args], sort_keys=True)


def _varied(spec: ScenarioLine, target: Target, changed: Changed, name: str) -> ScenarioLine:
    script = spec.mock or ()
    world = spec.world.model_copy(update={"plant": {**spec.world.plant, **changed.plant}})
    return spec.model_copy(
        update={
            "id": name,
            "tags": tuple(dict.fromkeys((*spec.tags, TAG))),
            "modes": ("mock",),
            "world": world,
            "mock": with_call(script, target.place, changed.args),
            "expect": _expected(spec, target.place, changed),
            "live": None,
            "known": None,
            "variants": None,
        }
    )


def _expected(spec: ScenarioLine, place: Place, changed: Changed) -> Expect:
    """Return what a variant expects. `calls` takes the place of `denied`: it lists every call already."""
    expected = spec.expect
    entries = list(expected.calls if expected.calls is not None else [None])
    entries[place.number] = ExpectedCall(tool=place.call.tool, state=changed.states)
    dropped = {"denied"}
    if answer_speaks_of(spec.mock or (), place):
        dropped.add("answer")
    kept = {name: getattr(expected, name) for name in expected.model_fields_set - dropped}
    return Expect.model_construct(**(kept | {"calls": tuple(entries)}))
