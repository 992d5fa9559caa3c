"""A request to the in-memory GitHub and its reply."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_DOCS = "https://docs.github.com/rest"


@dataclass(frozen=True)
class Request:
    """A request as it came."""

    method: str
    path: str
    """Without the query and without an Enterprise prefix, parts still percent-encoded."""
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """By name in lower case."""
    body: bytes = b""
    base: str = ""
    """Scheme, host, port and Enterprise prefix under which the client reached it."""

    @property
    def token(self) -> str:
        """The token that came with it."""
        kind, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if kind.casefold() in ("bearer", "token") else ""


@dataclass(frozen=True)
class Reply:
    """A reply to be sent."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def json(self) -> Any:
        """The body, read."""
        return json.loads(self.body)


def said(status: int, value: Any, **headers: str) -> Reply:
    """Return a reply with a JSON value."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Reply(status, {"Content-Type": "application/json; charset=utf-8", **named}, json.dumps(value).encode())


def failed(status: int, message: str, **more: Any) -> Reply:
    """Return a failure in the form that GitHub gives all of them."""
    return said(status, {"message": message, **more, "documentation_url": _DOCS, "status": str(status)})


NOT_FOUND = failed(404, "Not Found")
