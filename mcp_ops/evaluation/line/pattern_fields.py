"""Fields of a line that hold patterns: what is checked of each, and how the JSON Schema shows it."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, WithJsonSchema

from mcp_ops.evaluation.line.line_model import fault
from mcp_ops.evaluation.matching.matcher_check import check_matcher, is_count
from mcp_ops.evaluation.matching.matchers import TYPE_NAMES, is_matcher
from mcp_ops.evaluation.wording import near, shown

RESULT_KEYS = ("text", "structured", "exit_code")
"""What the result of a call is made of."""


def _well_formed(value: object) -> object:
    for found in check_matcher(value):
        raise fault(found.message, *found.path, at_key=found.at_key)
    return value


def _has_operator(value: object) -> bool:
    return isinstance(value, dict) and any(key.startswith("$") for key in value)


def _name(value: object) -> object:
    if not (is_matcher(value) or (isinstance(value, str) and value)):
        raise fault(f'must be a name or a matcher, got {shown(value)}; write for example {{"$glob": "kubectl_*"}}')
    return _well_formed(value)


def _arguments(value: object) -> object:
    if not isinstance(value, dict):
        raise fault(f'must be an object or a matcher, got {shown(value)}; write for example {{"pod": "web-0"}}')
    return _well_formed(value)


def _result(value: object) -> object:
    if not isinstance(value, str | dict):
        raise fault(f"must be a text, a matcher or an object of {', '.join(RESULT_KEYS)}, got {shown(value)}")
    if isinstance(value, dict) and not _has_operator(value):
        for key in value:
            if key not in RESULT_KEYS:
                raise fault("is no part of a result" + near(key, RESULT_KEYS), key, at_key=True)
    return _well_formed(value)


def _answer(value: object) -> object:
    if not (value is None or isinstance(value, str) or _has_operator(value)):
        raise fault(f'must be a text, a matcher or null, got {shown(value)}; write {{"$json": …}} to look inside')
    return _well_formed(value)


def _times(value: object) -> object:
    if not is_count(value):
        raise fault(f'must be a whole number from 0 or a matcher, got {shown(value)}; write for example {{"$lte": 2}}')
    return _well_formed(value)


PLACEHOLDER = "x-pattern"
"""Stands for `$ref` until the schema is complete: pydantic resolves every `$ref` and does not know these."""


def _ref(name: str) -> dict[str, str]:
    return {PLACEHOLDER: f"#/$defs/{name}"}


_TEXT_OR_MATCHER: dict[str, Any] = {"anyOf": [{"type": "string"}, _ref("Matcher")]}

NamePattern = Annotated[
    Any,
    AfterValidator(_name),
    WithJsonSchema({"anyOf": [{"type": "string", "minLength": 1}, _ref("Matcher")]}),
]
"""A name, compared as a string, or a matcher."""
ArgumentsPattern = Annotated[Any, AfterValidator(_arguments), WithJsonSchema(_ref("ObjectPattern"))]
"""An object that is a subset of the arguments, or a matcher of the whole object."""
ResultPattern = Annotated[
    Any,
    AfterValidator(_result),
    WithJsonSchema(
        {
            "anyOf": [
                *_TEXT_OR_MATCHER["anyOf"],
                {
                    "type": "object",
                    "properties": {key: _ref("Pattern") for key in RESULT_KEYS},
                    "additionalProperties": False,
                },
            ]
        }
    ),
]
"""An object of `text`, `structured` and `exit_code`; a text or a bare matcher looks at the text."""
AnswerPattern = Annotated[
    Any, AfterValidator(_answer), WithJsonSchema({"anyOf": [*_TEXT_OR_MATCHER["anyOf"], {"type": "null"}]})
]
"""The answer's text, a matcher of it, or null for a run without an answer."""
TimesPattern = Annotated[
    Any, AfterValidator(_times), WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, _ref("Matcher")]})
]
"""A number of times, or a matcher of it."""

_PATTERNS = {"type": "array", "minItems": 1, "items": _ref("Pattern")}
_TYPE_NAME = {"enum": list(TYPE_NAMES)}
_OPERATORS: Mapping[str, dict[str, Any]] = {
    "$any": {"const": True, "description": "Any value, as long as there is one.", "examples": [True]},
    "$re": {
        "type": "string",
        "description": "An RE2 pattern that is found somewhere in a string.",
        "examples": ["payments-api-[a-z0-9-]+"],
    },
    "$glob": {
        "type": "string",
        "description": "A glob that covers the whole string; * takes / too.",
        "examples": ["runbooks/*.md"],
    },
    "$contains": {
        **_ref("Pattern"),
        "description": "A part of a string, or a pattern that some element of a list fits.",
        "examples": ["CrashLoopBackOff"],
    },
    "$in": {**_PATTERNS, "description": "Alternatives: the value fits one of them.", "examples": [["demo", "default"]]},
    "$gt": {"type": "number", "description": "A number that is greater.", "examples": [0]},
    "$gte": {"type": "number", "description": "A number that is greater or equal.", "examples": [1]},
    "$lt": {"type": "number", "description": "A number that is less.", "examples": [500]},
    "$lte": {"type": "number", "description": "A number that is less or equal.", "examples": [200]},
    "$type": {
        "anyOf": [_TYPE_NAME, {"type": "array", "minItems": 1, "items": _TYPE_NAME}],
        "description": "A type of JSON Schema, or a list of them.",
        "examples": ["integer"],
    },
    "$len": {
        "anyOf": [{"type": "integer", "minimum": 0}, _ref("Matcher")],
        "description": "Length of a string in characters, of a list or of an object.",
        "examples": [{"$gte": 1}],
    },
    "$not": {**_ref("Pattern"), "description": "A pattern that does not fit.", "examples": [{"$contains": "error"}]},
    "$all": {
        **_PATTERNS,
        "description": "Patterns that all fit.",
        "examples": [[{"$contains": "web"}, {"$contains": "redis"}]],
    },
    "$exact": {
        "description": "Exactly this value: no subset, no matcher inside.",
        "examples": [{"namespace": "demo"}],
    },
    "$absent": {"type": "boolean", "description": "Whether the key is not there.", "examples": [True]},
    "$argv": {
        "anyOf": [{"type": "string"}, {"type": "array", "items": _ref("Pattern")}, _ref("Matcher")],
        "description": "Words of a command line after shell splitting.",
        "examples": [["ls", "-l", {"$glob": "*.md"}]],
    },
    "$json": {
        **_ref("Pattern"),
        "description": "A string that is JSON and whose value fits.",
        "examples": [{"status": "ok"}],
    },
}


def pattern_definitions() -> dict[str, Any]:
    """Return the JSON Schema definitions that the fields of this module refer to."""
    plain = {
        "type": "object",
        "propertyNames": {"pattern": "^(?!\\$)"},
        "additionalProperties": _ref("Pattern"),
        "description": "An object that is a subset of what is seen.",
    }
    matcher = {
        "type": "object",
        "minProperties": 1,
        "properties": dict(_OPERATORS),
        "additionalProperties": False,
        "description": "Operators, all of which must hold.",
        "examples": [{"$contains": "CrashLoopBackOff"}],
    }
    pattern = {
        "anyOf": [
            {"type": ["string", "number", "boolean", "null"]},
            {"type": "array", "items": _ref("Pattern")},
            _ref("ObjectPattern"),
        ],
        "description": "A JSON value that what is seen must equal; matchers may stand in it.",
    }
    return {
        "Matcher": matcher,
        "ObjectPattern": {"anyOf": [_ref("Matcher"), plain]},
        "Pattern": pattern,
    }
