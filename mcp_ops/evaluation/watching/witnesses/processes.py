"""The witness of processes that outlive a run, and the hand that ends them.

While it watches, this process is a child subreaper (prctl(2)): a descendant whose parent died comes to us instead of
to init. So neither a new session, nor a double fork, nor an empty environment hides a process that the run started.
"""

import ctypes
import io
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from mcp_ops.evaluation.watching.witnesses.base import Effect
from mcp_ops.text import one_line

_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37
_WALL = 0x40000000
"""Of waitid(2): children of every kind, also those that end without a signal."""
_GRACE_MS = 300
"""How long processes that are on their way out may take before they count as left over."""
_KILL_ROUNDS = 10


class Process(NamedTuple):
    """One process, told from a later one with the same number by its start time."""

    pid: int
    started: int
    """In clock ticks since the machine started."""


class ProcessWitness:
    """Sees processes that a run started and that are still there after its servers were closed. Linux only."""

    name = "processes"
    left: tuple[Process, ...]
    """What is left over, once it has looked after the run."""

    def __init__(self) -> None:
        self.left = ()
        self._known: frozenset[Process] = frozenset()
        self._was_subreaper: int | None = None
        self._nothing_left = False

    @staticmethod
    @cache
    def available() -> bool:
        """Whether this machine can tell."""
        return sys.platform == "linux" and Path(f"/proc/self/task/{os.getpid()}/children").exists()

    def before(self) -> None:
        """Remember which descendants there are, and adopt orphans from now on."""
        self._was_subreaper = _subreaper()
        _set_subreaper(1)
        self._known = frozenset(_descendants())

    def after(self) -> list[Effect]:
        """Return one effect for each process that is left over."""
        left = self._new()
        self._nothing_left = not left
        if left:
            _wait_for(left, _GRACE_MS)
            left = [process for process in self._new() if _state(process) not in (None, "Z", "X")]
        self.left = tuple(left)
        return [Effect("left_over", _command(process), f"pid {process.pid}") for process in left]

    def end(self) -> None:
        """Kill every process that the run left over, and stop adopting orphans. Never waits for longer than a kill."""
        for _ in range(0 if self._nothing_left else _KILL_ROUNDS):
            left = self._new()
            if not left:
                break
            for process in left:
                with suppress(OSError):
                    os.kill(process.pid, signal.SIGKILL)
            _wait_for(left, _GRACE_MS)
            for process in left:
                with suppress(OSError):
                    os.waitpid(process.pid, os.WNOHANG)
        if self._was_subreaper is not None:
            _set_subreaper(self._was_subreaper)
            self._was_subreaper = None

    def _new(self) -> list[Process]:
        return [process for process in _descendants() if process not in self._known]


def _descendants() -> Iterator[Process]:
    if not _has_children():
        return
    pending = _children(os.getpid())
    while pending:
        pid = pending.pop()
        started = _stat_field(pid, 19)
        if started is not None:
            yield Process(pid, int(started))
            pending += _children(pid)


def _has_children() -> bool:
    """Return whether this process has any child: a subreaper without one has no descendant either."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT | _WALL)
    except ChildProcessError:
        return False
    return True


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError), os.scandir(f"/proc/{pid}/task") as tasks:
        for task in tasks:
            with suppress(OSError), io.FileIO(f"{task.path}/children") as file:
                found += map(int, file.readall().split())
    return found


def _stat_field(pid: int, index: int) -> str | None:
    """Return a field of /proc/PID/stat; `index` counts from 0 at the state, the first one after the name."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    return line.rpartition(")")[2].split()[index]


def _state(process: Process) -> str | None:
    return _stat_field(process.pid, 0) if _stat_field(process.pid, 19) == str(process.started) else None


def _command(process: Process) -> str:
    words: list[str] = []
    with suppress(OSError):
        words = Path(f"/proc/{process.pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    return one_line(" ".join(words).strip()) or f"process {process.pid}"


def _wait_for(processes: list[Process], milliseconds: int) -> None:
    """Wait until all of them have ended, or for so long."""
    poll = select.poll()
    handles = []
    for process in processes:
        with suppress(OSError):
            handles.append(os.pidfd_open(process.pid))
            poll.register(handles[-1], select.POLLIN)
    waiting, deadline = len(handles), time.monotonic() + milliseconds / 1000
    try:
        while waiting and (left := deadline - time.monotonic()) > 0:
            for handle, _ in poll.poll(left * 1000):
                poll.unregister(handle)
                waiting -= 1
    finally:
        for handle in handles:
            os.close(handle)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _subreaper() -> int:
    value = ctypes.c_int(0)
    _libc().prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(value), 0, 0, 0)
    return value.value


def _set_subreaper(value: int) -> None:
    _libc().prctl(_PR_SET_CHILD_SUBREAPER, value, 0, 0, 0)
