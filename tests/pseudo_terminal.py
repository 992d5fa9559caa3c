"""A program on a pseudo-terminal of its own, as a person would have it in front of them."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

PATIENCE_SECONDS = 60.0
"""After so long a test gives up waiting for what never comes."""
CTRL_C, CTRL_D = "\x03", "\x04"


@dataclass
class Screen:
    """What the program shows, and the keys that reach it."""

    master: int
    process: "subprocess.Popen[bytes]"
    shown: str = ""
    """Everything so far, with LF as the end of a line."""
    read: int = 0
    """How much of it a test has waited for."""

    def until(self, text: str) -> str:
        """Return what is shown after the last text that was waited for, up to the end of this one."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (found := self.shown.find(text, self.read)) < 0:
            if not self._more(deadline):
                raise AssertionError(f"{text!r} is not shown after {self.shown[self.read :]!r}")
        begun, self.read = self.read, found + len(text)
        return self.shown[begun : self.read]

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self.master, keys.encode("utf-8"))

    def end(self) -> int:
        """Return the exit status, once the program has ended and all is shown."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._more(deadline):
            pass
        return self.process.wait(PATIENCE_SECONDS)

    def _more(self, deadline: float) -> bool:
        ready, _, _ = select.select([self.master], [], [], max(0.0, deadline - time.monotonic()))
        try:
            data = os.read(self.master, 1 << 16) if ready else b""
        except OSError:
            data = b""
        self.shown += data.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(data)


@contextmanager
def on_a_terminal(
    command: Sequence[str], env: Mapping[str, str], *, columns: int = 100, rows: int = 40, piped: bool = False
) -> Iterator[Screen]:
    """Start a program with a terminal of its own; it is killed when the block ends.

    Args:
        command: The program.
        env: Its whole environment.
        columns: Width of the terminal.
        rows: Height of the terminal.
        piped: Whether standard input and output are no terminal; standard input is empty then.
    """
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    become = "import fcntl, os, sys, termios; t = int(sys.argv[1]); fcntl.ioctl(t, termios.TIOCSCTTY, 0)"
    become += "; t > 2 and os.close(t); os.execvp(sys.argv[2], sys.argv[2:])"
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", become, str(slave), *command],
        stdin=subprocess.DEVNULL if piped else slave,
        stdout=subprocess.DEVNULL if piped else slave,
        stderr=slave,
        env=dict(env),
        start_new_session=True,
        pass_fds=(slave,),
    )
    os.close(slave)
    try:
        yield Screen(master, process)
    finally:
        process.kill()
        process.wait()
        os.close(master)


def without_colours(text: str) -> str:
    """Return a text without the sequences that move the cursor or erase a line."""
    return re.sub(r"\r|\x1b\[K", "", text)
