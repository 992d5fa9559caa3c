"""A child's empty network and its missing capabilities."""

import ctypes
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Literal

from mcp_ops.ops.trusted import trusted_program

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_NO_CAPABILITIES = struct.pack("=6I", 0, 0, 0, 0, 0, 0)
_OF_THIS_PROCESS = struct.pack("=Ii", 0x20080522, 0)
"""What capset(2) takes: version 3 and the process itself, then effective, permitted and inheritable twice."""
_LIBC = ctypes.CDLL(None, use_errno=True)
_unshare: Callable[[int], int] | None = getattr(_LIBC, "unshare", None)
_prctl: Callable[..., int] | None = getattr(_LIBC, "prctl", None)
_capset: Callable[[bytes, bytes], int] | None = getattr(_LIBC, "capset", None)


def drop_privileges() -> None:
    """Runs in the child: what it executes has no capability, so that a child of root cannot set the clock either."""
    if _prctl is None:
        return
    capability = 0
    while _prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    _prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # A program of root gets back what is inheritable, and everybody what is ambient, whatever the bounding set says.
    if _capset is not None:
        _capset(_OF_THIS_PROCESS, _NO_CAPABILITIES)


def confine(isolate: Callable[[], None] | None, enter_wall: Callable[[], None]) -> None:
    """Runs in the child between fork and exec, in this order: behind the wall no namespace can be made."""
    if isolate is not None:
        isolate()
    enter_wall()


def children_network() -> Literal["isolated", "unchecked"]:
    """Say whether a child without leave for the network gets an empty network namespace on this machine."""
    return "unchecked" if isolation() is None else "isolated"


@lru_cache(maxsize=1)
def isolation() -> Callable[[], None] | None:
    """Return what puts a child into an empty network namespace, tried once on a real child; None if nothing does."""
    if sys.platform != "linux" or _unshare is None:
        return None
    isolate = partial(_new_network, _CLONE_NEWNET)
    if os.geteuid() != 0 or not _is_alone(isolate):
        isolate = partial(_new_network, _CLONE_NEWNET | _CLONE_NEWUSER)
        if not _is_alone(isolate):
            return None
    return isolate


def _is_alone(isolate: Callable[[], None]) -> bool:
    cat = trusted_program("cat")
    if cat is None:
        return False
    try:
        shown = subprocess.run(
            [cat, "/proc/self/net/dev"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={},
            timeout=30,
            check=True,
            preexec_fn=isolate,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return {line.split(b":")[0].strip() for line in shown.stdout.splitlines()[2:]} == {b"lo"}


def _new_network(flags: int) -> None:
    """Runs in the child. In a new user namespace it keeps its own user and group."""
    user, group = os.geteuid(), os.getegid()
    if _unshare is None or _unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    if flags & _CLONE_NEWUSER:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")


def _write(path: str, text: str) -> None:
    handle = os.open(path, os.O_WRONLY)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)
