"""A foreign tool's result against its own output schema: in bounded time, and without fetching anything.

The SDK's client does this too, with patterns that `re` runs: a server could hold the process with thirty characters.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from mcp_ops.evaluation.matching.patterns import BadPattern, compiled
from mcp_ops.text import one_line

SECONDS = 5.0
"""CPU time that the check of one result may take."""
MAX_UNEVALUATED = 1000
"""Most members of a value that is checked by `unevaluatedItems` or `unevaluatedProperties`: their cost is quadratic."""

_SHOWN = 200

_Keyword = Callable[[Any, Any, Any, Any], Iterator[Any] | None]


class _Unchecked(Exception):
    """The check cannot be made. The message is the rest of a sentence about the result."""


def schema_fault(schema: Mapping[str, Any], structured: object) -> str | None:
    """Return what is wrong with structured content, or None when it fits.

    A pattern that is not RE2, such as one that looks around, is not checked.

    Args:
        schema: The tool's output schema, as the server listed it.
        structured: What the server sent.

    Returns:
        The rest of a sentence that begins with `its structured content`.
    """
    from referencing.exceptions import Unresolvable

    token = _deadline.set(time.thread_time() + SECONDS)
    try:
        misfit = next(_validator(schema).iter_errors(structured), None)
    except _Unchecked as unchecked:
        return str(unchecked)
    except Unresolvable as error:
        target = one_line(str(getattr(error, "ref", "")), 80)
        return f"cannot be checked: the output schema refers to {target!r}, and nothing is fetched"
    except Exception as error:
        reason = one_line(str(error), _SHOWN) or type(error).__name__
        return f"cannot be checked: the output schema is no JSON Schema ({type(error).__name__}: {reason})"
    except BaseException as error:
        # A library in Rust below jsonschema panics, by no Exception, when the stack ends inside it.
        if type(error).__name__ != "PanicException":
            raise
        return "cannot be checked: the output schema is no JSON Schema (RecursionError: it refers to itself)"
    finally:
        _deadline.reset(token)
    if misfit is None:
        return None
    where, what = one_line(misfit.json_path, 80), one_line(misfit.message, _SHOWN)
    return f"does not fit the tool's output schema: {where}: {what}"


def _validator(schema: Mapping[str, Any]) -> Any:
    from jsonschema.validators import validator_for
    from referencing import Registry

    if set(_keys(schema)) >= {"patternProperties", "unevaluatedProperties"}:
        # What is left unevaluated is found out with `re`, where no keyword can be put in its place.
        raise _Unchecked("cannot be checked: unevaluatedProperties together with patternProperties is not supported")
    return _bounded(validator_for(schema))(schema, registry=Registry())


def _keys(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _keys(item)
    elif isinstance(value, list):
        for item in value:
            yield from _keys(item)


@lru_cache(maxsize=16)
def _bounded(base: Any) -> Any:
    """Return a class of validators whose every keyword looks at the clock, and none of which runs `re`."""
    from jsonschema.validators import extend

    keywords: dict[str, _Keyword] = {**base.VALIDATORS}
    keywords |= {name: keyword for name, keyword in _REPLACED.items() if name in keywords}
    keywords |= {name: _few(keywords[name]) for name in _UNEVALUATED if name in keywords}
    return extend(base, {name: _timed(keyword) for name, keyword in keywords.items()})


_deadline: ContextVar[float] = ContextVar("_deadline", default=float("inf"))


def _look_at_the_clock() -> None:
    if time.thread_time() > _deadline.get():
        raise _Unchecked(f"cannot be checked against the tool's output schema within {SECONDS:g} s")


def _timed(keyword: _Keyword) -> _Keyword:
    def timed(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        _look_at_the_clock()
        yield from keyword(validator, value, instance, schema) or ()

    return timed


def _few(keyword: _Keyword) -> _Keyword:
    def few(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if isinstance(instance, list | dict) and len(instance) > MAX_UNEVALUATED:
            raise _Unchecked(f"cannot be checked: more than {MAX_UNEVALUATED} members and an unevaluated keyword")
        yield from keyword(validator, value, instance, schema) or ()

    return few


_UNEVALUATED = ("unevaluatedItems", "unevaluatedProperties")


def _found(pattern: str, text: str) -> bool:
    """Return whether a pattern is found; one that is not RE2 counts as found."""
    try:
        return compiled(pattern).search(text.encode("utf-8", "replace")) is not None
    except BadPattern:
        return True


def _pattern(validator: Any, value: Any, instance: Any, _: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if validator.is_type(instance, "string") and not _found(value, instance):
        yield ValidationError(f"does not match {value!r}")


def _pattern_properties(validator: Any, value: Any, instance: Any, _: Any) -> Iterator[Any]:
    if not validator.is_type(instance, "object"):
        return
    for pattern, subschema in value.items():
        for name, member in instance.items():
            _look_at_the_clock()
            if _found(pattern, name):
                yield from validator.descend(member, subschema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if not validator.is_type(instance, "object"):
        return
    named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, member in instance.items():
        _look_at_the_clock()
        if name in named or any(_found(pattern, name) for pattern in patterns):
            continue
        if validator.is_type(value, "object"):
            yield from validator.descend(member, value, path=name)
        elif not value:
            yield ValidationError(f"{name!r} is no property that the schema names")


def _unique_items(validator: Any, value: Any, instance: Any, _: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if value and validator.is_type(instance, "array"):
        seen = {json.dumps(item, sort_keys=True) for item in instance}
        if len(seen) < len(instance):
            yield ValidationError("has an element twice")


_REPLACED: Mapping[str, _Keyword] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
}
