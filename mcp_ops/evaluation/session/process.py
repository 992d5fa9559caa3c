"""A server that is a child process: exact environment, exit code, end of standard error, and no orphans."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import anyio

from mcp_ops.text import one_line

EXIT_SECONDS = 2.0
"""How long a server may take to end when it is asked to, and again after it was told to."""

CHUNK = 1 << 16
_STDERR_BYTES = 2000
_POLL_SECONDS = 0.01
LAST_WORDS_SECONDS = 0.5

Process = subprocess.Popen[bytes]


def kill_group(group: int) -> None:
    """Kill every process of a process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


@dataclass
class ChildServer:
    """A server that is started as a child process, in a group of its own."""

    command: Sequence[str]
    env: Mapping[str, str]
    """The whole environment."""
    cwd: Path | None = None
    descriptors: Sequence[int] = ()
    """Open files that it inherits, under their numbers."""
    end_group: Callable[[int], None] = kill_group
    """Called with the server's process group once the server itself has ended."""
    exit_code: int | None = None
    """Set when it has ended; negative for a signal."""
    _errors: bytes = b""

    @property
    def last_words(self) -> str:
        """The end of what it wrote to its standard error, cleaned, on one line."""
        return one_line(self._errors.decode("utf-8", "replace").strip().replace("\n", " / "), 600)

    @asynccontextmanager
    async def _running(self, *, talks: bool, more_env: Mapping[str, str] | None = None) -> AsyncIterator[Process]:
        """Start the server; when the block ends, it is dead, whatever the block did.

        Args:
            talks: Whether standard input and output are pipes; otherwise they are /dev/null.
            more_env: Further variables, beside `env`.

        Raises:
            OSError: The program cannot be started.
        """
        process = self._start(talks, more_env or {})
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(EXIT_SECONDS)
            self.exit_code = process.returncode
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
            self.end_group(process.pid)

    def _start(self, talks: bool, more_env: Mapping[str, str]) -> Process:
        return subprocess.Popen(
            list(self.command),
            stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
            stdout=subprocess.PIPE if talks else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**self.env, **more_env},
            cwd=self.cwd,
            start_new_session=True,
            pass_fds=tuple(self.descriptors),
            bufsize=0,
        )

    def _keep_error(self, chunk: bytes) -> None:
        self._errors = (self._errors + chunk)[-_STDERR_BYTES:]


async def ended(process: Process, seconds: float) -> bool:
    """Wait until a process has ended, at most so long."""
    deadline = anyio.current_time() + seconds
    while process.poll() is None:
        if anyio.current_time() >= deadline:
            return False
        await asyncio.sleep(_POLL_SECONDS)
    return True


async def read_pipe(pipe: IO[bytes] | None) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    """Read a pipe of a child by the event loop."""
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, pipe)
    return reader, transport
