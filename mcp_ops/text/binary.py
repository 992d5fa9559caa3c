"""Readings of a text as bytes: written in hexadecimal, or compressed."""

import base64
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from typing import NamedTuple

from mcp_ops.text.readings import LINE_END, Span, Traced, traced
from mcp_ops.text.spellings import Encoding, hex_needles, needles

_BETWEEN_DIGITS = b" \t\r\n:,;_-\\=%&#\"'()[]{}xnrtuXNRTU"
"""Separators of every kind, those of `\\x43`, `\\n`, `%43` and `&#x43;` included."""
_SEPARATOR = re.compile(r"""0x|[ \t\r\n:,;_\-\\=%&#"'()\[\]{}xnrtu]""", re.IGNORECASE)
_DUMP_ROW = re.compile(
    r"(?:\A|\n|\\n)[ \t|>]{0,8}(?:[^\s:]{1,200}:[0-9]{1,7}:[ ]?)?"
    r"[0-9A-Fa-f]{6,8}:?[ \t]{1,4}((?:[0-9A-Fa-f]{2}[ ]{0,2}){1,16})"
)
"""A row of xxd, hexdump or od: an offset, then up to 16 bytes; what follows shows them as text."""


_CLASSES = bytes(ord("h") if chr(code) in "0123456789abcdefABCDEF" else ord(".") for code in range(256))
_RUN = b"h" * 12
"""The fewest digits of a value: six bytes."""


def squeeze(data: bytes) -> str:
    """Return a text in ASCII in lower case without anything that may stand between two bytes in hexadecimal."""
    return data.lower().replace(b"0x", b"").translate(None, _BETWEEN_DIGITS).decode("ascii")


class Hexadecimal:
    """The reading as bytes in hexadecimal, with or without separators, also over the rows of a dump."""

    def __init__(self, text: str, data: bytes) -> None:
        self._source = text
        self.squeezed = squeeze(data)
        self._rows = list(_DUMP_ROW.finditer(text)) if "0000" in text else []
        self._dump = squeeze("".join(row[1] for row in self._rows).encode()) if len(self._rows) > 1 else ""

    @staticmethod
    def of(text: str) -> "Hexadecimal | None":
        """Return the reading of a text that has a run of digits which is long enough for a value."""
        data = text.encode("ascii", "replace")
        return Hexadecimal(text, data) if _RUN in data.translate(_CLASSES, _BETWEEN_DIGITS) else None

    def encoding_of(self, value: str) -> Encoding | None:
        """Return `hex` when `value` is written so."""
        found = any(needle in self.squeezed or needle in self._dump for needle in hex_needles(value))
        return "hex" if found else None

    def spans_of(self, value: str) -> Iterator[Span]:
        """Yield where in the text `value` stands; in a dump up to the end of its last row, which shows it as text."""
        for needle in hex_needles(value):
            yield from self.place(needle)
            for start, end in self._traced_dump.spans_of(needle) if self._dump else ():
                line_end = LINE_END.search(self._source, end)
                yield start, line_end.start() if line_end else len(self._source)

    def place(self, digits: str) -> Iterator[Span]:
        """Yield where in the text a run of the squeezed text stands."""
        return self._traced.spans_of(digits)

    @cached_property
    def _traced(self) -> Traced:
        made = traced(self._source, _SEPARATOR, lambda _: "")
        made.text = made.text.encode("ascii", "replace").lower().decode("ascii")
        return made

    @cached_property
    def _traced_dump(self) -> Traced:
        made = Traced()
        for row in self._rows:
            for digits in re.finditer("[0-9A-Fa-f]+", row[1]):
                made.take(self._source, row.start(1) + digits.start(), row.start(1) + digits.end())
        made.text = made.text.lower()
        return made


MAX_UNPACKED = 4 * 1024 * 1024
"""How much of one text is looked through for compressed parts, and what is in them, together, in bytes."""

_BASE64_OF_GZIP = re.compile(r"H4sI|SDRzS")
"""How compressed bytes begin in base64; the second is that in base64 once more, as Helm keeps its releases."""
_BASE64_RUN = re.compile(r"(?:[A-Za-z0-9+/_-]++|[ \t\r]*+(?:\n|\\{1,4}n)[ \t]*+)*+={0,2}")
_BASE64_PIECE = re.compile(r"\\+n|[A-Za-z0-9+/_-]+")
_HEX_OF_GZIP = re.compile(r"1f8b08(?:[0-9a-f]{2})+")
_FIRST_LOOK = 64
"""So many characters tell most of what is nothing compressed."""
_COST_OF_NOTHING = 8
_GZIP_MAGIC = b"\x1f\x8b\x08"
_GZIP = 31
"""zlib's name for the format."""


