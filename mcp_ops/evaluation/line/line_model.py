"""What the models of a scenario line have in common: strict, frozen, and errors that say what to write instead."""

import difflib
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Strict, model_validator
from pydantic_core import PydanticCustomError

from mcp_ops.evaluation.wording import near, shown

T = TypeVar("T")

COMMAND_LIKE = frozenset(
    {"args", "command", "cmd", "cwd", "env", "environment", "exec", "factory", "headers", "header", "import", "module"}
    | {"run", "script", "shell", "url"}
)
"""Keys by which other tools let a file run or fetch something; a line never does."""


def fault(sentence: str, *path: str | int, at_key: bool = False, kind: str = "line") -> PydanticCustomError:
    """Return the error for a value of the line that is wrong.

    Args:
        sentence: What is wrong and what to write instead. It follows the path of the value.
        path: Where, beneath the value that is being validated.
        at_key: Whether the key is at fault, not the value.
        kind: Type of the error, as pydantic names it.
    """
    context = {"sentence": sentence, "path": path, "at_key": at_key}
    return PydanticCustomError(kind, "{sentence}", context)


def _refuse_null(value: object) -> object:
    if value is None:
        raise fault("must not be null; leave the key out")
    return value


def _encodable(value: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise fault("holds half of a surrogate pair, which no file and no model can take; leave it out")
    return value


Items = Annotated[tuple[T, ...], Strict(False)]
"""A JSON list, kept as a tuple."""
Given = Annotated[T | None, BeforeValidator(_refuse_null)]
"""A key that may be left out; None then. A written null is an error, because it would check nothing."""
Text = Annotated[str, AfterValidator(_encodable)]
"""A string that can be written as UTF-8."""


class LinePart(BaseModel):
    """Base of every object of a scenario line."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    RESERVED: ClassVar[frozenset[str]] = frozenset()
    """Keys that will mean something and are not built yet."""
    MISPLACED: ClassVar[Mapping[str, str]] = {}
    """Keys that belong elsewhere, each with a sentence about where."""

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        known = {field.alias or name: field for name, field in cls.model_fields.items()}
        for key in value:
            if key not in known:
                raise fault(cls._unknown_key(key, known), key, at_key=True)
        for key, field in known.items():
            if field.is_required() and key not in value:
                example = shown((field.examples or [None])[0])
                raise fault(f'has no "{key}"; write for example "{key}": {example}')
        return value

    @classmethod
    def _unknown_key(cls, key: str, known: Mapping[str, Any]) -> str:
        if key in cls.RESERVED:
            return "is not built yet; leave the key out"
        if key in cls.MISPLACED:
            return cls.MISPLACED[key]
        close = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
        if key.lower() in COMMAND_LIKE and not close:
            return (
                "is an unknown key: a line names no command, module, URL, header or environment variable;"
                " servers and agents stand in the configuration"
            )
        return "is an unknown key" + near(key, known)
