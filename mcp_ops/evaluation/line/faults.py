"""From a validation error to one sentence with its place."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from mcp_ops.evaluation.line.locate import locate
from mcp_ops.evaluation.line.scenario import ScenarioLine
from mcp_ops.evaluation.wording import Path, near, show_path, shown
from mcp_ops.text import one_line

MAX_SENTENCE = 400
"""Most characters of a message: texts of the line stand in it."""

MAX_EXAMPLE = 160

_UNION_TAG = re.compile(r"<[a-z_]+>")
_WANTED = {
    "string_type": "a string",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
}


@dataclass(frozen=True)
class LineFault:
    """What is wrong with a line."""

    message: str
    """One sentence."""
    offset: int
    """Where, in characters of the line from 0."""
    path: Path = ()
    """The value that is wrong."""


def first_fault(error: ValidationError, value: object, text: str, model: type[BaseModel] = ScenarioLine) -> LineFault:
    """Return the fault of a line that stands first in it.

    Args:
        error: What the validation found.
        value: The decoded line.
        text: The line.
        model: What it was validated as.
    """
    return min(all_faults(error, value, text, model), key=lambda fault: fault.offset)


def all_faults(error: ValidationError, value: object, text: str, model: type[BaseModel]) -> list[LineFault]:
    """Return what is wrong with a value, at most 20 of the faults."""
    found = error.errors(include_url=False)[:20]
    return [_fault(details, value, text, model) for details in found if not _only_follows(details)]


def _only_follows(details: Mapping[str, Any]) -> bool:
    """Whether a list counts as too short only because entries of it are wrong: those have errors of their own."""
    return bool(details["type"] == "too_short" and details["input"] and isinstance(details["input"], list | dict))


def _fault(details: Mapping[str, Any], value: object, text: str, model: type[BaseModel]) -> LineFault:
    context = details.get("ctx", {})
    loc = details["loc"]
    at_key = bool(context.get("at_key")) or loc[-1:] == ("[key]",) or details["type"] == "extra_forbidden"
    path = (*_path(loc, value), *context.get("path", ()))
    sentence = str(context["sentence"]) if "sentence" in context else _sentence(details, path, model)
    if details["type"] == "missing":
        path = path[:-1]
    message = f"{show_path(path) or 'the line'} {sentence}"
    return LineFault(one_line(message, MAX_SENTENCE), locate(text, path, at_key=at_key), path)


def _path(loc: Sequence[str | int], value: Any) -> Path:
    """Return the path in the line that an error's location means: without the tags that unions add to it."""
    path: list[str | int] = []
    for part in loc:
        inside = _member(value, part)
        if inside is not None:
            (value,) = inside
        elif part == "[key]" or (isinstance(part, str) and _UNION_TAG.fullmatch(part)):
            continue
        path.append(part)
    return tuple(path)


def _member(value: Any, part: str | int) -> tuple[Any] | None:
    if isinstance(value, list):
        return (value[part],) if isinstance(part, int) else None
    return (value[part],) if isinstance(value, dict) and part in value else None


def _sentence(details: Mapping[str, Any], path: Path, model: type[BaseModel]) -> str:
    kind, got, context = details["type"], shown(details["input"]), details.get("ctx", {})
    if kind == "missing":
        return f'has no "{path[-1]}"' + _for_example(path, model)
    if kind == "extra_forbidden":
        return "is an unknown key" + near(str(path[-1]), _keys_beside(path, model))
    if kind == "literal_error":
        words = re.findall(r"'([^']*)'", str(context["expected"]))
        return _choice(details["input"], words or [str(context["expected"]).lower()])
    if kind == "too_long":
        return f"must have at most {context['max_length']} entries, and has {context['actual_length']}"
    if kind == "greater_than_equal":
        return f"must be at least {context['ge']:.15g}, got {got}"
    if kind == "greater_than":
        return f"must be above {context['gt']:.15g}, got {got}"
    if kind == "less_than_equal":
        return f"must be at most {context['le']:.15g}, got {got}"
    if kind in ("too_short", "string_too_short"):
        least = context["min_length"]
        wanted = "must not be empty" if least == 1 else f"must have at least {least} characters, got {got}"
    elif kind == "string_pattern_mismatch":
        wanted = f"must match {str(context['pattern']).removeprefix('^').removesuffix('$')}, got {got}"
    elif kind in _WANTED:
        wanted = f"must be {_WANTED[kind]}, got {got}"
    else:
        wanted = f"is wrong: {details['msg'][:1].lower()}{details['msg'][1:]}"
    return wanted + _for_example(path, model)


def _choice(got: object, choices: Sequence[str]) -> str:
    listed = choices[0] if len(choices) == 1 else ", ".join(choices[:-1]) + " or " + choices[-1]
    close = difflib.get_close_matches(got, choices, n=1, cutoff=0.6) if isinstance(got, str) else []
    return f"must be {listed}, got {shown(got)}" + (f'; did you mean "{close[0]}"?' if close else "")


def _for_example(path: Path, model: type[BaseModel]) -> str:
    """Return `; write for example …` where the model knows an example of what stands at `path`."""
    _, field, inside = _walk(path, model)
    examples = field.examples if field is not None else None
    if not examples:
        return ""
    example = examples[0]
    if len(inside) == 1 and isinstance(inside[0], int) and isinstance(example, list):
        return f"; write for example {shown(example[0], MAX_EXAMPLE)}"
    return "" if inside else f"; write for example {shown(example, MAX_EXAMPLE)}"


def _keys_beside(path: Path, model: type[BaseModel]) -> list[str]:
    """Return the keys that the object has which holds the last key of a path."""
    models, _, _ = _walk(path[:-1], model)
    return [field.alias or name for each in models for name, field in each.model_fields.items()]


def _walk(path: Path, model: type[BaseModel]) -> tuple[list[type[BaseModel]], FieldInfo | None, list[str | int]]:
    """Return what a path leads to: the models that may stand there, the last field on the way, the parts behind it."""
    models: list[type[BaseModel]] = [model]
    field: FieldInfo | None = None
    inside: list[str | int] = []
    for part in path:
        found = [field for each in models for field in [_field(each, part)] if field is not None]
        if found:
            field, inside = found[0], []
            models = list(_models(field.annotation))
        else:
            inside.append(part)
    return models, field, inside


def _field(model: type[BaseModel], key: str | int) -> FieldInfo | None:
    return next((field for name, field in model.model_fields.items() if (field.alias or name) == key), None)


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)
