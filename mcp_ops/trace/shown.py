"""How much of a run a page has room for."""

from dataclasses import dataclass
from functools import lru_cache

from markupsafe import Markup

from mcp_ops.text import clean

_MOST_BYTES = 4
"""Of UTF-8 in one character."""


@dataclass(frozen=True)
class Room:
    """How much a page shows of one run. Lengths are in bytes of UTF-8."""

    text: int
    """Most of one text."""
    system: int
    """Most of a system message: the list of tools is the same in every run that has them."""
    total: int
    """Most of all texts together, as they stand in the page; what comes later is left out."""
    rows: int
    """Most rows in the timeline, and in each of the lists."""


@dataclass(frozen=True)
class Shown:
    """A text with as much of it as there is room for, as HTML that can only be read between tags."""

    html: Markup
    note: str = ""
    """What is missing, in one sentence."""


class Paper:
    """Hands out the room of one run, first come, first served."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._left = room.total

    def show(self, text: str, *, cut: bool = False, full_length: int | None = None, system: bool = False) -> Shown:
        """Return as much of `text` as there is room for.

        Args:
            text: The text, which may itself be the beginning of a longer one.
            cut: Whether it is.
            full_length: Length of that longer text in bytes, when it is known.
            system: Whether it is a system message.
        """
        room = max(0, min(self._room.system if system else self._room.text, self._left))
        # A system message comes again in every run with the same tools.
        head = _clean_kept(text) if system else clean(text)
        notes = []
        if len(head) > room // _MOST_BYTES:
            data = head.encode("utf-8", "replace")
            head = data[:room].decode("utf-8", "ignore")
            if len(data) > room:
                notes.append(f"{room if head else 0} of {len(data)} bytes are shown here; the trace file has the rest.")
        html = head.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        self._left -= len(html)
        if cut:
            whole = f" The whole text has {full_length} bytes." if full_length is not None else ""
            notes.append(f"Cut before it was written to the trace.{whole}")
        return Shown(Markup(html), " ".join(notes))  # noqa: S704 -- escaped above


@lru_cache(maxsize=8)
def _clean_kept(text: str) -> str:
    return clean(text)
