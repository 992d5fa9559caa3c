"""Running a child process that can neither stay, nor flood, nor ask, and finds nothing of ours around it."""

import asyncio
import ctypes
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Literal

import anyio

TRUSTED_FOLDERS = (Path("/usr/bin"), Path("/bin"))
"""Where programs are looked for. The PATH of the server and the workspace have no say."""

_CHUNK = 65536
_GRACE_SECONDS = 0.5
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_LIBC = ctypes.CDLL(None, use_errno=True)
_unshare: Callable[[int], int] | None = getattr(_LIBC, "unshare", None)
_prctl: Callable[..., int] | None = getattr(_LIBC, "prctl", None)


@dataclass(frozen=True)
class Limits:
    """What one child may use. None leaves a limit as it is."""

    seconds: float = 9.0
    """Wall clock; the reply is due within 10."""
    cpu_seconds: int = 10
    read_bytes: int = 16 * 1024 * 1024
    """Output beyond this is not read: the child is killed."""
    kept_bytes: int = 64 * 1024
    """Output beyond this is counted and thrown away, for stdout and stderr each."""
    memory_bytes: int | None = 1024 * 1024 * 1024
    """Address space."""
    written_bytes: int | None = 0
    """Size of a file that it writes."""
    processes: int | None = 0
    """Processes of the user while it runs: with 0 it cannot fork. The kernel does not count root's."""


@dataclass(frozen=True)
class Command:
    """One program with its arguments; nothing interprets them on the way."""

    program: Path
    """Absolute."""
    arguments: tuple[str, ...]
    folder: Path
    """Working folder, absolute."""
    environment: Mapping[str, str]
    """All of it: nothing is inherited."""
    network: bool = False
    """Whether it talks to the operator's cluster. If not, it gets an empty network where the machine allows, and no
    capability: a child of root cannot set the clock either."""
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class Ended:
    """How a child ended, and what it said."""

    stdout: bytes
    """Its beginning, at most `kept_bytes`."""
    stderr: bytes
    stdout_bytes: int
    """All that was read of it."""
    exit_code: int | None
    """None when a signal ended it."""
    signal: int | None = None
    timed_out: bool = False
    flooded: bool = False
    """It was killed because it said more than `read_bytes`."""


def bare_environment(home: Path) -> dict[str, str]:
    """Return the environment of a child, built from nothing."""
    return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC", "HOME": str(home)}


def trusted_program(name: str) -> Path | None:
    """Return the absolute path of a program in a trusted folder."""
    for folder in TRUSTED_FOLDERS:
        if os.access(folder / name, os.X_OK):
            return folder / name
    return None


async def run_child(command: Command) -> Ended:
    """Run a command to its end, its deadline or its flood, whichever comes first.

    The whole process group is killed afterwards, also when the caller is cancelled.

    Raises:
        OSError: The program could not be started.
    """
    process = await _start(command)
    reading = _Reading(process, command.limits)
    timed_out = False
    try:
        async with asyncio.timeout(command.limits.seconds):
            await reading.to_the_end()
    except TimeoutError:
        timed_out = True
    finally:
        with anyio.CancelScope(shield=True):
            kill_group(process.pid)
            await reading.what_is_left()
    code = process.returncode or 0
    return Ended(
        stdout=bytes(reading.stdout),
        stderr=bytes(reading.stderr),
        stdout_bytes=reading.stdout_bytes,
        exit_code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        timed_out=timed_out or -code == signal.SIGXCPU,
        flooded=reading.flooded,
    )


async def _start(command: Command) -> asyncio.subprocess.Process:
    """Start the child. A caller who is cancelled meanwhile leaves no half-started one behind."""
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            command.program.name,
            *command.arguments,
            executable=command.program,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=command.folder,
            env=dict(command.environment),
            start_new_session=True,
            preexec_fn=partial(_confine, command.limits, command.network, _isolation()),
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        process = await starting
        kill_group(process.pid)
        await _Reading(process, command.limits).what_is_left()
        raise


def kill_group(leader: int) -> None:
    """Kill a child that leads its own process group, and all that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


class _Reading:
    """Reads both pipes to their end, keeps their beginnings, and kills a child that floods."""

    def __init__(self, process: asyncio.subprocess.Process, limits: Limits) -> None:
        self._process = process
        self._limits = limits
        self._left = limits.read_bytes
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.stdout_bytes = 0
        self.flooded = False

    async def to_the_end(self) -> None:
        """Return when both pipes are closed and the child is gone. May be called again after an interruption."""
        await asyncio.gather(
            self._drain(self._process.stdout, self.stdout), self._drain(self._process.stderr, self.stderr)
        )
        await self._process.wait()

    async def what_is_left(self) -> None:
        """Read on once the child was killed. Who left its process group and holds a pipe open is not waited for."""
        try:
            async with asyncio.timeout(_GRACE_SECONDS):
                await self.to_the_end()
        except TimeoutError:
            transport: asyncio.SubprocessTransport = self._process._transport  # type: ignore[attr-defined]
            transport.close()

    async def _drain(self, pipe: asyncio.StreamReader | None, kept: bytearray) -> None:
        while pipe is not None and (chunk := await pipe.read(_CHUNK)):
            kept += chunk[: self._limits.kept_bytes - len(kept)]
            self.stdout_bytes += len(chunk) if kept is self.stdout else 0
            self._left -= len(chunk)
            if self._left < 0 and not self.flooded:
                self.flooded = True
                kill_group(self._process.pid)


def _confine(limits: Limits, network: bool, isolate: Callable[[], None] | None) -> None:
    """Runs in the child between fork and exec: nothing here may import, log or take a lock."""
    if not network:
        if isolate is not None:
            isolate()
        _drop_privileges()
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, limits.cpu_seconds),
        (resource.RLIMIT_FSIZE, limits.written_bytes),
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_AS, limits.memory_bytes if sys.platform == "linux" else None),
    ):
        if most is not None:
            _, hard = resource.getrlimit(kind)
            allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
            # At the soft limit comes SIGXCPU, which tells a deadline from other deaths.
            resource.setrlimit(kind, (allowed, hard if kind == resource.RLIMIT_CPU else allowed))


def _drop_privileges() -> None:
    """Runs in the child: what it executes has no capability, so that a child of root cannot set the clock either."""
    if _prctl is None:
        return
    capability = 0
    while _prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    _prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def children_network() -> Literal["isolated", "unchecked"]:
    """Say whether a child without leave for the network gets an empty network namespace on this machine."""
    return "unchecked" if _isolation() is None else "isolated"


def describe_second_wall() -> str:
    """Say what confines a child besides the guards' tables."""
    return "absent: no Landlock rules or mounts confine a child; the option tables and path checks are the only wall"


@lru_cache(maxsize=1)
def _isolation() -> Callable[[], None] | None:
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
            timeout=5,
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
