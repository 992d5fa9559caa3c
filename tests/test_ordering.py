import random
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise, permutations
from typing import Any

import pytest
from observations import call

from mcp_ops.evaluation.line.expect import TaskExpectations
from mcp_ops.evaluation.matching.ordering import Comparison, Divergence
from mcp_ops.evaluation.matching.work import TooMuchWork, Work
from mcp_ops.evaluation.observed import CallRecord

ORDERS = ("exact", "in_order", "any_order", "only")


def compare(entries: list[Any], calls: Sequence[CallRecord], order: Any) -> Divergence | None:
    expected = TaskExpectations.model_validate({"calls": entries})
    assert expected.calls is not None
    return Comparison(expected.calls, calls, Work()).compare(order)


def in_turns(text: str) -> list[CallRecord]:
    """`"ab c"` is three calls, of which the first two are of one turn."""
    calls: list[CallRecord] = []
    for turn, tools in enumerate(text.split()):
        calls += [call(len(calls) + number, tool, turn=turn) for number, tool in enumerate(tools)]
    return calls


def entry(text: str) -> dict[str, Any]:
    """`"a"` is a call, `"a|b"` any of two, `"a+b"` both in one turn, `"a|b+c"` a turn of any of two and one."""
    if "+" in text:
        return {"parallel": [entry(member) for member in text.split("+")]}
    if "|" in text:
        return {"any_of": [{"tool": tool} for tool in text.split("|")]}
    return {"tool": text}


# Expected entries, actual calls, and the orders in which they agree.
AGREEMENTS = [
    ("", "", "exact in_order any_order only"),
    ("", "a", "in_order any_order"),
    ("a", "", "only"),
    ("a b", "a b", "exact in_order any_order only"),
    ("a b", "b a", "any_order only"),
    ("a b", "a x b", "in_order any_order"),
    ("a b", "a", "only"),
    ("a a", "a", "only"),
    ("a", "a a", "in_order any_order only"),
    ("a|b a", "a b", "any_order only"),
    ("a|b a|b", "b a", "exact in_order any_order only"),
    ("a+b", "ab", "exact in_order any_order only"),
    ("a+b", "ba", "exact in_order any_order only"),
    ("a+b", "a b", ""),
    ("a+b", "axb", "in_order any_order"),
    ("a+b c", "bac", "exact in_order any_order only"),
    ("a+b c", "bca", "any_order only"),
    ("c a+b", "cba", "exact in_order any_order only"),
    ("a+a", "a", ""),
    ("a+a", "aa", "exact in_order any_order only"),
    ("a|b+a", "ab", "exact in_order any_order only"),
    ("a+b a+b", "ab ba", "exact in_order any_order only"),
    ("a+b a+b", "aabb", "any_order only"),
    ("a+b a", "a ab", "any_order only"),
    ("a a+b", "a b ab", "in_order any_order"),
]


@pytest.mark.covers("H5")
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("entries", "calls", "agreeing"), AGREEMENTS)
def test_calls_agree_in_these_orders_and_no_others(entries: str, calls: str, agreeing: str, order: str) -> None:
    divergence = compare([entry(text) for text in entries.split()], in_turns(calls), order)
    assert (divergence is None) is (order in agreeing.split())


@pytest.mark.covers("H5")
def test_pairing_is_optimal_where_the_first_fit_is_not() -> None:
    # The first entry could take either call; taking the first one leaves nothing for the second entry.
    entries = [{"any_of": [{"tool": "a"}, {"tool": "b"}]}, {"tool": "a"}, {"any_of": [{"tool": "b"}, {"tool": "c"}]}]
    assert compare(entries, in_turns("a b c"), "any_order") is None
    assert compare(entries, in_turns("c b a"), "any_order") is None
    assert compare(entries, in_turns("a b b"), "any_order") is None
    assert compare(entries, in_turns("b c c"), "any_order") == Divergence(1, (1,), (2,), slot_of={0: 0, 1: 2})


