"""Matchers: how the values of a line are compared with what was seen.

A pattern is a JSON value. Objects are subsets, lists are equal in length and order, everything else is compared by
JSON equality. An object whose keys all begin with `$` is a matcher, and all of its keys must hold. `matcher_check` says
which patterns are well formed; here they are taken to be.
"""

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NoReturn

from mcp_ops.evaluation.matching.patterns import glob_covers, search
from mcp_ops.evaluation.matching.work import Work
from mcp_ops.evaluation.wording import Path

MAX_ARGV_CHARACTERS = 65_536
"""A longer string is never a command line."""


class Missing(Enum):
    """The one value that stands for a key that is not there."""

    MISSING = "nothing"


MISSING = Missing.MISSING


@dataclass(frozen=True)
class Mismatch:
    """Where a pattern and a value part."""

    path: Path
    """Keys and indexes from the pattern's root; an operator stands in it where the pattern goes on inside it."""
    expected: object
    """The part of the pattern that does not fit."""
    actual: object
    """What stands there, or `MISSING`."""


def is_matcher(pattern: object) -> bool:
    """Return whether a pattern is an object of operators."""
    return isinstance(pattern, Mapping) and bool(pattern) and all(key.startswith("$") for key in pattern)


def mismatch(pattern: object, actual: object, work: Work, path: Path = ()) -> Mismatch | None:
    """Return the first place where `actual` does not fit `pattern`, or None.

    Raises:
        TooMuchWork: The comparison costs more than one line may.
    """
    work.spend()
    if isinstance(pattern, Mapping):
        if is_matcher(pattern):
            return _matcher_mismatch(pattern, actual, work, path)
        return _object_mismatch(pattern, actual, work, path)
    if isinstance(pattern, list | tuple):
        return _list_mismatch(pattern, actual, work, path)
    return None if json_equal(pattern, actual, work) else Mismatch(path, pattern, actual)


def fits(pattern: object, actual: object, work: Work) -> bool:
    """Return whether `actual` fits `pattern`."""
    return mismatch(pattern, actual, work) is None


def _object_mismatch(pattern: Mapping[str, object], actual: object, work: Work, path: Path) -> Mismatch | None:
    if not isinstance(actual, Mapping):
        return Mismatch(path, pattern, actual)
    for key, part in pattern.items():
        found = mismatch(part, actual.get(key, MISSING), work, (*path, key))
        if found is not None:
            return found
    return None


def _list_mismatch(pattern: list[Any] | tuple[Any, ...], actual: object, work: Work, path: Path) -> Mismatch | None:
    if not isinstance(actual, list | tuple) or len(actual) != len(pattern):
        return Mismatch(path, pattern, actual)
    for index, (part, item) in enumerate(zip(pattern, actual, strict=True)):
        found = mismatch(part, item, work, (*path, index))
        if found is not None:
            return found
    return None


def _matcher_mismatch(pattern: Mapping[str, object], actual: object, work: Work, path: Path) -> Mismatch | None:
    for operator, operand in pattern.items():
        if actual is MISSING:
            holds = operator == "$absent" and operand is True
        elif operator == "$json":
            found = _json_mismatch(operand, actual, work, (*path, operator))
            if found is not None:
                return Mismatch(path, {operator: operand}, actual) if found.path == (*path, operator) else found
            continue
        else:
            holds = _OPERATORS[operator](operand, actual, work)
        if not holds:
            return Mismatch(path, {operator: operand}, actual)
    return None


def _json_mismatch(operand: object, actual: object, work: Work, path: Path) -> Mismatch | None:
    if not isinstance(actual, str):
        return Mismatch(path, operand, actual)
    work.spend(len(actual) // 256)
    try:
        value = json.loads(actual, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return Mismatch(path, operand, actual)
    return mismatch(operand, value, work, path)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def json_equal(one: object, other: object, work: Work) -> bool:
    """Return whether two JSON values are equal: `1` is `1.0`, `true` is not `1`, `"5"` is not `5`."""
    work.spend()
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, str) and isinstance(other, str):
        return one == other
    if is_number(one) and is_number(other):
        return one == other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(json_equal(value, other[key], work) for key, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(json_equal(a, b, work) for a, b in zip(one, other, strict=True))
    return one is None and other is None


def is_number(value: object) -> bool:
    """Return whether a value is a JSON number; true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text_search(operand: Any, actual: object, work: Work) -> bool:
    if not isinstance(actual, str):
        return False
    work.spend(len(actual) // 256)
    return search(operand, actual)


def _glob(operand: Any, actual: object, work: Work) -> bool:
    if not isinstance(actual, str):
        return False
    work.spend(len(actual) // 256)
    return glob_covers(operand, actual)


def _contains(operand: Any, actual: object, work: Work) -> bool:
    if isinstance(actual, str):
        work.spend(len(actual) // 256)
        return isinstance(operand, str) and operand in actual
    return isinstance(actual, list | tuple) and any(fits(operand, item, work) for item in actual)


def _in(operand: Any, actual: object, work: Work) -> bool:
    return any(fits(choice, actual, work) for choice in operand)


def _all(operand: Any, actual: object, work: Work) -> bool:
    return all(fits(part, actual, work) for part in operand)


def _compare(holds: Callable[[Any, Any], bool]) -> Callable[[Any, object, Work], bool]:
    return lambda operand, actual, work: is_number(actual) and holds(actual, operand)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": is_number,
    "integer": lambda value: is_number(value) and (isinstance(value, int) or value.is_integer()),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list | tuple),
    "object": lambda value: isinstance(value, Mapping),
}
TYPE_NAMES = tuple(_TYPES)
"""JSON Schema's names of types."""


def _type(operand: Any, actual: object, work: Work) -> bool:
    names = [operand] if isinstance(operand, str) else operand
    return any(_TYPES[name](actual) for name in names)


def _len(operand: Any, actual: object, work: Work) -> bool:
    return isinstance(actual, str | list | tuple | Mapping) and fits(operand, len(actual), work)


def _argv(operand: Any, actual: object, work: Work) -> bool:
    if not isinstance(actual, str):
        return False
    words = _split(actual, work)
    wanted = _split(operand, work) if isinstance(operand, str) else operand
    return words is not None and fits(wanted, words, work)


def _split(command: str, work: Work) -> list[str] | None:
    if len(command) > MAX_ARGV_CHARACTERS:
        return None
    work.spend(len(command) // 16)
    try:
        return shlex.split(command)
    except ValueError:
        return None


_OPERATORS: Mapping[str, Callable[[Any, object, Work], bool]] = {
    "$any": lambda operand, actual, work: True,
    "$re": _text_search,
    "$glob": _glob,
    "$contains": _contains,
    "$in": _in,
    "$gt": _compare(lambda actual, operand: actual > operand),
    "$gte": _compare(lambda actual, operand: actual >= operand),
    "$lt": _compare(lambda actual, operand: actual < operand),
    "$lte": _compare(lambda actual, operand: actual <= operand),
    "$type": _type,
    "$len": _len,
    "$not": lambda operand, actual, work: not fits(operand, actual, work),
    "$all": _all,
    "$exact": json_equal,
    "$absent": lambda operand, actual, work: operand is False,
    "$argv": _argv,
}
OPERATORS = (*_OPERATORS, "$json")
"""Every operator, in the order in which the documentation lists them."""
