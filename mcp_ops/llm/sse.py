"""Server-sent events, put together from bytes however they were split."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class ServerEvent:
    """One event of a stream."""

    name: str
    """Empty when the stream gives it none."""
    data: str


class EventStream:
    """Takes bytes and gives events. Comments, which keep a connection open, and unknown fields are left out."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._searched = 0
        self._begun = False
        self._name = ""
        self._data: list[str] = []

    def feed(self, data: bytes) -> Iterator[ServerEvent]:
        """Take the next bytes; yield the events that they complete."""
        self._rest += data
        if not self._begun and len(self._rest) >= len(_BOM):
            self._begun = True
            if self._rest.startswith(_BOM):
                del self._rest[: len(_BOM)]
        yield from self._events()

    def end(self) -> Iterator[ServerEvent]:
        """Yield what the stream's end completes: some endpoints leave out the last line break."""
        self._rest += b"\n\n"
        yield from self._events()

    def _events(self) -> Iterator[ServerEvent]:
        done = 0
        for found in _LINE_END.finditer(self._rest, self._searched):
            if found.end() == len(self._rest) and found[0] == b"\r":
                break  # the other half of a CRLF may still come
            line = bytes(self._rest[done : found.start()])
            done = found.end()
            yield from self._line(line.decode("utf-8", "replace"))
        rest = self._rest[done:]
        self._rest = rest
        self._searched = max(0, len(rest) - 1)

    def _line(self, line: str) -> Iterator[ServerEvent]:
        if not line:
            if self._data:
                yield ServerEvent(self._name, "\n".join(self._data))
            self._name, self._data = "", []
            return
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            self._name = value
        elif field == "data":
            self._data.append(value)