class _Blob(NamedTuple):
    text: str
    """What is in it."""
    spans: Callable[[], Iterable[Span]]
    """Say where it stands."""


class Unpacked:
    """The reading of what is compressed in a text, in base64 or hexadecimal, within `MAX_UNPACKED`."""

    def __init__(self, text: str, hexadecimal: Hexadecimal | None) -> None:
        self._left = MAX_UNPACKED
        self._blobs = list(self._in_base64(text))
        if hexadecimal is not None:
            self._blobs += self._in_hexadecimal(hexadecimal)

    @staticmethod
    def applies(text: str, hexadecimal: Hexadecimal | None) -> bool:
        """Whether there may be something compressed in the text."""
        return "H4sI" in text or "SDRzS" in text or (hexadecimal is not None and "1f8b08" in hexadecimal.squeezed)

    def encoding_of(self, value: str) -> Encoding | None:
        """Return `gzip` when `value` is in something compressed."""
        return "gzip" if any(_holds(blob, value) for blob in self._blobs) else None

    def spans_of(self, value: str) -> Iterator[Span]:
        """Yield where in the text that stands in which `value` is."""
        for blob in self._blobs:
            if _holds(blob, value):
                yield from blob.spans()

    def _in_base64(self, text: str) -> Iterator[_Blob]:
        begins = _BASE64_OF_GZIP.search(text)
        while begins and self._left > 0:
            start = after = begins.start()
            if not self._may_go_on(text[start : start + _FIRST_LOOK]):
                begins = _BASE64_OF_GZIP.search(text, start + 4)
                continue
            run = _BASE64_RUN.match(text, start, start + self._left)
            data = _decoded(_without_line_ends(run[0])) if run else b""
            nested = data.startswith(b"H4sI")
            content, used = self._unpack(_decoded(data.decode("ascii", "replace")) if nested else data)
            # What looks compressed and is not costs more: a text full of it must not take long.
            self._left -= len(data) * (1 if content else _COST_OF_NOTHING)
            if content and run:
                after = run.end() if nested else start + _length(run[0], -(-used * 4 // 3))
                yield _Blob(content, partial(_one, (start, after)))
            begins = _BASE64_OF_GZIP.search(text, max(after, start + 4))

    @staticmethod
    def _may_go_on(beginning: str) -> bool:
        """Return whether something compressed may begin so."""
        data = _decoded(_without_line_ends(beginning))
        if data.startswith(b"H4sI"):
            return True
        try:
            zlib.decompressobj(_GZIP).decompress(data, _FIRST_LOOK)
        except zlib.error:
            return False
        return True

    def _in_hexadecimal(self, hexadecimal: Hexadecimal) -> Iterator[_Blob]:
        for run in _HEX_OF_GZIP.finditer(hexadecimal.squeezed):
            if self._left <= 0:
                return
            self._left -= len(run[0])
            content, used = self._unpack(bytes.fromhex(run[0]))
            if content:
                yield _Blob(content, partial(hexadecimal.place, run[0][: used * 2]))

    def _unpack(self, data: bytes) -> tuple[str, int]:
        """Return what is in `data`, as far as it can be read, and how many of its bytes that took."""
        content, rest = b"", data
        try:
            while rest.startswith(_GZIP_MAGIC) and self._left > 0:
                member = zlib.decompressobj(_GZIP)
                opened = member.decompress(rest, self._left)
                self._left -= len(opened) + 1
                content += opened
                rest = member.unused_data
        except zlib.error:
            pass
        return content.decode("utf-8", "replace"), len(data) - len(rest)


def _one(span: Span) -> tuple[Span]:
    return (span,)


def _holds(blob: _Blob, value: str) -> bool:
    return any(needle in blob.text for _, needle in needles(value))


def _without_line_ends(text: str) -> str:
    pieces = (piece[0] for piece in _BASE64_PIECE.finditer(text))
    return "".join(piece for piece in pieces if piece[0] != "\\")


def _decoded(text: str) -> bytes:
    plain = re.sub("[^A-Za-z0-9+/]", "", text.replace("-", "+").replace("_", "/"))
    plain = plain[: len(plain) - (len(plain) % 4 == 1)]
    return base64.b64decode(plain + "=" * (-len(plain) % 4))


def _length(run: str, characters: int) -> int:
    """Return how much of a run so many characters of base64 take, padding included."""
    end = 0
    for piece in _BASE64_PIECE.finditer(run):
        if piece[0][0] != "\\":
            end = piece.start() + min(characters, len(piece[0]))
            characters -= len(piece[0])
            if characters <= 0:
                break
    return end + (len(run) - end - len(run[end:].lstrip("=")))
