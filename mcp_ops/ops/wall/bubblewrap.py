"""The wall of a program: bwrap(1) gives a child a file system in which there is nothing but what it needs.

For kernels without Landlock. What it stops is the same but for two things: a program that lies in the workspace can
be executed (it finds the same wall around it), and a child may start processes, which end with it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mcp_ops.ops.trusted import TRUSTED_FOLDERS, trusted_program
from mcp_ops.ops.wall.base import Start, Walled
from mcp_ops.ops.wall.needs import needs_of

_ALONE = (
    *("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
    *("--die-with-parent", "--cap-drop", "ALL"),
)


@dataclass(frozen=True)
class Bubblewrap:
    """Namespaces of every kind, and read-only mounts of what a child needs to read one folder."""

    bwrap: Path
    """Absolute."""
    name: str = "bubblewrap"
    stands: bool = True

    @contextmanager
    def around(self, start: Start) -> Iterator[Walled]:
        """Put bwrap in front of the program.

        Raises:
            OSError: There is no such program.
        """
        needs = needs_of(start.program, start.arguments)
        words = [*_ALONE]
        if start.reads is not None:
            words += ["--ro-bind", str(start.reads), str(start.reads)]
        for path in (*needs.executed, *needs.read):
            words += ["--ro-bind-try", str(path), str(path)]
        words += ["--remount-ro", "/", "--chdir", str(start.folder), "--", _called(start.program)]
        yield Walled(self.bwrap, (*words, *start.arguments), _keep_privileges, forks=True)


def find_bubblewrap() -> Bubblewrap | str:
    """Return this machine's bubblewrap, or in a few words why there is none."""
    bwrap = trusted_program("bwrap")
    return "bubblewrap is not installed" if bwrap is None else Bubblewrap(bwrap)


def _keep_privileges() -> None:
    """Runs in the child. bwrap needs what it can get to build the namespaces, and drops it before it executes."""


def _called(program: Path) -> str:
    """Programs put into their errors what they were called by, so call them by name where the name is enough."""
    return program.name if program.parent in TRUSTED_FOLDERS else str(program)
