"""Where the events of a run go as they happen: raw into memory, redacted into the trace and onto the terminal."""

from typing import TextIO

from mcp_ops.text import Redactor
from mcp_ops.trace.console import echo_line
from mcp_ops.trace.events import LlmResponse, Payload, read_event
from mcp_ops.trace.writer import TraceWriter, now
from mcp_ops.trace.written import written_line


class Ledger:
    """The record of one run.

    Args:
        writer: Writes the trace; None keeps the run in memory only.
        echo: Where each event is printed as one line, or None.
    """

    events: list[Payload]
    """Every event, raw: neither cleaned nor cut nor redacted. It is never written."""

    def __init__(self, writer: TraceWriter | None = None, echo: TextIO | None = None) -> None:
        self.events = []
        self._replies = 0
        self._writer = writer
        self._echo = echo
        self._redactor = Redactor({})

    @property
    def turn(self) -> int:
        """The model's current turn, from 0."""
        return max(0, self._replies - 1)

    @property
    def turns(self) -> int:
        """How often the model has replied."""
        return self._replies

    def set_redactor(self, redactor: Redactor) -> None:
        """Redact every later event by `redactor`."""
        self._redactor = redactor

    def emit(self, payload: Payload) -> None:
        """Record one event.

        Raises:
            OSError: The trace cannot be written.
        """
        self.events.append(payload)
        self._replies += isinstance(payload, LlmResponse)
        if self._writer is not None:
            line = self._writer.write(payload, self._redactor)
        elif self._echo is not None:
            seq = len(self.events) - 1
            line = written_line(payload, redactor=self._redactor, seq=seq, run_id="r-unwritten", at=now())
        else:
            return
        if self._echo is not None:
            self._echo.write(echo_line(read_event(line)) + "\n")
            self._echo.flush()
