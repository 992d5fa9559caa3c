"""A tool: its definition, its guard and its runner, or no tool at all."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Generic, TypeVar

import mcp_types
from pydantic import BaseModel, ConfigDict

from mcp_ops.gate.reply import Result
from mcp_ops.gate.rules import Refuse

MAX_REPLY_BYTES = 8192
"""Most bytes of UTF-8 in a reply's text."""


class Arguments(BaseModel):
    """Base of every tool's arguments: unknown keys are refused and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ToolClass(StrEnum):
    """How dangerous a tool is. A tool that nobody classified counts as destructive."""

    READ_ONLY = "read_only"
    MUTATING = "mutating"
    DESTRUCTIVE = "destructive"


A = TypeVar("A", bound=Arguments)
C = TypeVar("C")
P = TypeVar("P")


@dataclass(frozen=True)
class Tool(Generic[A, C, P]):
    """One tool. `A` are its arguments, `C` what its server knows, `P` the plan that its guard allows.

    The guard decides and returns what exactly may run; the runner gets nothing else.
    """

    name: str
    description: str
    arguments: type[A]
    guard: Callable[[A, C, Refuse], P]
    """Refuses, or returns the plan. Reads at most names and types of files, changes nothing."""
    run: Callable[[P, C, Refuse], Awaitable[Result]]
    """Carries the plan out. May still refuse before anything outside the gate was read or changed."""
    classification: ToolClass = ToolClass.DESTRUCTIVE
    open_world: bool = False
    """Whether it talks to something outside the machine, such as a cluster."""
    max_reply_bytes: int = MAX_REPLY_BYTES

    @cached_property
    def definition(self) -> mcp_types.Tool:
        """The tool as `tools/list` shows it."""
        read_only = self.classification is ToolClass.READ_ONLY
        return mcp_types.Tool(
            name=self.name,
            description=self.description,
            input_schema=_schema(self.arguments),
            annotations=mcp_types.ToolAnnotations(
                read_only_hint=read_only,
                destructive_hint=self.classification is ToolClass.DESTRUCTIVE,
                idempotent_hint=read_only,
                open_world_hint=self.open_world,
            ),
        )


def _schema(arguments: type[Arguments]) -> dict[str, Any]:
    schema = arguments.model_json_schema()
    schema.pop("title", None)
    schema.pop("description", None)
    for field in schema.get("properties", {}).values():
        field.pop("title", None)
    return schema
