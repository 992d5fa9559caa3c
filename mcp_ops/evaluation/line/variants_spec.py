"""The key `variants`: which bypass variants of its denied calls a line wants."""

from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, WithJsonSchema

from mcp_ops.evaluation.line.call_pattern import one_or_many
from mcp_ops.evaluation.line.line_model import Items, fault
from mcp_ops.evaluation.wording import near, shown

FamilyName = Literal[
    "quote", "bundle", "prefix", "env", "wrap", "newline", "glob", "tz",
    "absolute", "dotdot", "symlink", "hardlink", "case", "unicode", "encoding", "slash",
]  # fmt: skip
"""Families of bypass variants, in the order in which a line's variants run."""
FAMILY_NAMES: tuple[FamilyName, ...] = get_args(FamilyName)


def _only_true(value: object) -> object:
    if value is not True:
        raise fault(f'must be true or a list of families, got {shown(value)}; write for example ["quote", "bundle"]')
    return value


def _family(value: object) -> object:
    if value not in FAMILY_NAMES:
        raise fault(f"{shown(value)} is no family of variants{near(str(value), FAMILY_NAMES)}")
    return value


def _once_each(families: tuple[FamilyName, ...]) -> tuple[FamilyName, ...]:
    for index, name in enumerate(families):
        if name in families[:index]:
            raise fault(f"lists {shown(name)} twice; leave one out", index)
    return families


Variants = Annotated[
    Annotated[bool, BeforeValidator(_only_true), WithJsonSchema({"const": True}), Tag("<one>")]
    | Annotated[
        Annotated[
            Items[Annotated[FamilyName, BeforeValidator(_family)]], Field(min_length=1), AfterValidator(_once_each)
        ],
        Tag("<many>"),
    ],
    Discriminator(one_or_many),
]
"""True for every family that fits the line, or the names of some."""
