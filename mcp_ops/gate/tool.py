"""A tool, a resource, a prompt: its definition, its guard and its runner, or nothing at all."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar

import mcp_types
from pydantic import BaseModel, ConfigDict, Field

from mcp_ops.gate.reply import Result
from mcp_ops.gate.rules import Refuse

MAX_REPLY_BYTES = 8192
"""Most bytes of UTF-8 in a reply's text."""


class Arguments(BaseModel):
    """Base of every tool's arguments: unknown keys are refused and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class NoArguments(Arguments):
    """Takes nothing."""


class Output(BaseModel):
    """Base of a tool's typed result: what every executed call says, and what the tool adds.

    Values are JSON's own: lists and no tuples, times as text.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    state: Literal["executed"] = Field(description="The tool ran to its end.")
    truncated: bool = Field(description="Whether the text of this result was cut.")
    full_length: int = Field(description="Length of the whole text in bytes.")


class ToolClass(StrEnum):
    """How dangerous a tool is. A tool that nobody classified counts as destructive."""

    READ_ONLY = "read_only"
    MUTATING = "mutating"
    DESTRUCTIVE = "destructive"


A = TypeVar("A", bound=Arguments)
C = TypeVar("C")
P = TypeVar("P")


@dataclass(frozen=True)
class Guarded(Generic[A, C, P]):
    """What can be asked. `A` are its arguments, `C` what its server knows, `P` the plan that its guard allows.

    The guard decides and returns what exactly may run; the runner gets nothing else.
    """

    name: str
    description: str
    arguments: type[A]
    guard: Callable[[A, C, Refuse], P]
    """Refuses, or returns the plan. Reads at most names and types of files, changes nothing."""
    run: Callable[[P, C, Refuse], Awaitable[Result]]
    """Carries the plan out. May still refuse before anything outside the gate was read or changed."""


@dataclass(frozen=True)
class Tool(Guarded[A, C, P]):
    """One tool."""

    classification: ToolClass = ToolClass.DESTRUCTIVE
    open_world: bool = False
    """Whether it talks to something outside the machine, such as a cluster."""
    max_reply_bytes: int = MAX_REPLY_BYTES
    output: type[Output] | None = None
    """Form of the structured content of an executed call. It is listed, and what does not fit it is not sent."""

    @cached_property
    def definition(self) -> mcp_types.Tool:
        """The tool as `tools/list` shows it."""
        read_only = self.classification is ToolClass.READ_ONLY
        return mcp_types.Tool(
            name=self.name,
            description=self.description,
            input_schema=_schema(self.arguments),
            output_schema=None if self.output is None else _schema(self.output),
            annotations=mcp_types.ToolAnnotations(
                read_only_hint=read_only,
                destructive_hint=self.classification is ToolClass.DESTRUCTIVE,
                idempotent_hint=read_only,
                open_world_hint=self.open_world,
            ),
        )


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of a model, without the titles that pydantic makes of the names."""
    schema = model.model_json_schema()
    for part in (schema, *schema.get("$defs", {}).values()):
        part.pop("title", None)
        part.pop("description", None)
        for field in part.get("properties", {}).values():
            field.pop("title", None)
    return schema
