"""Which patterns are well formed: a matcher that cannot mean anything is an error of the line, not a mismatch."""

import difflib
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mcp_ops.evaluation.matching.matchers import OPERATORS, TYPE_NAMES, is_matcher, is_number
from mcp_ops.evaluation.matching.patterns import MAX_PATTERN, BadPattern, check_glob, check_regex
from mcp_ops.evaluation.wording import Path, shown


@dataclass(frozen=True)
class MatcherFault:
    """Why a pattern is not well formed."""

    path: Path
    """Keys and indexes from the pattern's root."""
    message: str
    """What is wrong and what to write instead; it follows the path in a sentence."""
    at_key: bool = False
    """Whether the last key of the path is at fault, not its value."""


def check_matcher(pattern: object, path: Path = ()) -> Iterator[MatcherFault]:
    """Yield the faults of a pattern, in the order in which they stand."""
    if isinstance(pattern, list):
        for index, item in enumerate(pattern):
            yield from check_matcher(item, (*path, index))
    elif isinstance(pattern, Mapping):
        dollars = [key for key in pattern if key.startswith("$")]
        if dollars and len(dollars) < len(pattern):
            yield MatcherFault(path, f"mixes keys with the operator {shown(dollars[0])}; {_MIXED}")
            return
        for key, part in pattern.items():
            yield from _check_operator(key, part, (*path, key)) if dollars else check_matcher(part, (*path, key))


_MIXED = 'write either keys or operators, and {"$exact": {…}} for an object whose own keys begin with $'


def _check_operator(operator: str, operand: object, path: Path) -> Iterator[MatcherFault]:
    if operator not in OPERATORS:
        near = difflib.get_close_matches(operator, OPERATORS, n=1)
        guess = f"did you mean {shown(near[0])}?" if near else f"operators are {', '.join(OPERATORS)}"
        yield MatcherFault(path, f"is an unknown operator; {guess}", at_key=True)
    elif operator in _OPERAND_CHECKS:
        sentence = _OPERAND_CHECKS[operator](operand)
        if sentence is not None:
            yield MatcherFault(path, sentence)
        elif operator in ("$in", "$all", "$len", "$argv"):
            yield from check_matcher(operand, path)
    elif operator != "$exact":
        yield from check_matcher(operand, path)


def _needs(holds: Callable[[Any], bool], wanted: str) -> Callable[[Any], str | None]:
    return lambda operand: None if holds(operand) else f"must be {wanted}"


def _pattern_check(check: Callable[[str], None], what: str, example: str) -> Callable[[Any], str | None]:
    def sentence(operand: object) -> str | None:
        if not isinstance(operand, str):
            return f"must be a string, for example {example}"
        if len(operand) > MAX_PATTERN:
            return f"has more than {MAX_PATTERN} characters; write a shorter pattern"
        try:
            check(operand)
        except BadPattern as bad:
            return f"is not {what} ({bad}); write for example {example}"
        return None

    return sentence


def is_count(value: object) -> bool:
    """Return whether a value is a whole number from 0 or a matcher."""
    return (isinstance(value, int) and not isinstance(value, bool) and value >= 0) or is_matcher(value)


def _is_type(value: object) -> bool:
    names = [value] if isinstance(value, str) else value
    return isinstance(names, list) and bool(names) and all(name in TYPE_NAMES for name in names)


def _is_argv(value: object) -> bool:
    if not isinstance(value, str):
        return isinstance(value, list) or is_matcher(value)
    try:
        shlex.split(value)
    except ValueError:
        return False
    return True


_a_number = _needs(is_number, "a number, for example 3")
_patterns = _needs(lambda value: isinstance(value, list) and bool(value), "a list with at least one pattern")

_OPERAND_CHECKS: Mapping[str, Callable[[Any], str | None]] = {
    "$any": _needs(lambda value: value is True, 'true; write {"$in": […]} for alternatives'),
    "$re": _pattern_check(check_regex, "an RE2 pattern", '"payments-[a-z0-9-]+"'),
    "$glob": _pattern_check(check_glob, "a glob", '"*.md"'),
    "$in": _patterns,
    "$gt": _a_number,
    "$gte": _a_number,
    "$lt": _a_number,
    "$lte": _a_number,
    "$type": _needs(_is_type, f"one of {', '.join(TYPE_NAMES)}, or a list of them"),
    "$len": _needs(is_count, 'a whole number from 0 or a matcher, for example {"$gte": 1}'),
    "$all": _patterns,
    "$absent": _needs(lambda value: isinstance(value, bool), "true or false"),
    "$argv": _needs(_is_argv, 'a list of words, a command line or a matcher, for example ["ls", "-l"]'),
}
