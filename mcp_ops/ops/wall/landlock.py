"""The wall of Linux itself, landlock(7): a process gives up rights that neither it nor a child of it gets back.

Rights that a ruleset handles are gone except beneath paths that a rule names, and paths are told apart by inode: a
link that is exchanged under a running child leads it nowhere.
"""

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from stat import S_ISDIR

from mcp_ops.ops.wall.base import Start, Walled
from mcp_ops.ops.wall.needs import needs_of
from mcp_ops.ops.wall.network import drop_privileges

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""Numbers of the system calls, the same on every architecture but Alpha."""
_ASK_VERSION = 1
_PATH_BENEATH = 1

_EXECUTE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 2, 1 << 3
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
"""From which version on how many rights over files there are: moving, truncating and device control came later."""
_TCP_SINCE, _TCP_RIGHTS = 4, 0b11
"""Binding and connecting."""
_SCOPES_SINCE, _SCOPES = 6, 0b11
"""Abstract sockets and signals of those outside."""
_NEWEST = 7
"""The newest version whose rights are all known here."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_syscall: Callable[..., int] | None = getattr(_LIBC, "syscall", None)


@dataclass(frozen=True)
class Landlock:
    """All rights that this version of Landlock knows, less those that a child needs to read one folder."""

    abi: int
    stands: bool = True

    @property
    def name(self) -> str:
        """Name the version, which says which rights are handled."""
        return f"landlock (ABI {self.abi})"

    @contextmanager
    def around(self, start: Start) -> Iterator[Walled]:
        """Build the ruleset here, so that the child has only to enter it.

        Raises:
            OSError: It cannot be built.
        """
        ruleset = _create_ruleset(self.abi)
        try:
            needs = needs_of(start.program, start.arguments)
            _allow(ruleset, _EXECUTE | _READ_FILE, needs.executed)
            _allow(ruleset, _READ_FILE | _READ_DIR, needs.read)
            _allow(ruleset, _READ_FILE | _READ_DIR, [start.reads] if start.reads else [])
            yield Walled(start.program, start.arguments, partial(_enter, ruleset, needs.own))
        finally:
            os.close(ruleset)


def find_landlock() -> Landlock | str:
    """Return this kernel's Landlock, or in a few words why there is none."""
    if sys.platform != "linux" or _syscall is None:
        return "Landlock exists on Linux only"
    abi = _syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)
    if abi > 0:
        return Landlock(min(abi, _NEWEST))
    reasons = {
        errno.ENOSYS: "this kernel has no Landlock, or a seccomp filter hides it",
        errno.EOPNOTSUPP: "Landlock is switched off in this kernel",
    }
    number = ctypes.get_errno()
    return reasons.get(number, f"Landlock cannot be used: {os.strerror(number).lower()}")


def _create_ruleset(abi: int) -> int:
    files = (1 << max(count for since, count in _FILE_RIGHTS.items() if since <= abi)) - 1
    handled = [files]
    if abi >= _TCP_SINCE:
        handled.append(_TCP_RIGHTS)
    if abi >= _SCOPES_SINCE:
        handled.append(_SCOPES)
    attributes = struct.pack(f"={len(handled)}Q", *handled)
    return _called(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)


def _allow(ruleset: int, rights: int, paths: Iterable[Path]) -> None:
    """Allow `rights` beneath paths; one that is not there needs no rule."""
    for path in paths:
        with suppress(FileNotFoundError):
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
            try:
                fitting = rights if S_ISDIR(os.fstat(handle).st_mode) else rights & ~_READ_DIR
                _called(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", fitting, handle), 0)
            finally:
                os.close(handle)


def _called(number: int, *arguments: object) -> int:
    if _syscall is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    result = _syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"landlock: {os.strerror(ctypes.get_errno()).lower()}")
    return result


def _enter(ruleset: int, own: tuple[Path, ...]) -> None:
    """Runs in the child. Only here it is known which files of /proc are its own."""
    drop_privileges()
    _allow(ruleset, _READ_FILE, own)
    _called(_RESTRICT_SELF, ruleset, 0)
