"""Reads a trace back, whole or torn."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from mcp_ops.text import one_line
from mcp_ops.trace.events import Event, RunFinish, RunStart, read_event, read_events
from mcp_ops.trace.writer import TRACE_NAME


@dataclass(frozen=True)
class Trace:
    """One run, read back."""

    events: tuple[Event, ...]
    torn: bool = False
    """The last line is cut off, as after a crash; it is left out."""
    problems: tuple[str, ...] = ()
    """What is wrong with the file, one sentence each, with the line's number."""
    path: Path | None = None
    """The file it was read from."""

    @property
    def start(self) -> RunStart | None:
        """What the run set out to do."""
        return next((event.payload for event in self.events if isinstance(event.payload, RunStart)), None)

    @property
    def finish(self) -> RunFinish | None:
        """How the run ended; None when it did not."""
        return next((event.payload for event in self.events if isinstance(event.payload, RunFinish)), None)


def read_trace(path: Path) -> Trace:
    """Read a trace file, or the trace of a run's folder.

    Lines end at LF only. Whatever is no event is left out and named in `problems`, except a last line that was cut
    off while it was written.

    Raises:
        OSError: The file cannot be read.
    """
    file = path / TRACE_NAME if path.is_dir() else path
    *lines, rest = file.read_bytes().split(b"\n")
    events: list[Event] = []
    problems: list[str] = []
    try:
        events += read_events(lines)
    except ValidationError:
        for number, line in enumerate(lines, 1):
            try:
                events.append(read_event(line))
            except ValidationError as error:
                problems.append(f"line {number}: not an event: {_reason(error)}")
    torn = False
    if rest:
        try:
            events.append(read_event(rest))
        except ValidationError:
            torn = True
    return Trace(tuple(events), torn, (*problems, *_gaps(events)), file)


def _reason(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in fault["loc"])
    return one_line(f"{where}: {fault['msg']}" if where else fault["msg"])


def _gaps(events: list[Event]) -> Iterator[str]:
    for expected, event in enumerate(events):
        if event.seq != expected:
            yield f"event {expected} is missing: event {event.seq} stands in its place"
            return
