"""How much of a run a page has room for."""

from dataclasses import dataclass
from html import escape

from mcp_ops.text import clean


@dataclass(frozen=True)
class Room:
    """How much a page shows of one run. Lengths are in bytes of UTF-8."""

    text: int
    """Most of one text."""
    total: int
    """Most of all texts together, as they stand in the page; what comes later is left out."""
    rows: int
    """Most rows in the timeline, and in each of the lists."""


@dataclass(frozen=True)
class Shown:
    """A text, cleaned, with as much of it as there is room for."""

    text: str
    note: str = ""
    """What is missing, in one sentence."""


class Paper:
    """Hands out the room of one run, first come, first served."""

    def __init__(self, room: Room) -> None:
        self._text = room.text
        self._left = room.total

    def show(self, text: str, *, cut: bool = False, full_length: int | None = None) -> Shown:
        """Return as much of `text` as there is room for.

        Args:
            text: The text, which may itself be the beginning of a longer one.
            cut: Whether it is.
            full_length: Length of that longer text in bytes, when it is known.
        """
        data = clean(text).encode("utf-8", "replace")
        room = max(0, min(self._text, self._left))
        head = data[:room].decode("utf-8", "ignore")
        self._left -= len(escape(head))
        notes = []
        if len(data) > room:
            notes.append(f"{room if head else 0} of {len(data)} bytes are shown here; the trace file has the rest.")
        if cut:
            whole = f" The whole text has {full_length} bytes." if full_length is not None else ""
            notes.append(f"Cut before it was written to the trace.{whole}")
        return Shown(head, " ".join(notes))
