"""How the calls of a run are compared with the expected ones, and where they part first.

Each expected call is one slot, or several for a parallel group. A slot is filled by one call; a group by calls of one
turn. What "first" means: the first expected call such that it and all before it cannot be filled together.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from mcp_ops.evaluation.line.expect import AnyOfCalls, CallEntry, ExpectedCall, Member, Order, Parallel
from mcp_ops.evaluation.matching.fitting import call_fits
from mcp_ops.evaluation.matching.pairing import Pairing, pair_all
from mcp_ops.evaluation.matching.work import TooMuchWork, Work
from mcp_ops.evaluation.observed import CallRecord
from mcp_ops.evaluation.wording import Path

MAX_GROUPS = 64
"""Most parallel groups that `any_order` places."""


@dataclass(frozen=True)
class Slot:
    """A place for exactly one call."""

    entry: int
    """Which expected call it belongs to, from 0."""
    alternatives: tuple[ExpectedCall, ...]
    path: Path
    """Its path from the list of expected calls."""
    any_of: bool
    """Whether the line writes alternatives."""

    def alternative_path(self, index: int) -> Path:
        """Return the path of one of the alternatives from the list of expected calls."""
        return (*self.path, "any_of", index) if self.any_of else self.path


@dataclass(frozen=True)
class Divergence:
    """The first place where expected and actual calls part."""

    entry: int | None
    """The expected call that could not be filled, or None when a call is there that should not be."""
    unfilled: tuple[int, ...] = ()
    """The slots of that entry for which no call was found."""
    candidates: tuple[int, ...] = ()
    """The calls that stand where the entry was looked for; for no entry, the one call that should not be there."""
    apart: bool = False
    """The calls of a parallel group are there, but not in one turn."""
    slot_of: Mapping[int, int] = field(default_factory=dict)
    """Call to the slot that it fills, as far as they agree."""


class Comparison:
    """Expected calls laid beside actual ones."""

    def __init__(self, entries: Sequence[CallEntry], calls: Sequence[CallRecord], work: Work) -> None:
        self.calls = calls
        self.work = work
        self.slots: list[Slot] = []
        self.entries: list[range] = []
        """For each entry its slots."""
        for index, entry in enumerate(entries):
            start = len(self.slots)
            self.slots += _slots(index, entry)
            self.entries.append(range(start, len(self.slots)))
        self._fits: dict[tuple[int, int], bool] = {}

    def compare(self, order: Order) -> Divergence | None:
        """Return where expected and actual calls part first, or None.

        Raises:
            TooMuchWork: The comparison costs more than one line may.
        """
        return _ORDERS[order](self)

    def fits(self, slot: int, call: int) -> bool:
        """Return whether a call can fill a slot."""
        self.work.spend()
        key = (slot, call)
        if key not in self._fits:
            alternatives = self.slots[slot].alternatives
            self._fits[key] = any(call_fits(choice, self.calls[call], self.work) for choice in alternatives)
        return self._fits[key]

    def edges(self, slots: Sequence[int], calls: Sequence[int]) -> dict[int, list[int]]:
        """Return which of the calls can fill each of the slots."""
        return {slot: [call for call in calls if self.fits(slot, call)] for slot in slots}


def _slots(index: int, entry: CallEntry) -> Iterator[Slot]:
    if isinstance(entry, Parallel):
        for number, member in enumerate(entry.parallel):
            yield _slot(index, member, (index, "parallel", number))
    else:
        yield _slot(index, entry, (index,))


def _slot(index: int, member: Member, path: Path) -> Slot:
    if isinstance(member, AnyOfCalls):
        return Slot(index, member.any_of, path, any_of=True)
    return Slot(index, (member,), path, any_of=False)


def _exact(compared: Comparison) -> Divergence | None:
    pairs: dict[int, int] = {}
    position = 0
    for entry, slots in enumerate(compared.entries):
        window = range(position, min(position + len(slots), len(compared.calls)))
        found = _largest(compared, slots, window)
        pairs |= found
        unfilled = tuple(slot for slot in slots if slot not in found)
        if unfilled:
            candidates = tuple(call for call in window if call not in found.values())
            return Divergence(entry, unfilled, candidates, slot_of=_turned(pairs))
        if len({compared.calls[call].turn for call in window}) > 1:
            return Divergence(entry, candidates=tuple(window), apart=True, slot_of=_turned(pairs))
        position += len(slots)
    if position < len(compared.calls):
        return Divergence(None, candidates=(position,), slot_of=_turned(pairs))
    return None


def _turned(pairs: Mapping[int, int]) -> dict[int, int]:
    return {call: slot for slot, call in pairs.items()}


def _in_order(compared: Comparison) -> Divergence | None:
    pairs: dict[int, int] = {}
    position = 0
    for entry, slots in enumerate(compared.entries):
        found = _earliest(compared, slots, position)
        if found is None:
            return _unfilled(compared, entry, range(position, len(compared.calls)), pairs)
        pairs |= found
        position = max(found.values()) + 1
    return None


def _earliest(compared: Comparison, slots: Sequence[int], start: int) -> dict[int, int] | None:
    """Fill the slots from calls of one turn so that the last of these calls comes as early as it can."""
    calls = range(start, len(compared.calls))
    for _, turn in groupby(calls, key=lambda call: compared.calls[call].turn):
        pairing = Pairing(compared.work)
        edges: dict[int, list[int]] = {}
        for call in turn:
            edges[call] = [slot for slot in slots if compared.fits(slot, call)]
            if pairing.add(call, edges) and len(pairing.left_of) == len(slots):
                return pairing.left_of
    return None


def _any_order(compared: Comparison) -> Divergence | None:
    everything = range(len(compared.entries))
    if _fill(compared, everything) is not None:
        return None
    fillable, beyond = 0, len(compared.entries)
    while beyond - fillable > 1:
        middle = (fillable + beyond) // 2
        if _fill(compared, range(middle)) is None:
            beyond = middle
        else:
            fillable = middle
    return _unfilled(compared, fillable, range(len(compared.calls)), _fill_beside(compared, fillable))


def _fill_beside(compared: Comparison, left_out: int) -> dict[int, int]:
    """Fill what can be filled beside an entry that cannot, so that a reader sees which calls are left for it."""
    chosen = list(range(left_out))
    pairs = _fill(compared, chosen) or {}
    for entry in range(left_out + 1, min(len(compared.entries), left_out + MAX_GROUPS)):
        more = _fill(compared, [*chosen, entry])
        if more is not None:
            chosen.append(entry)
            pairs = more
    return pairs


def _fill(compared: Comparison, chosen: Sequence[int]) -> dict[int, int] | None:
    """Fill the slots of some entries, each from a call of its own, or return None."""
    entries = [compared.entries[entry] for entry in chosen]
    slots = [slot for entry in entries for slot in entry]
    if len(slots) > len(compared.calls):
        return None
    edges = compared.edges(slots, range(len(compared.calls)))
    if not all(edges.values()):
        return None
    groups = [entry for entry in entries if len(entry) > 1]
    if len(groups) > MAX_GROUPS:
        raise TooMuchWork
    choices = [(group, _turns_for(compared, group, edges)) for group in groups]
    return _place(compared, edges, sorted(choices, key=lambda choice: len(choice[1])))


def _turns_for(
    compared: Comparison, group: Sequence[int], edges: Mapping[int, Sequence[int]]
) -> list[dict[int, list[int]]]:
    """Return, for each turn that can fill a group by itself, the edges of the group into that turn."""
    turns = {compared.calls[call].turn for call in edges[group[0]]}
    into = [
        {slot: [call for call in edges[slot] if compared.calls[call].turn == turn] for slot in group}
        for turn in sorted(turns)
    ]
    return [choice for choice in into if pair_all(choice, compared.work) is not None]


def _place(
    compared: Comparison,
    edges: Mapping[int, Sequence[int]],
    groups: Sequence[tuple[Sequence[int], Sequence[Mapping[int, Sequence[int]]]]],
) -> dict[int, int] | None:
    """Choose a turn for each group so that everything can be filled at once."""
    pairs = pair_all(edges, compared.work)
    if pairs is None or not groups:
        return pairs
    (_, turns), *others = groups
    for turn in turns:
        found = _place(compared, {**edges, **turn}, others)
        if found is not None:
            return found
    return None


def _only(compared: Comparison) -> Divergence | None:
    slot_of: dict[int, int] = {}
    by_turn: dict[int, list[int]] = {}
    for number, record in enumerate(compared.calls):
        by_turn.setdefault(record.turn, []).append(number)
    for number, record in enumerate(compared.calls):
        for slot in _places(compared, number, by_turn[record.turn]):
            slot_of[number] = slot
            break
    misfits = [number for number in range(len(compared.calls)) if number not in slot_of]
    return Divergence(None, candidates=(misfits[0],), slot_of=slot_of) if misfits else None


def _places(compared: Comparison, call: int, turn: Sequence[int]) -> Iterator[int]:
    """Yield the slots that a call fills; one of a group only if the rest of its turn can fill the rest of the group."""
    others = [other for other in turn if other != call]
    for slots in compared.entries:
        for slot in slots:
            if not compared.fits(slot, call):
                continue
            rest = [other for other in slots if other != slot]
            if pair_all(compared.edges(rest, others), compared.work) is not None:
                yield slot


def _unfilled(compared: Comparison, entry: int, calls: Sequence[int], pairs: Mapping[int, int]) -> Divergence:
    """Say which slots of an entry stay empty when the calls that are left are looked at, whatever their turn."""
    taken = set(pairs.values())
    left = [call for call in calls if call not in taken]
    slots = compared.entries[entry]
    found = _largest(compared, slots, left)
    unfilled = tuple(slot for slot in slots if slot not in found)
    if not unfilled and len(slots) > 1:
        return Divergence(entry, candidates=tuple(found.values()), apart=True, slot_of=_turned(pairs))
    rest = tuple(call for call in left if call not in found.values())
    return Divergence(entry, unfilled or tuple(slots), rest, slot_of=_turned({**pairs, **found}))


def _largest(compared: Comparison, slots: Sequence[int], calls: Sequence[int]) -> dict[int, int]:
    pairing = Pairing(compared.work)
    edges = compared.edges(slots, calls)
    for slot in slots:
        pairing.add(slot, edges)
    return pairing.right_of


_ORDERS: Mapping[Order, Callable[[Comparison], Divergence | None]] = {
    "exact": _exact,
    "in_order": _in_order,
    "any_order": _any_order,
    "only": _only,
}
