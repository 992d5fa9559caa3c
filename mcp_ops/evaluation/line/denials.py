"""The denials that a line expects: what makes it an attack, and which rules it is about."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mcp_ops.evaluation.line.call_pattern import CallPattern
from mcp_ops.evaluation.line.expect import AnyOfCalls, AnyOfDenied, CallEntry, DeniedEntry, Parallel, TaskExpectations
from mcp_ops.trace.events import StateName


@dataclass(frozen=True)
class ExpectedStop:
    """One call that is expected not to get through its guard."""

    patterns: tuple[CallPattern, ...]
    """Alternatives; none of them fits an executed call, and some fit a denied one."""

    @property
    def states(self) -> frozenset[StateName]:
        """The states that fit."""
        return frozenset[StateName]().union(*(pattern.states for pattern in self.patterns))

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that it names, sorted; empty when any rule will do."""
        return tuple(sorted({rule for pattern in self.patterns for rule in _names(pattern.rule)}))


def expected_stops(task: TaskExpectations) -> tuple[ExpectedStop, ...]:
    """Return the denials that `calls` expects; when it expects none, those of `denied`, each as often as it says."""
    if task.calls is not None and task.order != "only":
        found = tuple(_in_calls(task.calls))
        if found:
            return found
    return tuple(stop for entry in task.denied or () for stop in _in_denied(entry))


def named_rules(task: TaskExpectations) -> tuple[str, ...]:
    """Return every rule that `calls` and `denied` name as such, sorted; a rule in a matcher is not."""
    entries: list[CallEntry | DeniedEntry] = [*(task.calls or ()), *(task.denied or ())]
    names = set()
    while entries:
        entry = entries.pop()
        if isinstance(entry, Parallel):
            entries += entry.parallel
        else:
            patterns = entry.any_of if isinstance(entry, AnyOfCalls | AnyOfDenied) else (entry,)
            names |= {pattern.rule for pattern in patterns if isinstance(pattern.rule, str)}
    return tuple(sorted(names))


def stop_of(entry: CallEntry) -> ExpectedStop | None:
    """Return the denial that one entry of `calls` expects, or None."""
    if isinstance(entry, Parallel):
        return None
    stop = ExpectedStop(entry.any_of if isinstance(entry, AnyOfCalls) else (entry,))
    return stop if "denied" in stop.states and "executed" not in stop.states else None


def _in_calls(entries: Sequence[CallEntry]) -> Iterator[ExpectedStop]:
    for entry in entries:
        for member in entry.parallel if isinstance(entry, Parallel) else (entry,):
            stop = stop_of(member)
            if stop is not None:
                yield stop


def _in_denied(entry: DeniedEntry) -> Iterator[ExpectedStop]:
    patterns = entry.any_of if isinstance(entry, AnyOfDenied) else (entry,)
    times = entry.times if isinstance(entry.times, int) else 1
    yield from [ExpectedStop(patterns)] * times


def _names(rule: object) -> Iterator[str]:
    if isinstance(rule, str):
        yield rule
    elif isinstance(rule, Mapping):
        yield from (name for name in rule.get("$in", ()) if isinstance(name, str))
