"""Writes the trace of one run, event by event."""

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from mcp_ops.text import Redactor
from mcp_ops.trace.events import LlmRequest, Payload, PromptMessage
from mcp_ops.trace.written import written_line

TRACE_NAME = "trace.jsonl"
_ATTEMPTS = 100


def now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC)


def _random_part() -> str:
    return secrets.token_hex(2)


class TraceWriter:
    """The file `<folder>/<run_id>/trace.jsonl`. Close it, or use it in a `with` statement.

    Args:
        folder: Where runs are kept; made when it is not there.
        clock: Says the time of each event.
        random_part: Says the four characters that end the run's id.

    Raises:
        OSError: The folder cannot be written.
    """

    run_id: str
    """`r-YYYYMMDD-HHMMSS-xxxx`, unique in the folder."""
    path: Path
    """The trace file."""

    def __init__(
        self, folder: Path, *, clock: Callable[[], datetime] = now, random_part: Callable[[], str] = _random_part
    ) -> None:
        self._clock = clock
        self._seq = 0
        self._prompt: list[PromptMessage] = []
        self.run_id = _make_run_folder(folder, clock(), random_part)
        self.path = folder / self.run_id / TRACE_NAME
        self._file = self.path.open("xb")

    def write(self, payload: Payload, redactor: Redactor) -> str:
        """Append one event and flush it; return the line as it was written, without its line end."""
        if isinstance(payload, LlmRequest):
            payload = self._without_repeated(payload)
        line = written_line(payload, redactor=redactor, seq=self._seq, run_id=self.run_id, at=self._clock())
        self._file.write(line.encode("utf-8") + b"\n")
        self._file.flush()
        self._seq += 1
        return line

    def _without_repeated(self, request: LlmRequest) -> LlmRequest:
        before, self._prompt = self._prompt, request.messages
        same = 0
        for old, new in zip(before, request.messages, strict=False):
            if old.content != new.content or old.role != new.role:
                break
            same += 1
        return LlmRequest.model_construct(
            turn=request.turn, messages=request.messages[same:], repeated=same, dropped=request.dropped
        )

    def close(self) -> None:
        """Close the file; closing twice is allowed."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()


def _make_run_folder(folder: Path, started: datetime, random_part: Callable[[], str]) -> str:
    """Return the run's id. The exclusive creation of its folder makes it unique among processes too."""
    stamp = started.astimezone(UTC).strftime("%Y%m%d-%H%M%S")
    for _ in range(_ATTEMPTS):
        run_id = f"r-{stamp}-{random_part()}"
        try:
            _make(folder / run_id)
        except FileExistsError:
            continue
        return run_id
    raise FileExistsError(f"{folder}: no free name for a run among {_ATTEMPTS} tries at {stamp}")


def _make(run: Path) -> None:
    try:
        run.mkdir()
    except FileNotFoundError:
        run.parent.mkdir(parents=True, exist_ok=True)
        run.mkdir()
