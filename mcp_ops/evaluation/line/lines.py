"""Physical lines of a scenario file, one at a time: a huge file or a huge line costs no more memory than one line."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MAX_LINE_BYTES = 1_000_000
"""Most bytes of a line, its end not counted."""
_HEAD_BYTES = 65_536
"""How much of a line that is too long is looked at for its id and tags."""
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class TextLine:
    """A line that holds something."""

    number: int
    """From 1, blank lines and comments counted."""
    text: str


@dataclass(frozen=True)
class BrokenLine:
    """A line whose text cannot be had."""

    number: int
    column: int
    """In characters from 1."""
    message: str
    start: str
    """As much of its beginning as can be read."""


def physical_lines(path: Path) -> Iterator[TextLine | BrokenLine]:
    r"""Yield the lines of a file that are neither blank nor begin with `//`. Lines end at `\n` only.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        encoding = _foreign_encoding(file.read(4))
        if encoding is not None:
            yield BrokenLine(1, 1, f"the file is {encoding} from byte offset 0 on, not UTF-8; save it as UTF-8", "")
            return
        file.seek(0)
        offset = number = 0
        while True:
            data = file.readline(MAX_LINE_BYTES + len(_BOM) + 2)
            if not data:
                return
            number += 1
            skipped = 0 if data.endswith(b"\n") else _skip_rest(file)
            line = _line(data, number, offset, too_long=skipped)
            offset += len(data) + skipped
            if line is not None:
                yield line


def _foreign_encoding(head: bytes) -> str | None:
    if head in (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff") or b"\x00\x00\x00" in head:
        return "UTF-32"
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") or (len(head) >= 2 and 0 in head[:2] and head[:2] != b"\x00\x00"):
        return "UTF-16"
    return None


def _skip_rest(file: BinaryIO) -> int:
    """Read to the end of the line and return how many bytes that was."""
    skipped = 0
    while data := file.readline(_HEAD_BYTES):
        skipped += len(data)
        if data.endswith(b"\n"):
            break
    return skipped


def _line(data: bytes, number: int, offset: int, *, too_long: int) -> TextLine | BrokenLine | None:
    body = data.removesuffix(b"\n").removesuffix(b"\r")
    start = 0
    if number == 1 and body.startswith(_BOM):
        start = len(_BOM)
        body = body[start:]
    if body.lstrip().startswith(b"//"):
        return None
    if too_long or len(body) > MAX_LINE_BYTES:
        head = body[:_HEAD_BYTES].decode("utf-8", "ignore")
        return BrokenLine(
            number, 1, f"the line is longer than {MAX_LINE_BYTES} bytes; move what is large to a file", head
        )
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        before = body[: error.start].decode("utf-8")
        message = (
            f"byte 0x{body[error.start]:02x} at byte offset {offset + start + error.start} of the file is not UTF-8;"
            " save the file as UTF-8"
        )
        return BrokenLine(number, len(before) + 1, message, before)
    return TextLine(number, text) if text.strip() else None
