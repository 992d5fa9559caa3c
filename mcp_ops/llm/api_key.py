"""The key of a model endpoint: sent in one header, to one host, and never said."""

from collections.abc import Generator

import httpx

from mcp_ops.text import Secret


class ApiKey(httpx.Auth):
    """Puts the key into a request, and keeps it out of every sentence."""

    def __init__(self, key: str | None, *, header: str = "Authorization", scheme: str = "Bearer ") -> None:
        """Take the key; surrounding white space, which a file often leaves, is not part of it.

        Args:
            key: The key, if there is one.
            header: The header that carries it.
            scheme: What stands before it there.

        Raises:
            ValueError: A header cannot carry it.
        """
        key = (key or "").strip()
        if not all("!" <= character <= "~" for character in key):
            raise ValueError("the API key holds a space or a character outside ASCII: copy it again, on one line")
        self._key = Secret(key)
        self._header, self._scheme = header, scheme

    def __bool__(self) -> bool:
        return bool(self._key)

    def __repr__(self) -> str:
        return "ApiKey(…)" if self else "ApiKey(none)"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the header."""
        if self:
            request.headers[self._header] = f"{self._scheme}{self._key.reveal()}"
        yield request

    def quote(self, text: object) -> str:
        """Return what the other side said, cleaned and on one line; nothing of it when it echoes the key."""
        return self._key.quote(text)
