"""The engine of `search_files`: walks open folders, follows no link, and stays within its limits."""

import os
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from mcp_ops.gate import MAX_REPLY_BYTES, Denied, Refuse
from mcp_ops.ops.guards.search import SearchPlan
from mcp_ops.ops.walk import SNIFF_BYTES, Found, describe
from mcp_ops.ops.workspace import READ_FLAGS, Workspace
from mcp_ops.text import clean, one_line

MAX_HITS = 100
MAX_FILES = 10_000
MAX_NAMES = 200_000
"""Most names of files and folders looked at, whether they fit the glob or not."""
MAX_BYTES = 32 * 1024 * 1024
"""Most bytes of content looked at in one search."""
MAX_CPU_SECONDS = 4.0
MAX_DEPTH = 40
TEXT_BYTES = MAX_REPLY_BYTES - 512
"""Most bytes of hits; the rest of the reply says what was searched and what was not."""
LINE_WORK = 200_000_000
"""Most bytes times RE2 instructions spent on one line; a longer line is searched in its first part only."""
CLOCK_WORK = 10_000_000
"""Bytes times instructions between two looks at the clock."""
SHOWN_BYTES = 300
"""Most bytes shown of one line, around the match."""
FOLDERS_LEFT_OUT = frozenset({".git"})
"""Version control's own store: packed objects, and remotes that may hold credentials."""

_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _Stop(Exception):
    """A limit is reached; the message names it."""


@dataclass
class Search:
    """One search: what it may use, and what it has found."""

    plan: SearchPlan
    workspace: Workspace
    refuse: Refuse
    hits: list[str] = field(default_factory=list)
    """`path:lineno: line`, cleaned."""
    files: int = 0
    """Files whose content was searched."""
    left_out: Counter[str] = field(default_factory=Counter)
    """What fits the glob and was not searched, by reason."""
    stopped: str | None = None
    """The limit that ended the search early."""
    _bytes_left: int = MAX_BYTES
    _room: int = TEXT_BYTES
    _deadline: float = 0.0
    _work: int = 0
    _names: int = 0

    def run(self) -> "Search":
        """Search until done or a limit is reached."""
        self._deadline = time.thread_time() + MAX_CPU_SECONDS
        try:
            self._enter(None, str(self.plan.folder), ())
        except _Stop as stop:
            self.stopped = str(stop)
        return self

    def _enter(self, parent: int | None, name: str, path: tuple[str, ...]) -> None:
        try:
            folder = os.open(name, _OPEN_FOLDER, dir_fd=parent)
        except OSError:
            self.left_out["unreadable folder"] += 1
            return
        try:
            self._folder(folder, path)
        finally:
            os.close(folder)

    def _folder(self, folder: int, path: tuple[str, ...]) -> None:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
        self._names += len(entries)
        if self._names > MAX_NAMES:
            raise _Stop(f"{MAX_NAMES} names")
        for entry in entries:
            here = (*path, entry.name)
            if entry.is_dir(follow_symlinks=False):
                if entry.name in FOLDERS_LEFT_OUT or not self.plan.glob.may_fit_below(here):
                    continue
                if len(here) > MAX_DEPTH:
                    self.left_out["too deep folder"] += 1
                else:
                    self._enter(folder, entry.name, here)
            elif self.plan.glob.fits("/".join(here)):
                self._entry(folder, entry, "/".join(here))

    def _entry(self, folder: int, entry: "os.DirEntry[str]", path: str) -> None:
        if entry.is_symlink():
            self.left_out["link"] += 1
            return
        if not entry.is_file(follow_symlinks=False):
            self.left_out["special file"] += 1
            return
        try:
            self.workspace.refuse_secret(path, Found("file", PurePosixPath(path)), self.refuse)
        except Denied:
            self.left_out["secret file"] += 1
            return
        if self.files >= MAX_FILES:
            raise _Stop(f"{MAX_FILES} files")
        try:
            data = self._read(folder, entry.name, path)
        except OSError:
            self.left_out["unreadable file"] += 1
        except Denied:
            self.left_out["hard link"] += 1
        else:
            self._search(path, data)

    def _read(self, folder: int, name: str, path: str) -> bytes:
        descriptor = os.open(name, READ_FLAGS, dir_fd=folder)
        try:
            found = describe(os.fstat(descriptor), PurePosixPath(path))
            if found.kind == "directory":
                raise IsADirectoryError(path)
            self.workspace.refuse_unreadable(path, found, self.refuse)
            with os.fdopen(descriptor, "rb", closefd=False) as stream:
                data = stream.read(SNIFF_BYTES)
                if b"\0" not in data:
                    data += stream.read(max(0, self._bytes_left - len(data)))
                    if stream.read(1):
                        self.left_out["file end"] += 1
        finally:
            os.close(descriptor)
        return data

    def _search(self, path: str, data: bytes) -> None:
        if b"\0" in data[:SNIFF_BYTES]:
            self.left_out["binary file"] += 1
            return
        self.files += 1
        self._bytes_left -= len(data)
        shown = one_line(self.plan.shown(path))
        for number, line in enumerate(data.decode("utf-8-sig", "replace").encode().split(b"\n"), start=1):
            text = line.removesuffix(b"\r")
            start = self._match(text)
            if start is not None:
                self._hit(f"{shown}:{number}: {clean(_around(text, start))}")
        if self._bytes_left <= 0:
            raise _Stop(f"{MAX_BYTES // (1024 * 1024)} MB of text")

    def _match(self, line: bytes) -> int | None:
        """Return where the pattern first matches, in bytes."""
        size = self.plan.regexp.programsize
        longest = max(4096, LINE_WORK // size)
        if len(line) > longest:
            self.left_out["line end"] += 1
            line = line[:longest]
        self._work += (len(line) + 1) * size
        if self._work > CLOCK_WORK:
            self._work = 0
            if time.thread_time() > self._deadline:
                raise _Stop(f"{MAX_CPU_SECONDS:.0f} s of computing")
        found = self.plan.regexp.search(line)
        return None if found is None else int(found.start())

    def _hit(self, line: str) -> None:
        self._room -= len(line.encode()) + 1
        if self._room < 0:
            raise _Stop("a full reply")
        if len(self.hits) >= MAX_HITS:
            raise _Stop(f"{MAX_HITS} hits")
        self.hits.append(line)


def _around(line: bytes, start: int) -> str:
    """Return the part of a line that is shown, cut on character boundaries."""
    if len(line) <= SHOWN_BYTES:
        return line.decode(errors="replace")
    begin = max(0, min(start - SHOWN_BYTES // 3, len(line) - SHOWN_BYTES))
    end = begin + SHOWN_BYTES
    return ("…" if begin else "") + line[begin:end].decode(errors="ignore") + ("…" if end < len(line) else "")
