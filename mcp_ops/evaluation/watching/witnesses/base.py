"""What a witness is, what it is given, and what it returns."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mcp_ops.evaluation.config import Mode
from mcp_ops.trace.events import EffectKind

WITNESS_NAME = r"[a-z][a-z0-9_-]*"
"""Pattern of a witness' whole name."""


@dataclass(frozen=True)
class Effect:
    """One thing that is different after the run."""

    kind: EffectKind
    """`created`, `changed`, `removed` or `left_over`."""
    object: str
    """What it is about, as `expect.effects` names it: a path, a ticket's number."""
    detail: str = ""
    """More for people."""


@dataclass(frozen=True)
class WitnessInput:
    """What a witness may know of the run that it is made for."""

    workspace: Path
    """The run's own copy of the line's workspace."""
    scenario: str
    """Id of the line."""
    servers: tuple[str, ...]
    """Names of the servers, in the line's order. They are started after `before` and closed before `after`."""
    mode: Mode


class Witness(Protocol):
    """Looks at one part of the world before and after a run.

    `before` and `after` may be coroutine functions. Two more members are optional: `watches`, names of servers whose
    doings it sees, which else count as unwatched; and a function `end`, called last however the run ended.
    """

    @property
    def name(self) -> str:
        """The part of the world, as `expect.effects` names it."""
        ...

    def before(self) -> Awaitable[None] | None:
        """Remember how things are."""
        ...

    def after(self) -> Iterable[Effect] | Awaitable[Iterable[Effect]]:
        """Return what is different from `before`."""
        ...


WitnessFactory = Callable[[WitnessInput], Witness | None]
"""Makes a witness for one run, or None when it has nothing to look at there. A class will do."""
