"""The terminal of the person who started a command: read and written whatever stdin, stdout and stderr are."""

import asyncio
import os
import select
import termios
from contextlib import suppress

_TERMINAL = "/dev/tty"
_CHUNK = 4096


class InputEnded(Exception):
    """Nothing more can be typed."""


class Interrupted(Exception):
    """Ctrl-C was pressed while somebody was asked."""


class Terminal:
    """An open terminal. Use `open_terminal` to get one."""

    def __init__(self, descriptor: int) -> None:
        self._tty = descriptor
        self._wake: int | None = None

    def size(self) -> tuple[int, int]:
        """Return columns and rows."""
        try:
            columns, rows = os.get_terminal_size(self._tty)
        except OSError:
            columns, rows = 0, 0
        return columns or 80, rows or 24

    def in_front(self) -> bool:
        """Return whether this process may read it: a job in the background would be stopped."""
        try:
            return os.tcgetpgrp(self._tty) == os.getpgrp()
        except OSError:
            return False

    def write(self, text: str) -> None:
        """Show a text. It must have been made visible."""
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._tty, data) :]

    async def ask(self, prompt: str) -> str:
        """Show a prompt and return the line that is typed after that; what was typed before it is dropped.

        Raises:
            InputEnded: The input ends, or the terminal is gone.
            Interrupted: `interrupt` was called meanwhile.
        """
        try:
            termios.tcflush(self._tty, termios.TCIFLUSH)
            self.write(prompt)
        except (OSError, termios.error):
            raise InputEnded from None
        reading, self._wake = os.pipe()
        try:
            return await asyncio.to_thread(self._read_line, reading)
        except OSError:
            raise InputEnded from None
        finally:
            # A thread that still waits ends when the other end of its pipe is closed.
            os.close(self._wake)
            self._wake = None

    def interrupt(self) -> bool:
        """End a question that waits for its answer; return whether there is one."""
        if self._wake is None:
            return False
        with suppress(BrokenPipeError):
            os.write(self._wake, b"!")
        return True

    def close(self) -> None:
        """Close it."""
        os.close(self._tty)

    def _read_line(self, wake: int) -> str:
        """Read up to the end of a line, in a thread. It closes `wake`."""
        typed = b""
        try:
            while not typed.endswith(b"\n"):
                ready, _, _ = select.select([self._tty, wake], [], [])
                if wake in ready:
                    raise Interrupted
                chunk = os.read(self._tty, _CHUNK)
                if not chunk:
                    raise InputEnded
                typed += chunk
        finally:
            os.close(wake)
        return typed.decode("utf-8", "replace")


def open_terminal() -> Terminal | None:
    """Return the terminal that this process belongs to, or None."""
    try:
        return Terminal(os.open(_TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return None
