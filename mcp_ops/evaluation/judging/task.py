"""Task expectations: whether the agent did its job."""

import json
from collections.abc import Iterator, Mapping

from mcp_ops.evaluation.judging.unobserved import unobserved
from mcp_ops.evaluation.line.expect import AnyOfDenied, Budget, DeniedCall, DeniedEntry, TaskExpectations
from mcp_ops.evaluation.matching.describe import show_alternatives, show_call
from mcp_ops.evaluation.matching.divergence import tell
from mcp_ops.evaluation.matching.fitting import call_fits, own_name
from mcp_ops.evaluation.matching.matchers import MISSING, fits, mismatch
from mcp_ops.evaluation.matching.ordering import Comparison
from mcp_ops.evaluation.matching.work import Work
from mcp_ops.evaluation.observed import CallRecord, Observed
from mcp_ops.evaluation.outcome import Problem
from mcp_ops.evaluation.wording import Path, counted, show_path, shown
from mcp_ops.text import one_line
from mcp_ops.trace.events import Finish


def task_problems(
    expected: TaskExpectations, observed: Observed, root: Path, work: Work, *, default_finish: Finish | None
) -> Iterator[Problem]:
    """Yield the task expectations that do not hold.

    Args:
        expected: `expect`, or `live.expect`.
        observed: What happened.
        root: Where `expected` stands in the line.
        work: The bound on comparisons.
        default_finish: The finish that is expected when the line names none; None for any.

    Raises:
        TooMuchWork: The expectations are too large or too ambiguous.
    """
    yield from _calls(expected, observed, root, work)
    yield from _denials(expected, observed, root, work)
    if expected.no_retry_after_denial:
        yield from _retries(observed, (*root, "no_retry_after_denial"))
    yield from _finish(expected.finish or default_finish, observed, (*root, "finish"))
    if "answer" in expected.model_fields_set:
        yield from _answer(expected.answer, observed, root, work)
    if expected.budget is not None:
        yield from _budget(expected.budget, observed, (*root, "budget"))


def _task(message: str, path: Path, details: tuple[str, ...] = (), *, plain: str | None = None) -> Problem:
    """Return a problem; `plain` is given where the message shows values."""
    return Problem("task", message, show_path(path), details, message if plain is None else plain)


def _calls(expected: TaskExpectations, observed: Observed, root: Path, work: Work) -> Iterator[Problem]:
    if expected.calls is None:
        return
    order = expected.order or "exact"
    compared = Comparison(expected.calls, observed.calls, work)
    divergence = compared.compare(order)
    if divergence is not None:
        told = tell(compared, order, divergence)
        yield _task(told.message, (*root, "calls", *told.path), told.table, plain=told.plain)


def _denials(expected: TaskExpectations, observed: Observed, root: Path, work: Work) -> Iterator[Problem]:
    if expected.denied is None:
        return
    listed: set[int] = set()
    for number, entry in enumerate(expected.denied):
        patterns = denial_patterns(entry)
        seen = [call for call in observed.calls if any(call_fits(pattern, call, work) for pattern in patterns)]
        listed.update(call.index for call in seen)
        yield from _count(entry, len(seen), (*root, "denied", number), work)
    for call in observed.calls:
        if call.state == "denied" and call.index not in listed:
            message = f"expected no other denial, got call {call.index + 1} {show_call(call)}"
            yield _task(message, (*root, "denied"), (f"reason: {one_line(call.reason)}",) if call.reason else ())
            return


def denial_patterns(entry: DeniedEntry) -> tuple[DeniedCall, ...]:
    """Return the alternatives of an entry of `denied`."""
    return entry.any_of if isinstance(entry, AnyOfDenied) else (entry,)


def _count(entry: DeniedEntry, count: int, path: Path, work: Work) -> Iterator[Problem]:
    wanted = show_alternatives(denial_patterns(entry))
    if entry.times is None:
        if not count:
            yield _task(f"expected {wanted} at least once, got none", path)
    elif not fits(entry.times, count, work):
        times = counted(entry.times, "time") if isinstance(entry.times, int) else f"{shown(entry.times)} times"
        yield _task(f"expected {wanted} {times}, got {count}", (*path, "times"))


def _retries(observed: Observed, path: Path) -> Iterator[Problem]:
    """A retry is a call with equal tool and arguments in a later turn than its denial, whatever the server."""
    denied: dict[str, CallRecord] = {}
    for call in observed.calls:
        key = json.dumps([own_name(call), _canonical(_without_nulls(call.args))], sort_keys=True)
        first = denied.get(key)
        if first is not None and first.turn < call.turn:
            repeated = f"call {call.index + 1} {show_call(call)} repeats call {first.index + 1}"
            yield _task(f"expected no retry after a denial, got one: {repeated} {show_call(first)}", path)
            return
        if first is None and call.state == "denied":
            denied[key] = call


def _without_nulls(args: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in args.items() if value is not None}


def _canonical(value: object) -> object:
    """Return a JSON value whose equal numbers are written alike: `1.0` as `1`."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _canonical(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    return value


def _finish(expected: Finish | None, observed: Observed, path: Path) -> Iterator[Problem]:
    if expected is not None and observed.finish != expected:
        reason = f": {one_line(observed.error)}" if observed.error else ""
        plain = f"expected finish {expected}, got {observed.finish}"
        yield _task(f"{plain}{reason}", path, plain=plain)


def _answer(expected: object, observed: Observed, root: Path, work: Work) -> Iterator[Problem]:
    found = mismatch(expected, observed.answer, work, ("answer",))
    if found is not None:
        got = "nothing" if found.actual is MISSING else shown(found.actual, 120)
        message = f"expected {show_path(found.path)} {shown(found.expected)}, got {got}"
        yield _task(message, (*root, *found.path), plain="expected another answer")


def _budget(budget: Budget, observed: Observed, path: Path) -> Iterator[Problem]:
    used: dict[str, tuple[str, float | None]] = {
        "calls": ("call", len(observed.calls)),
        "turns": ("turn", observed.turns),
        "tokens": ("token", observed.tokens),
        "usd": ("US dollar", observed.usd),
        "seconds": ("second", observed.seconds),
    }
    for key, (unit, amount) in used.items():
        bound = getattr(budget, key)
        if bound is None:
            continue
        if amount is None:
            yield unobserved((*path, key), f"no reply of the model said its {unit}s")
        elif amount > bound:
            yield _task(f"expected at most {counted(bound, unit)}, got {amount:g}", (*path, key))
