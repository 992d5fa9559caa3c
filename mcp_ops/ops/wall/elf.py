"""The one thing to know of a binary's format, elf(5): which loader the kernel starts for it."""

import struct
from pathlib import Path
from typing import BinaryIO, NamedTuple

_MAGIC = b"\x7fELF"
_INTERPRETER = 3
_MOST_BYTES = 4096


class _Layout(NamedTuple):
    """Where the fields are, in bytes from the header's or an entry's beginning, and how they are read."""

    table: str
    table_at: int
    entries_at: int
    offset_at: int
    size_at: int


_LAYOUTS = {1: _Layout("I", 28, 42, 4, 16), 2: _Layout("Q", 32, 54, 8, 32)}
"""For 32 and for 64 bits."""


def loader_of(program: Path) -> Path | None:
    """Return the loader that a binary names; None if it needs none or is no binary.

    Raises:
        OSError: It cannot be read.
    """
    with program.open("rb") as file:
        try:
            name = _named_loader(file)
        except struct.error:
            return None
    return None if name is None else Path(name.rstrip(b"\0").decode("utf-8", "surrogateescape"))


def _named_loader(file: BinaryIO) -> bytes | None:
    head = file.read(64)
    layout = _LAYOUTS.get(head[4]) if head.startswith(_MAGIC) and len(head) == 64 else None
    if layout is None:
        return None
    order = "<" if head[5] == 1 else ">"
    (table,) = struct.unpack_from(order + layout.table, head, layout.table_at)
    length, count = struct.unpack_from(order + "HH", head, layout.entries_at)
    file.seek(table)
    entries = file.read(min(length * count, _MOST_BYTES))
    for start in range(0, len(entries), max(length, 1)):
        (kind,) = struct.unpack_from(order + "I", entries, start)
        if kind == _INTERPRETER:
            (offset,) = struct.unpack_from(order + layout.table, entries, start + layout.offset_at)
            (size,) = struct.unpack_from(order + layout.table, entries, start + layout.size_at)
            file.seek(offset)
            return file.read(min(size, _MOST_BYTES))
    return None
