"""How the first divergence of expected and actual calls is told: one sentence, one path, one aligned table."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from mcp_ops.evaluation.line.expect import Order
from mcp_ops.evaluation.matching.describe import show_alternatives, show_call, show_calls, show_tool
from mcp_ops.evaluation.matching.fitting import CallMismatch, call_mismatch
from mcp_ops.evaluation.matching.matchers import MISSING
from mcp_ops.evaluation.matching.ordering import Comparison, Divergence, Slot
from mcp_ops.evaluation.observed import CallRecord
from mcp_ops.evaluation.wording import Path, show_path, shown

MAX_ROWS = 40
"""Most rows of the table."""
MAX_CELL = 76
"""Most characters of a cell of the table."""


class Told(NamedTuple):
    """A divergence in words."""

    message: str
    path: Path
    """From the list of expected calls."""
    table: tuple[str, ...]
    plain: str
    """The message without values."""


class _Near(NamedTuple):
    """A call of the right kind whose arguments or result are wrong."""

    slot: Slot
    alternative: int
    call: int
    why: CallMismatch


def tell(compared: Comparison, order: Order, divergence: Divergence) -> Told:
    """Put a divergence into words."""
    if divergence.entry is None:
        message, path, plain = _unexpected(compared, order, divergence)
    else:
        message, path, plain = _missing(compared, order, divergence, divergence.entry)
    return Told(message, path, _table(compared, order, divergence), plain)


def _missing(compared: Comparison, order: Order, divergence: Divergence, entry: int) -> tuple[str, Path, str]:
    unfilled = [compared.slots[slot] for slot in divergence.unfilled]
    near = _nearest(compared, unfilled, divergence.candidates)
    if near is not None:
        return _near_message(near, order), _near_path(near), _near_plain(near)
    slots = [compared.slots[slot] for slot in compared.entries[entry]]
    wanted = " + ".join(show_alternatives(slot.alternatives) for slot in slots)
    got = [compared.calls[call] for call in divergence.candidates]
    path: Path = (entry,) if len(slots) > 1 else (entry, *_part_that_differs(compared, slots[0], divergence.candidates))
    if divergence.apart:
        turns = ", ".join(str(call.turn + 1) for call in got)
        message = f"expected call {entry + 1} {wanted} in one turn, got them in turns {turns}"
        return message, path, message
    if len(slots) > 1:
        wanted += " in one turn"
        filled = [call for call, slot in divergence.slot_of.items() if slot in compared.entries[entry]]
        got = [compared.calls[call] for call in sorted({*divergence.candidates, *filled})]
    message = f"expected call {entry + 1} {wanted}, got {_got(got, order, compared)}"
    return message, path, message


def _got(calls: Sequence[CallRecord], order: Order, compared: Comparison) -> str:
    if calls:
        return show_calls(calls)
    if not compared.calls:
        return "no call"
    return "no other call" if order == "any_order" else "no further call"


def _unexpected(compared: Comparison, order: Order, divergence: Divergence) -> tuple[str, Path, str]:
    number = divergence.candidates[0]
    near = _nearest(compared, compared.slots, divergence.candidates) if order == "only" else None
    if near is not None:
        return _near_message(near, order), _near_path(near), _near_plain(near)
    wanted = "no call" if not compared.slots else "no other call" if order == "only" else "no further call"
    message = f"expected {wanted}, got call {number + 1} {show_call(compared.calls[number])}"
    return message, (), message


def _nearest(compared: Comparison, slots: Sequence[Slot], calls: Sequence[int]) -> _Near | None:
    for slot in slots:
        for call in calls:
            for number, alternative in enumerate(slot.alternatives):
                why = call_mismatch(alternative, compared.calls[call], compared.work)
                if why is not None and not why.in_head:
                    return _Near(slot, number, call, why)
    return None


def _near_message(near: _Near, order: Order) -> str:
    pattern = near.slot.alternatives[near.alternative]
    actual = near.why.mismatch.actual
    got = "nothing" if actual is MISSING else shown(actual)
    where = "" if order == "exact" else f" in call {near.call + 1}"
    wanted = f"{show_path(near.why.mismatch.path)} {shown(near.why.mismatch.expected)}"
    return f"expected call {near.slot.entry + 1} {show_tool(pattern)} {wanted}, got {got}{where}"


def _near_plain(near: _Near) -> str:
    tool = show_tool(near.slot.alternatives[near.alternative])
    part = near.why.mismatch.path[0] if near.why.mismatch.path else "call"
    return f"expected call {near.slot.entry + 1} {tool} with other {part}, got call {near.call + 1}"


def _near_path(near: _Near) -> Path:
    return (*near.slot.alternative_path(near.alternative), *near.why.mismatch.path)


def _part_that_differs(compared: Comparison, slot: Slot, candidates: Sequence[int]) -> Path:
    """Return the part of a plain entry by which the one call in its place is another kind of call."""
    if slot.any_of or len(candidates) != 1:
        return ()
    why = call_mismatch(slot.alternatives[0], compared.calls[candidates[0]], compared.work)
    return () if why is None else why.mismatch.path


def _table(compared: Comparison, order: Order, divergence: Divergence) -> tuple[str, ...]:
    """Lay expected and actual calls side by side; `>` marks where they part."""
    rows = _positional_rows(compared) if order == "exact" else _paired_rows(compared, divergence)
    marked = [_is_marked(divergence, slot, call) for slot, call in rows]
    first = max(0, marked.index(True) - MAX_ROWS // 2) if True in marked else 0
    shown_rows = rows[first : first + MAX_ROWS]
    cells = [_cells(compared, slot, call) for slot, call in shown_rows]
    width = max([len("expected"), *(len(left) for left, _ in cells)])
    lines = [f"  {'expected':<{width}}   got"]
    if first:
        lines.append(f"  … {first} before")
    for mark, (left, right) in zip(marked[first:], cells, strict=False):
        lines.append(f"{'>' if mark else ' '} {left:<{width}}   {right}")
    if first + MAX_ROWS < len(rows):
        lines.append(f"  … {len(rows) - first - MAX_ROWS} more")
    return tuple(lines)


def _is_marked(divergence: Divergence, slot: int | None, call: int | None) -> bool:
    if slot is None or divergence.apart:
        return call in divergence.candidates
    return slot in divergence.unfilled


def _positional_rows(compared: Comparison) -> list[tuple[int | None, int | None]]:
    return list(zip_longest(range(len(compared.slots)), range(len(compared.calls))))


def _paired_rows(compared: Comparison, divergence: Divergence) -> list[tuple[int | None, int | None]]:
    """Put each call in its row, with the slot it fills; slots without a call follow the filled slot before them."""
    call_of = {slot: call for call, slot in divergence.slot_of.items()}
    empty_after: dict[int, list[int]] = {}
    last = -1
    for slot in range(len(compared.slots)):
        if slot in call_of:
            last = call_of[slot]
        else:
            empty_after.setdefault(last, []).append(slot)
    rows: list[tuple[int | None, int | None]] = [(slot, None) for slot in empty_after.get(-1, ())]
    for call in range(len(compared.calls)):
        rows.append((divergence.slot_of.get(call), call))
        rows += [(slot, None) for slot in empty_after.get(call, ())]
    return rows


def _cells(compared: Comparison, slot: int | None, call: int | None) -> tuple[str, str]:
    left = right = "-"
    if slot is not None:
        wanted = compared.slots[slot]
        args = "" if wanted.any_of or wanted.alternatives[0].args is None else f" {shown(wanted.alternatives[0].args)}"
        left = f"{wanted.entry + 1} {show_alternatives(wanted.alternatives)}{args}"
    if call is not None:
        record = compared.calls[call]
        right = f"{call + 1} {show_call(record)} {shown(record.args)}"
    return _clip(left), _clip(right)


def _clip(cell: str) -> str:
    return cell if len(cell) <= MAX_CELL else cell[: MAX_CELL - 1] + "…"
