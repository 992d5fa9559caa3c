"""What a wall is: something of the kernel's around a child, whatever the guards allowed."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mcp_ops.ops.wall.network import drop_privileges


@dataclass(frozen=True)
class Start:
    """A child that is to be started."""

    program: Path
    """Absolute."""
    arguments: tuple[str, ...]
    folder: Path
    """Working folder, absolute."""
    reads: Path | None
    """The one folder that it may read; None: only what its program needs to start."""


@dataclass(frozen=True)
class Walled:
    """How to start it behind the wall."""

    program: Path
    arguments: tuple[str, ...]
    enter: Callable[[], None]
    """Drops all privileges and enters the wall. Runs in the child between fork and exec: it may neither import, nor
    log, nor take a lock."""
    forks: bool = False
    """Whether the wall itself needs a second process, so that a limit of none would stop it."""


class Wall(Protocol):
    """Landlock, bubblewrap, or none."""

    @property
    def name(self) -> str:
        """In words for traces and people; begins with `absent` where there is none."""

    @property
    def stands(self) -> bool:
        """Whether there is one."""

    def around(self, start: Start) -> AbstractContextManager[Walled]:
        """Build the wall for one child, which must be started before the context is left.

        Raises:
            OSError: It cannot be built; the child must not be started without it.
        """


@dataclass(frozen=True)
class NoWall:
    """Children are confined by what the guards allow and by the limits of `run_child` only."""

    why: str
    stands: bool = False

    @property
    def name(self) -> str:
        """Say that there is none, and why."""
        return f"absent: {self.why}; the option tables and path checks are the only wall"

    @contextmanager
    def around(self, start: Start) -> Iterator[Walled]:
        """Let it start as it is, without privileges."""
        yield Walled(start.program, start.arguments, drop_privileges)
