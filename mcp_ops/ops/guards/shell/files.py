"""File operands: what a program may be given, and what a glob stands for."""

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_ops.gate import Denied, Refuse
from mcp_ops.ops.guards.globs import GlobError, leads_outside
from mcp_ops.ops.guards.shell.expansion import Expansion
from mcp_ops.ops.guards.shell.options import Access
from mcp_ops.ops.guards.shell.rules import SHELL_GLOB, SHELL_OPERAND, SHELL_SYNTAX
from mcp_ops.ops.guards.shell.words import Word
from mcp_ops.ops.rules import PATH_TOO_LARGE
from mcp_ops.ops.walk import Found
from mcp_ops.ops.workspace import Workspace
from mcp_ops.text import one_line

MAX_WHOLE_FILE_BYTES = 64 * 1024 * 1024

_DESTRUCTIVE = (
    "rm rmdir unlink shred wipefs dd mv truncate mkfs fdisk parted mkswap chmod chown chgrp chattr sudo doas su "
    "kill pkill killall reboot shutdown halt poweroff systemctl crontab"
)
DESTRUCTIVE = frozenset(_DESTRUCTIVE.split())
"""Names of programs that destroy or take over; nothing that bears one is worth reading."""


@dataclass(frozen=True)
class Files:
    """File operands as the program gets them."""

    names: tuple[str, ...]
    left_out: int = 0
    """Names that a glob fits and that may not be shown or read."""
    found: tuple[Found, ...] = ()
    """What each name is, if it was looked at."""


class FileGuard:
    """Judges the file operands of one program in one workspace."""

    def __init__(self, workspace: Workspace, access: Access, refuse: Refuse) -> None:
        self.workspace = workspace
        self.access = access
        self.refuse = refuse

    def check(self, given: str, *, variable: bool = False) -> Found:
        """Judge one operand as it was written, and say what it names.

        Raises:
            Denied: `shell.syntax`, `shell.operand`, `path.*`.
        """
        if variable:
            self.refuse(
                SHELL_SYNTAX,
                f"{one_line(given, 60)!r} names a variable, and variables are not expanded",
                "Write the path itself, relative to the workspace.",
            )
        if given.rstrip("/").rpartition("/")[2] in DESTRUCTIVE:
            self.refuse(SHELL_OPERAND, f"{one_line(given, 60)!r} is the name of a destructive program")
        return self._judge(given, self.refuse)

    def _judge(self, given: str, refuse: Refuse, *, may_be_secret: bool | None = None) -> Found:
        only_names = self.access is Access.NAMES
        found = self.workspace.look(given, refuse, may_be_secret=only_names if may_be_secret is None else may_be_secret)
        if not only_names:
            self.workspace.refuse_unreadable(given, found, refuse)
        if self.access is Access.WHOLE and found.kind == "file" and found.size > MAX_WHOLE_FILE_BYTES:
            size = f"{found.size // (1024 * 1024)} MB"
            refuse(PATH_TOO_LARGE, f"{one_line(given, 60)!r} has {size}, and this program would read all of it")
        return found

    def expand(self, words: Sequence[Word]) -> Files:
        """Judge operands, and replace each glob by the names that it fits.

        Raises:
            Denied: `shell.glob`, and what `check` raises.
        """
        found: list[tuple[str, Found]] = []
        left_out = 0
        for word in words:
            if word.glob is None or leads_outside(word.text) is not None:
                found.append((word.text, self.check(word.text, variable=word.variable)))
            else:
                fitting, missing = self._fitting(word.text, word.glob)
                found += fitting
                left_out += missing
        return Files(tuple(name for name, _ in found), left_out, tuple(what for _, what in found))

    def _fitting(self, text: str, glob: str) -> tuple[list[tuple[str, Found]], int]:
        """Return the names that a glob fits and that may be given, and how many may not.

        A glob that fits nothing stands for itself, as in a shell, if there is a file of that name: `app/[id]/page.ts`.
        """
        fitting: list[tuple[str, Found]] = []
        left_out = 0
        expansion = Expansion(self.workspace, self.refuse)
        try:
            for name in expansion.of(glob):
                try:
                    fitting.append((name, self._judge(name, self.refuse.leaving_out, may_be_secret=False)))
                except Denied:
                    left_out += 1
            why_not = (
                f"fits only names that may not be read ({left_out})" if left_out else "fits no name in the workspace"
            )
        except GlobError as error:
            fitting, why_not = [], str(error)
        if not fitting:
            if left_out or not expansion.is_there(text):
                self.refuse(SHELL_GLOB, f"the glob {one_line(text, 60)!r} {why_not}")
            fitting.append((text, self._judge(text, self.refuse)))
        return fitting, left_out
