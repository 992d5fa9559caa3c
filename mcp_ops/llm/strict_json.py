"""JSON that can be read in one way only: no key twice, no number that is none, no endless nesting."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, NoReturn

from mcp_ops.text import one_line

MAX_DEPTH = 64
"""Deepest nesting, in levels."""


class Ambiguous(Exception):
    """JSON by its syntax, and yet not to be taken. The message is one sentence without a full stop."""


class TooDeep(Ambiguous):
    """It is nested deeper than `MAX_DEPTH` levels."""


def loads(text: str) -> Any:
    """Read a JSON value.

    Raises:
        json.JSONDecodeError: It is no JSON.
        Ambiguous: It could be read in two ways, or is too large a number, or too deep.
    """
    try:
        value = json.loads(
            text, object_pairs_hook=_without_duplicates, parse_constant=_no_constant, parse_float=_finite
        )
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise TooDeep(_TOO_DEEP) from None
    except ValueError:
        raise Ambiguous("a number has too many digits; write it as a string") from None
    _check_depth(value)
    return value


def read_arguments(text: str) -> tuple[Mapping[str, Any] | None, str]:
    """Read the arguments of a call; none at all stand for an empty object.

    Returns:
        The arguments and an empty text; or None and what is wrong, as the rest of a sentence that begins with
        "the arguments".
    """
    if not text.strip():
        return {}, ""
    try:
        value = loads(text)
    except json.JSONDecodeError as error:
        return None, f"are not valid JSON (line {error.lineno}, column {error.colno}); write one complete JSON object"
    except Ambiguous as why:
        return None, f"cannot be taken: {why}"
    if not isinstance(value, dict):
        return None, "are JSON but no object; write one JSON object"
    return value, ""


_TOO_DEEP = f"the JSON is nested deeper than {MAX_DEPTH} levels; write a flat object"


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise Ambiguous(f"the key {one_line(twice, 40)!r} stands twice in one object; write each key once")
    return value


def _no_constant(name: str) -> NoReturn:
    raise Ambiguous(f"{name} is no JSON number; leave the argument out or write a number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise Ambiguous(f"the number {one_line(digits, 40)} is too large")
    return number


def _check_depth(value: Any) -> None:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        inside = (item for holder in level for item in (holder.values() if isinstance(holder, dict) else holder))
        level = [item for item in inside if isinstance(item, dict | list)]
        if not level:
            return
    raise TooDeep(_TOO_DEEP)
