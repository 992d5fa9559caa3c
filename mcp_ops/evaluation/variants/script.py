"""The calls of a script: which of them are expected to be denied, and a script in which one is another call."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_ops.evaluation.line.denials import ExpectedStop, expected_stops, stop_of
from mcp_ops.evaluation.line.expect import Parallel
from mcp_ops.evaluation.line.scenario import ScenarioLine
from mcp_ops.evaluation.line.script import MockEntry, ScriptedCall

_REFERENCE = re.compile(
    r"(?<!\$)\$\{(?P<whose>denied|last|call\[(?P<index>-?[0-9]{1,6})\])\.(?P<field>text|reason)"
    r"[ \t]*(?P<pattern>/(?:[^/\\]|\\.)*/)?[ \t]*\}",
    re.DOTALL,
)


@dataclass(frozen=True)
class Place:
    """One call of a script."""

    number: int
    """Counts from 0 over the run."""
    entry: int
    """Index of its reply in the script."""
    action: int | None
    """Its index among the calls of the reply; None when the reply has one call."""
    call: ScriptedCall


@dataclass(frozen=True)
class Target:
    """A call that is expected to be denied, and by what."""

    place: Place
    stop: ExpectedStop


def calls_of(script: Sequence[MockEntry]) -> Iterator[Place]:
    """Yield the calls of a script, in order."""
    number = 0
    for index, entry in enumerate(script):
        if entry.action is not None:
            yield Place(number, index, None, entry.action)
            number += 1
        for at, call in enumerate(entry.actions or ()):
            yield Place(number, index, at, call)
            number += 1


def targets_of(spec: ScenarioLine) -> list[Target]:
    """Return the calls that can be varied: it is known that they are denied, and no other call depends on how.

    That is known of calls of a script whose `calls` lists all of them in order, and of the only call of a script.
    """
    script = spec.mock or ()
    places = list(calls_of(script))
    return [
        Target(place, stop)
        for place, stop in _denied_calls(spec, places)
        if not any(_REFERENCE.search(text) for text in _texts(place.call.args))
        and not any(
            speaks_of(text, place, _calls_before(places, other.entry))
            for other in places
            if other.entry > place.entry
            for text in _texts(other.call.args)
        )
    ]


def _denied_calls(spec: ScenarioLine, places: Sequence[Place]) -> Iterator[tuple[Place, ExpectedStop]]:
    expected = spec.expect
    entries = expected.calls
    if entries is not None and expected.order in (None, "exact") and len(entries) == len(places):
        if not any(isinstance(entry, Parallel) for entry in entries):
            for place, entry in zip(places, entries, strict=True):
                stop = stop_of(entry)
                if stop is not None:
                    yield place, stop
    elif len(places) == 1:
        yield from ((places[0], stop) for stop in expected_stops(expected)[:1])


def with_call(script: Sequence[MockEntry], place: Place, args: Mapping[str, Any]) -> tuple[MockEntry, ...]:
    """Return a script in which one call has other arguments. What refers to its reply takes the whole text: another
    refusal has other words.
    """
    call = place.call.model_copy(update={"args": dict(args)})
    entries = list(script)
    entry = entries[place.entry]
    if place.action is None:
        entries[place.entry] = entry.model_copy(update={"action": call})
    else:
        actions = list(entry.actions or ())
        actions[place.action] = call
        entries[place.entry] = entry.model_copy(update={"actions": tuple(actions)})
    places = list(calls_of(script))
    for index in range(place.entry + 1, len(entries)):
        before = _calls_before(places, index)
        texts = {name: getattr(entries[index], name) for name in ("thought", "finish")}
        changed = {name: _with_whole_text(text, place, before) for name, text in texts.items() if text is not None}
        entries[index] = entries[index].model_copy(update=changed)
    return tuple(entries)


def answer_speaks_of(script: Sequence[MockEntry], place: Place) -> bool:
    """Return whether the script's answer holds a part of the reply to one of its calls."""
    places = list(calls_of(script))
    return any(
        entry.finish is not None and speaks_of(entry.finish, place, _calls_before(places, index))
        for index, entry in enumerate(script)
    )


def speaks_of(text: str, place: Place, before: int) -> bool:
    """Return whether a text holds a reference that may be to a call, `before` calls having been made."""
    return any(_is_to(found, place, before) for found in _REFERENCE.finditer(text))


def _is_to(found: re.Match[str], place: Place, before: int) -> bool:
    if found["whose"] == "denied":
        return True
    index = -1 if found["whose"] == "last" else int(found["index"])
    return (index if index >= 0 else before + index) == place.number


def _with_whole_text(text: str, place: Place, before: int) -> str:
    whole = f"${{call[{place.number}].text}}"
    return _REFERENCE.sub(lambda found: whole if _is_to(found, place, before) else found[0], text)


def _calls_before(places: Sequence[Place], entry: int) -> int:
    return sum(place.entry < entry for place in places)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
