"""The folder that file tools are confined to, and the only way to resolve or open a path in it."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from mcp_ops.gate import Denied, Refuse
from mcp_ops.ops.guards.secret_names import DEFAULT, SecretNames
from mcp_ops.ops.rules import (
    PATH_HARDLINK,
    PATH_IS_DIRECTORY,
    PATH_NOT_FOUND,
    PATH_OUTSIDE,
    PATH_SECRET,
    PATH_SPECIAL,
)
from mcp_ops.ops.walk import MAX_LINKS, Found, Outside, Place, Walk, describe
from mcp_ops.text import one_line

READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""How a file is opened: never through a link, never waiting for a FIFO, never becoming a terminal."""


@dataclass(frozen=True)
class Workspace:
    """A folder and the policy for what is in it.

    Raises:
        ValueError: `root` is not an existing folder.
    """

    root: Path
    """Absolute and resolved."""
    allow_hardlinks: bool = False
    secret_names: SecretNames = DEFAULT

    def __post_init__(self) -> None:
        if not self.root.is_dir():
            raise ValueError(f"the workspace {str(self.root)!r} is not an existing folder")
        object.__setattr__(self, "root", self.root.resolve())

    def look(self, given: str, refuse: Refuse, *, may_be_secret: bool = False) -> Found:
        """Resolve a path without opening what it names.

        Args:
            given: The path as the model wrote it.
            refuse: How rules say no.
            may_be_secret: Do not refuse secret names; for tools that show names and sizes only.

        Raises:
            Denied: `path.outside`, `path.secret`.
        """
        with self._place(given, refuse) as place:
            if not may_be_secret:
                self.refuse_secret(given, place.found, refuse)
            return place.found

    def refuse_secret(self, given: str, found: Found, refuse: Refuse) -> None:
        """Refuse a path that is secret by its given or its resolved name.

        Raises:
            Denied: `path.secret`.
        """
        names = {given, str(found.resolved)}
        pattern = next(filter(None, map(self.secret_names.pattern_for, sorted(names))), None)
        if pattern is not None:
            refuse(PATH_SECRET, f"{_shown(given)} is a secret file: its name, or its folder's, fits {pattern!r}")

    def refuse_unreadable(self, given: str, found: Found, refuse: Refuse) -> None:
        """Refuse a path whose content may not be read although it is inside and has no secret name.

        Raises:
            Denied: `path.special`, `path.hardlink`.
        """
        if found.kind == "special":
            refuse(PATH_SPECIAL, f"{_shown(given)} is not a regular file")
        if found.kind == "file" and found.nlink > 1 and not self.allow_hardlinks:
            refuse(PATH_HARDLINK, f"{_shown(given)} is a hard link: the file has {found.nlink} names")

    def open(self, given: str, refuse: Refuse) -> BinaryIO:
        """Open a regular file for reading; what was judged is what is opened.

        Raises:
            Denied: Any rule of `path.*` but `path.too_large` and `path.binary`.
        """
        for _ in range(MAX_LINKS):
            with self._place(given, refuse) as place:
                self.refuse_secret(given, place.found, refuse)
                _refuse_no_file(given, place.found)
                self.refuse_unreadable(given, place.found, refuse)
                try:
                    descriptor = os.open(place.name, READ_FLAGS, dir_fd=place.parent)
                except OSError as error:
                    if error.errno == errno.ELOOP:
                        continue
                    raise _not_found(given, os.strerror(error.errno or 0).lower()) from error
            try:
                opened = describe(os.fstat(descriptor), place.found.resolved)
                _refuse_no_file(given, opened)
                self.refuse_unreadable(given, opened, refuse)
            except Denied:
                os.close(descriptor)
                raise
            return os.fdopen(descriptor, "rb")
        raise _not_found(given, "it keeps changing")

    @contextmanager
    def _place(self, given: str, refuse: Refuse) -> Iterator[Place]:
        walk = Walk(self.root)
        try:
            try:
                _refuse_text(given)
                place = walk.to(given)
            except Outside as outside:
                refuse(PATH_OUTSIDE, f"{_shown(given)} {outside}")
                place = walk.unconfined(given)
            yield place
        finally:
            walk.close()


def _refuse_text(given: str) -> None:
    if "\0" in given:
        raise Outside("holds a NUL character")
    if given.startswith("/"):
        raise Outside("is absolute")
    if given.startswith("~"):
        raise Outside(f"begins with '~'; a file of that name is './{one_line(given, 40)}'")
    if ".." in given.split("/"):
        raise Outside("holds '..'")


def _refuse_no_file(given: str, found: Found) -> None:
    if found.kind == "missing":
        raise _not_found(given)
    if found.kind == "directory":
        raise Denied(PATH_IS_DIRECTORY, f"{_shown(given)} is a folder", PATH_IS_DIRECTORY.hint)


def _not_found(given: str, why: str = "") -> Denied:
    reason = f"there is no readable file {_shown(given)}" + (f": {why}" if why else "")
    return Denied(PATH_NOT_FOUND, reason, PATH_NOT_FOUND.hint)


def _shown(given: str) -> str:
    return f"'{one_line(given, 80)}'"
