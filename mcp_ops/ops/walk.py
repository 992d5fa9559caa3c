"""Walking a path one component at a time, so that no link and no exchange of folders can lead outside.

The kernel never follows a link here: links are read as text and their targets walked the same way. Each folder on the
way is held open, so what was looked at is what is entered, and the resolved path is known without asking again.
"""

import os
import stat
from collections import deque
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

MAX_LINKS = 40
"""Links followed on the way to one path, as in the kernel."""

SNIFF_BYTES = 8192
"""A NUL byte within so many first bytes makes a file binary, as for git and grep."""

Kind = Literal["file", "directory", "missing", "special"]
"""What a path is: `special` is a FIFO, a device or a socket; `missing` covers a link loop and an overlong name too."""

OPEN_DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_LINK_OUT = "is, or goes through, a link that leads outside the workspace"


class Outside(Exception):
    """A path leads outside the root; the message says how, as the end of a sentence that begins with the path."""


@dataclass(frozen=True)
class Found:
    """What one path names, with every link followed."""

    kind: Kind
    resolved: PurePosixPath
    """Relative to the root, without links and `..`; for a missing path as far as it could be followed."""
    size: int = 0
    """In bytes."""
    nlink: int = 1
    """Names of the file; more than one means hard links."""


@dataclass(frozen=True)
class Place:
    """Where a path ends: an open parent folder and a name in it that was no link when it was looked at."""

    parent: int
    """File descriptor, closed with the walk."""
    name: str
    """`.` for a folder, whose `parent` is the folder itself."""
    found: Found


def describe(status: os.stat_result, resolved: PurePosixPath) -> Found:
    """Return what a stat result says about a path that is no link."""
    if stat.S_ISDIR(status.st_mode):
        return Found("directory", resolved, status.st_size)
    kind: Kind = "file" if stat.S_ISREG(status.st_mode) else "special"
    return Found(kind, resolved, status.st_size, status.st_nlink)


class Walk:
    """One walk from `root`. Close it when the place it found is no longer needed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._names: list[str] = []
        self._folders = [os.open(root, OPEN_DIRECTORY)]

    def close(self) -> None:
        """Close every folder that the walk holds open."""
        for folder in self._folders:
            os.close(folder)
        self._folders.clear()

    def to(self, given: str) -> Place:
        """Walk to `given`.

        Raises:
            Outside: The path, or a link on its way, leads outside the root.
        """
        pending = deque(_components(given))
        links = 0
        name = ""
        while pending and links <= MAX_LINKS:
            name = pending.popleft()
            if name == "..":
                self._leave()
                continue
            try:
                status = os.stat(name, dir_fd=self._folders[-1], follow_symlinks=False)
                if stat.S_ISLNK(status.st_mode):
                    links += 1
                    pending.extendleft(reversed(self._target(name)))
                elif stat.S_ISDIR(status.st_mode):
                    self._enter(name)
                elif pending or given.endswith("/"):
                    return self._missing(name)
                else:
                    return Place(self._folders[-1], name, describe(status, self._resolved(name)))
            except (OSError, UnicodeEncodeError):
                return self._missing(name)
        return self._missing(name) if pending or not given else self._arrived()

    def unconfined(self, given: str) -> Place:
        """Resolve `given` as the kernel would, for a server whose confinement was switched off to test a suite."""
        real = Path(os.path.realpath(self._root / given.replace("\0", "")))
        resolved = PurePosixPath(real.relative_to(self._root) if real.is_relative_to(self._root) else real)
        try:
            self._folders.append(os.open(real.parent, OPEN_DIRECTORY))
            name = real.name or "."
            status = os.stat(name, dir_fd=self._folders[-1], follow_symlinks=False)
        except OSError:
            return Place(self._folders[0], ".", Found("missing", resolved))
        return Place(self._folders[-1], name, describe(status, resolved))

    def _enter(self, name: str) -> None:
        self._folders.append(os.open(name, OPEN_DIRECTORY, dir_fd=self._folders[-1]))
        self._names.append(name)

    def _leave(self) -> None:
        if not self._names:
            raise Outside(_LINK_OUT)
        self._names.pop()
        os.close(self._folders.pop())

    def _target(self, link: str) -> list[str]:
        target = os.readlink(link, dir_fd=self._folders[-1])
        if not target.startswith("/"):
            return _components(target)
        root = str(self._root).rstrip("/")
        if target != root and not target.startswith(root + "/"):
            raise Outside(_LINK_OUT)
        while self._names:
            self._leave()
        return _components(target[len(root) :])

    def _arrived(self) -> Place:
        here = self._folders[-1]
        return Place(here, ".", describe(os.fstat(here), self._resolved()))

    def _missing(self, name: str) -> Place:
        return Place(self._folders[-1], name, Found("missing", self._resolved(name)))

    def _resolved(self, name: str = "") -> PurePosixPath:
        return PurePosixPath(*self._names, name)


def _components(path: str) -> list[str]:
    return [component for component in path.split("/") if component not in ("", ".")]
