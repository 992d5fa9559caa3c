"""The key of a model endpoint: sent in one header, to one host, and never said."""

from collections.abc import Generator

import httpx

from mcp_ops.text import find_value, one_line

_TELLING = 8
"""So many characters of a key in a row give it away."""


class ApiKey(httpx.Auth):
    """Puts the key into a request, and keeps it out of every sentence."""

    def __init__(self, key: str | None) -> None:
        """Take the key; surrounding white space, which a file often leaves, is not part of it.

        Raises:
            ValueError: A header cannot carry it.
        """
        self._key = (key or "").strip()
        if not all("!" <= character <= "~" for character in self._key):
            raise ValueError("the API key holds a space or a character outside ASCII: copy it again, on one line")

    def __bool__(self) -> bool:
        return bool(self._key)

    def __repr__(self) -> str:
        return "ApiKey(…)" if self else "ApiKey(none)"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the header."""
        if self:
            request.headers["Authorization"] = f"Bearer {self._key}"
        yield request

    def quote(self, text: object) -> str:
        """Return what the other side said, cleaned and on one line; nothing of it when it echoes the key."""
        words = one_line(text) if isinstance(text, str) else ""
        return "" if self._stands_in(text if isinstance(text, str) else "") else words

    def _stands_in(self, text: str) -> bool:
        if not self or not text:
            return False
        # Line breaks, spaces and punctuation may stand between the pieces of an echo.
        said, key = (_letters(part) for part in (text, self._key))
        pieces = {key[start : start + _TELLING] for start in range(max(1, len(key) - _TELLING + 1))}
        return find_value(text, self._key) is not None or any(piece and piece in said for piece in pieces)


def _letters(text: str) -> str:
    return "".join(character for character in text if character.isalnum()).casefold()
