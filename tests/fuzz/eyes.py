"""The lab under watch: what a command that was run has changed, read or said that it must not."""

import asyncio
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from calls import Reply, ask
from shelllab import OUTSIDE, SECRET, build_lab, witness

from mcp_ops.gate import MAX_REPLY_BYTES
from mcp_ops.ops.context import OpsContext
from mcp_ops.ops.tools.run_shell import RUN_SHELL
from mcp_ops.ops.workspace import Workspace
from mcp_ops.text import find_value

MARKS = (SECRET, OUTSIDE, SECRET[-4:], OUTSIDE[-4:], "-CANARY-")
"""What stands in secret files and outside, and pieces of it that no name and no other file holds."""
STOPPED_BY_THE_WALL = ("Permission denied", "Operation not permitted", "Read-only file system")
"""What a program says when only the wall of the kernel kept it from something."""
_HASHED_BYTES = 1024 * 1024


class Lab:
    """The lab of the shell tests, without what makes a tiny command slow, and eyes on all of it."""

    def __init__(self, folder: Path) -> None:
        self.ws = build_lab(folder)
        # Three gigabytes to count take longer than anything here should; the other link leads out of the lab.
        for name in ("sparse.img", "link_passwd"):
            (self.ws / name).unlink()
        self._guarded = [path for path in self.ws.parent.rglob("*") if _is_guarded(path)]
        self._contents = self._hashes()
        self._begin()

    def run(self, command: str, *, off: Sequence[str] = ()) -> Reply:
        """Give a command to `run_shell`, confined as it always is, with the rules `off` switched off."""
        return asyncio.run(ask(RUN_SHELL, OpsContext(Workspace(self.ws)), {"command": command}, off=off))

    def faults(self, reply: Reply) -> list[str]:
        """Return what must not have happened and did, each in a few words."""
        found = [f"says {mark}" for mark in MARKS if find_value(reply.text, mark)]
        found += [f"was stopped by the wall alone: {said}" for said in STOPPED_BY_THE_WALL if said in reply.text]
        if len(reply.text.encode()) > MAX_REPLY_BYTES:
            found.append("says more than a reply may hold")
        if reply.verdict != "executed":
            found.append(f"did not end by itself: {reply.verdict}")
        if self.changes():
            found.append(f"changed {self.changes()}")
        if any(path.stat().st_atime_ns for path in self._guarded):
            found.append("read a secret file or one outside")
            self._begin()
        return found

    def notes_reads(self) -> bool:
        """Whether the file system notes when a file is read."""
        self._guarded[0].read_bytes()
        noted = self._guarded[0].stat().st_atime_ns != 0
        self._begin()
        return noted

    def _begin(self) -> None:
        """Let every guarded file be one that was never read, and take that as the state that must not change."""
        for path in self._guarded:
            os.utime(path, ns=(0, path.stat().st_mtime_ns))
        self._before = witness(self.ws)

    def changes(self) -> list[str]:
        """Return the paths of the lab whose state is not what it was."""
        now = witness(self.ws)
        return sorted(path for path in self._before.keys() | now.keys() if self._before.get(path) != now.get(path))

    def contents_changed(self) -> bool:
        """Whether any file holds other bytes than before: slow, and for once at the end."""
        return self._hashes() != self._contents

    def _hashes(self) -> dict[str, str]:
        files = [path for path in self.ws.parent.rglob("*") if path.is_file() and not path.is_symlink()]
        small = [path for path in files if path.stat().st_size <= _HASHED_BYTES and path not in self._guarded]
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in small}


def _is_guarded(path: Path) -> bool:
    """Whether nobody may read a file: it is outside, or holds a secret."""
    return path.is_file() and not path.is_symlink() and any(mark.encode() in _head(path) for mark in (SECRET, OUTSIDE))


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4096)
