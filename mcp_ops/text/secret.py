"""One secret value: kept out of every sentence that is made of what somebody else said."""

import hashlib
from functools import cached_property

from mcp_ops.text.cleaning import one_line
from mcp_ops.text.redaction import find_value

_TELLING = 8
"""So many characters of a secret in a row give it away."""


class Secret:
    """A value that goes into a request and nowhere else."""

    def __init__(self, value: str, *, public: str = "", telling: str | None = None) -> None:
        """Take the value.

        Args:
            value: The secret; an empty one stands in no text.
            public: What everybody knows of its beginning, as `github_pat_` is. It alone gives nothing away.
            telling: The part of it whose pieces give it away, where not all of it does.
        """
        self._value = value
        letters = _letters(value.removeprefix(public) if telling is None else telling)
        starts = range(max(1, len(letters) - _TELLING + 1))
        self._pieces = {letters[start : start + _TELLING] for start in starts} - {""}

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return "Secret(…)" if self else "Secret(none)"

    def reveal(self) -> str:
        """Return the value itself, for the one place that sends it."""
        return self._value

    @cached_property
    def digest(self) -> str:
        """What may stand for the value as a key: it is not told by it."""
        return hashlib.sha256(self._value.encode("utf-8", "replace")).hexdigest()

    def stands_in(self, text: str) -> bool:
        """Tell whether `text` gives the value away: in any encoding, or eight characters of it in a row."""
        if not self or not text:
            return False
        # Line breaks, spaces and punctuation may stand between the pieces of an echo.
        said = _letters(text)
        return find_value(text, self._value) is not None or any(piece in said for piece in self._pieces)

    def quote(self, text: object) -> str:
        """Return what the other side said, cleaned and on one line; nothing of it when it echoes the value."""
        if not isinstance(text, str):
            return ""
        return "" if self.stands_in(text) else one_line(text)


def _letters(text: str) -> str:
    return "".join(character for character in text if character.isalnum()).casefold()
