"""A server over HTTP as a child process, and requests of which every byte is chosen."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

LISTENING = re.compile(r"mcp-ops: listening on (http://(?:127\.0\.0\.1|\[::1\]):([0-9]+)/mcp)\n")
SECONDS = 60
"""A deadline for what would otherwise hang; nothing is measured with it."""


@dataclass
class HttpChild:
    """`mcp-ops serve … --http` that runs."""

    process: "subprocess.Popen[str]"
    url: str
    port: int
    said: list[str] = field(default_factory=list)
    """Lines of its standard error so far."""

    def ask(self, head: str | bytes, body: bytes = b"") -> tuple[int, str]:
        """Send a request as it is written, lines of the head ended by \\n; return status and the rest of the answer."""
        raw = head.encode() if isinstance(head, str) else head
        with socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS) as connection:
            connection.sendall(raw.strip().replace(b"\n", b"\r\n") + b"\r\nConnection: close\r\n\r\n" + body)
            answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode("utf-8", "replace")
        return int(answer.split()[1]), answer

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit status."""
        self.process.send_signal(number)
        return self.process.wait(SECONDS)


@contextmanager
def http_child(
    *words: str, env: Mapping[str, str] | None = None, flags: Sequence[str] = ("--port", "0")
) -> Iterator[HttpChild]:
    """Start a server and wait until it listens; it is gone at the end."""
    environment = {"PATH": os.environ["PATH"], **(env or {})}
    program = str(Path(sys.executable).with_name("mcp-ops"))
    process = subprocess.Popen(
        [program, "serve", *words, "--http", *flags],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    deadline = threading.Timer(SECONDS, process.kill)
    deadline.start()
    reader = threading.Thread(target=lambda: said.extend(process.stderr or ()))
    said: list[str] = []
    try:
        assert process.stderr is not None
        while not (found := LISTENING.fullmatch(said[-1] if said else "")):
            said.append(process.stderr.readline())
            assert said[-1], "".join(said)
        reader.start()
        yield HttpChild(process, found[1], int(found[2]), said)
    finally:
        process.kill()
        process.wait()
        deadline.cancel()
        if reader.is_alive():
            reader.join()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