@pytest.mark.covers("H12")
def test_the_first_divergence_is_the_first_entry_that_cannot_be_filled_with_those_before_it() -> None:
    entries = [entry(text) for text in ["a", "b", "c"]]
    exact = compare(entries, in_turns("a c b"), "exact")
    assert exact is not None
    assert (exact.entry, exact.candidates) == (1, (1,))
    in_order = compare(entries, in_turns("a c b x"), "in_order")
    assert in_order is not None
    assert (in_order.entry, in_order.candidates) == (2, (3,))
    any_order = compare(entries, in_turns("c x a"), "any_order")
    assert any_order is not None
    assert (any_order.entry, any_order.candidates, any_order.slot_of) == (1, (1,), {2: 0, 0: 2})
    only = compare(entries, in_turns("c x a y"), "only")
    assert only is not None
    assert (only.entry, only.candidates) == (None, (1,))


# --- the same by brute force: every way to fill the slots is tried ---

Filling = list[tuple[int, ...]]
"""For each entry the calls that fill its slots."""


def members(text: str) -> list[set[str]]:
    return [set(member.split("|")) for member in text.split("+")]


def fillings_of_entry(text: str, calls: Sequence[CallRecord]) -> Iterator[tuple[int, ...]]:
    slots = members(text)
    for chosen in permutations(range(len(calls)), len(slots)):
        one_turn = len({calls[number].turn for number in chosen}) == 1
        if one_turn and all(calls[number].tool in slot for number, slot in zip(chosen, slots, strict=True)):
            yield chosen


def fillings(entries: Sequence[str], calls: Sequence[CallRecord]) -> Iterator[Filling]:
    if not entries:
        yield []
        return
    for rest in fillings(entries[:-1], calls):
        taken = {number for chosen in rest for number in chosen}
        for chosen in fillings_of_entry(entries[-1], calls):
            if not taken & set(chosen):
                yield [*rest, chosen]


def is_ordered(filling: Filling) -> bool:
    return all(max(first) < min(second) for first, second in pairwise(filling))


def agrees(entries: Sequence[str], calls: Sequence[CallRecord], order: str) -> bool:
    if order == "only":
        return all(
            any(number in chosen for text in entries for chosen in fillings_of_entry(text, calls))
            for number in range(len(calls))
        )
    found = list(fillings(entries, calls))
    if order == "any_order":
        return bool(found)
    ordered = [filling for filling in found if is_ordered(filling)]
    if order == "in_order":
        return bool(ordered)
    return any(sum(map(len, filling)) == len(calls) for filling in ordered)


def random_case(chance: random.Random) -> tuple[list[str], list[CallRecord]]:
    def member() -> str:
        return "|".join(chance.sample("abc", chance.choice([1, 1, 2])))

    entries = [
        "+".join(member() for _ in range(chance.choice([1, 1, 1, 2, 2, 3]))) for _ in range(chance.randint(0, 3))
    ]
    turns = ["".join(chance.choice("abc") for _ in range(chance.randint(1, 3))) for _ in range(chance.randint(0, 3))]
    calls = in_turns(" ".join(turns))
    return entries, calls[:6]


@pytest.mark.covers("H5")
@pytest.mark.parametrize("seed", range(8))
def test_every_order_agrees_with_brute_force(seed: int) -> None:
    chance = random.Random(seed)
    agreements = dict.fromkeys(ORDERS, 0)
    for _ in range(250):
        entries, calls = random_case(chance)
        for order in ORDERS:
            divergence = compare([entry(text) for text in entries], calls, order)
            wanted = agrees(entries, calls, order)
            assert (divergence is None) is wanted, (order, entries, [(c.turn, c.tool) for c in calls])
            agreements[order] += wanted
            if divergence is not None and divergence.entry is not None and order in ("in_order", "any_order"):
                assert agrees(entries[: divergence.entry], calls, order)
                assert not agrees(entries[: divergence.entry + 1], calls, order)
    assert all(10 < count < 240 for count in agreements.values()), agreements


@pytest.mark.covers("H5")
def test_groups_that_could_be_placed_in_endless_ways_are_given_up() -> None:
    # Forty pairs into thirty-nine turns that hold three calls each: no turn takes two pairs, so there is no way, and
    # to see that by trying takes longer than anyone lives.
    started = time.process_time()
    with pytest.raises(TooMuchWork):
        compare([entry("a+a")] * 40, in_turns(" ".join(["aaa"] * 39)), "any_order")
    assert time.process_time() - started < 30


@pytest.mark.covers("H5")
@pytest.mark.parametrize("order", ["exact", "in_order"])
def test_long_lists_are_compared_in_one_pass(order: str) -> None:
    assert compare([entry("a|b")] * 5000, in_turns(" ".join("ab" * 2500)), order) is None
