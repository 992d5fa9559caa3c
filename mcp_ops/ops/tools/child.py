"""Running a child process that can neither stay, nor flood, nor ask, and finds nothing of ours around it."""

import asyncio
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import anyio

from mcp_ops.ops.wall import Start, Walled, confine, isolation, second_wall

_CHUNK = 65536
_GRACE_SECONDS = 0.5


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
    """Whether it talks to the operator's cluster. If not, it gets an empty network where the machine allows, no
    capability (a child of root cannot set the clock either), and the second wall around it where there is one."""
    limits: Limits = field(default_factory=Limits)
    reads: Path | None = None
    """The one folder that it may read behind the second wall; None: only what its program needs to start."""


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
    with _walled(command) as walled:
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                walled.program.name,
                *walled.arguments,
                executable=walled.program,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=command.folder,
                env=dict(command.environment),
                start_new_session=True,
                preexec_fn=walled.enter,
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


@contextmanager
def _walled(command: Command) -> Iterator[Walled]:
    """Build all that can be built before the fork.

    Raises:
        OSError: The second wall cannot be built around this program.
    """
    if command.network:
        yield Walled(command.program, command.arguments, partial(_limit, command.limits))
        return
    start = Start(command.program, command.arguments, command.folder, command.reads)
    with second_wall().around(start) as walled:
        limits = replace(command.limits, processes=None) if walled.forks else command.limits
        yield replace(walled, enter=partial(_confine, isolation(), walled.enter, limits))


def _confine(isolate: Callable[[], None] | None, enter_wall: Callable[[], None], limits: Limits) -> None:
    """Runs in the child between fork and exec: nothing here may import, log or take a lock."""
    confine(isolate, enter_wall)
    _limit(limits)


def _limit(limits: Limits) -> None:
    """Runs in the child."""
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
