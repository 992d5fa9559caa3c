"""What a person sees of a run while it goes on: one line for each turn and call, on stderr.

On a terminal the last line is alive: it says what is being waited for, and for how long. Elsewhere every line is plain.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TextIO

from mcp_ops.text import Redactor, inert, one_line
from mcp_ops.trace.console import arguments_gist
from mcp_ops.trace.events import LlmRequest, LlmResponse, Payload, ToolCall, ToolResult
from mcp_ops.trace.ledger import Ledger
from mcp_ops.trace.writer import TraceWriter

_TICK_SECONDS = 1.0
_ERASE = "\r\x1b[K"
_MOST = 160


class Progress:
    """Writes lines as events come.

    Args:
        stream: Where to.
        alive: Whether the last line is rewritten.
        columns: Width of the terminal, asked for each live line.
    """

    def __init__(self, stream: TextIO, *, alive: bool, columns: Callable[[], int] = lambda: 80) -> None:
        self._stream = stream
        self._alive = alive
        self._columns = columns
        self._waiting_for = ""
        self._since = time.monotonic()
        self._paused = False
        self._redactor = Redactor({})
        self._calls: dict[int, ToolCall] = {}

    def set_redactor(self, redactor: Redactor) -> None:
        """Redact every later line by `redactor`."""
        self._redactor = redactor

    def say(self, text: str) -> None:
        """Write a line."""
        self._erase()
        self._stream.write(self._shown(text, _MOST) + "\n")
        self._draw()

    def show(self, payload: Payload) -> None:
        """Show an event."""
        match payload:
            case LlmRequest():
                self._wait_for(f"turn {payload.turn + 1}: the model")
            case LlmResponse():
                self._wait_for("")
                self.say(f"turn {payload.turn + 1}: the model replied in {payload.duration_ms / 1000:.1f} s")
            case ToolCall():
                self._calls[payload.call] = payload
                self._wait_for(_told(payload))
            case ToolResult():
                self._wait_for("")
                rule = f" ({payload.rule})" if payload.rule is not None else ""
                call = self._calls.get(payload.call)
                told = _told(call) if call is not None else f"call {payload.call + 1}: {payload.tool}"
                self.say(f"{told} -> {payload.state}{rule}, {payload.duration_ms / 1000:.1f} s")
            case _:
                pass

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal alone while the block runs."""
        self._erase()
        self._paused = True
        try:
            yield
        finally:
            self._paused = False
            self._draw()

    async def keep_alive(self) -> None:
        """Rewrite the live line until it is cancelled."""
        while self._alive:
            await asyncio.sleep(_TICK_SECONDS)
            self._erase()
            self._draw()

    def end(self) -> None:
        """Take the live line away."""
        self._wait_for("")

    def _wait_for(self, what: str) -> None:
        self._erase()
        self._waiting_for, self._since = what, time.monotonic()
        self._draw()

    def _erase(self) -> None:
        if self._alive and not self._paused and self._waiting_for:
            self._stream.write(_ERASE)
            self._stream.flush()

    def _draw(self) -> None:
        if self._alive and not self._paused and self._waiting_for:
            seconds = f" {time.monotonic() - self._since:.0f} s"
            room = max(10, min(_MOST, self._columns() - len(seconds) - 1))
            self._stream.write(self._shown(self._waiting_for, room) + seconds)
        self._stream.flush()

    def _shown(self, text: str, limit: int) -> str:
        return inert(one_line(self._redactor.text(text), limit))


class WatchedLedger(Ledger):
    """A ledger whose events are shown as they happen.

    Args:
        writer: Writes the trace.
        progress: Shows them.
    """

    def __init__(self, writer: TraceWriter, progress: Progress) -> None:
        super().__init__(writer)
        self._progress = progress

    def set_redactor(self, redactor: Redactor) -> None:
        """Redact every later event by `redactor`."""
        super().set_redactor(redactor)
        self._progress.set_redactor(redactor)

    def emit(self, payload: Payload) -> None:
        """Record one event, and show it."""
        super().emit(payload)
        self._progress.show(payload)


def progress_on(stream: TextIO, environ: Mapping[str, str]) -> Progress:
    """Return the view for a stream: alive on a terminal that can erase a line."""
    alive = stream.isatty() and environ.get("TERM", "dumb") != "dumb"

    def columns() -> int:
        with suppress(OSError):
            return os.get_terminal_size(stream.fileno()).columns or 80
        return 80

    return Progress(stream, alive=alive, columns=columns)


def _told(call: ToolCall) -> str:
    return f"call {call.call + 1}: {one_line(call.tool, 60)} {arguments_gist(call.args, 80)}".rstrip()
