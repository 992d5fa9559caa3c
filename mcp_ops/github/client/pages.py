"""Cursors: where the next page of one list begins, in a form that fits no other list."""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from mcp_ops.github.api import GitHubError

_PLACES: Mapping[str, re.Pattern[str]] = {
    "page": re.compile(r"[1-9][0-9]{0,6}", re.ASCII),
    "after": re.compile(r"[!-~]{1,1000}", re.ASCII),
}
"""Parameters by which GitHub says where a page begins. Nothing else of a link is used: the rest is asked as before."""
_MAX_CURSOR = 4000
_LINK = re.compile(r"<([^<>]{1,8000})>([^<>]{0,1000})")


@dataclass(frozen=True)
class ListName:
    """Which list a cursor belongs to."""

    parts: tuple[str, ...]

    def cursor(self, place: Mapping[str, str]) -> str:
        """Return the cursor of the page that begins there."""
        data = json.dumps({"list": self._digest, "place": dict(place)}, separators=(",", ":"))
        return base64.urlsafe_b64encode(data.encode()).decode().rstrip("=")

    def place(self, cursor: str) -> dict[str, str]:
        """Return where the page of a cursor begins.

        Raises:
            GitHubError: `invalid`; it is no cursor of this list.
        """
        place = _place_in(cursor, self._digest)
        if place is None:
            raise GitHubError(
                "invalid",
                "this cursor is none of this list: give the cursor that an earlier page of the same list, with the same"
                " filters and limit, said",
            )
        return place

    @property
    def _digest(self) -> str:
        return hashlib.sha256(json.dumps(self.parts).encode()).hexdigest()[:24]


def _place_in(cursor: str, digest: str) -> dict[str, str] | None:
    if len(cursor) > _MAX_CURSOR:
        return None
    try:
        read = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except (ValueError, binascii.Error, RecursionError):
        return None
    if not isinstance(read, dict) or set(read) != {"list", "place"} or read["list"] != digest:
        return None
    place = read["place"]
    return place if _is_place(place) else None


def _is_place(place: object) -> bool:
    return (
        isinstance(place, dict)
        and bool(place)
        and all(
            key in _PLACES and isinstance(value, str) and _PLACES[key].fullmatch(value) is not None
            for key, value in place.items()
        )
    )


def next_place(link: str, base: httpx.URL) -> dict[str, str] | None:
    """Read a `Link` header; None when there is no further page.

    Raises:
        GitHubError: `unreadable`; the next page is on another host, or it is not said where it begins.
    """
    target = next((found[1] for found in _LINK.finditer(link) if _is_next(found[2])), None)
    if target is None:
        return None
    try:
        url = httpx.URL(target)
    except httpx.InvalidURL:
        url = httpx.URL()
    if not same_origin(url, base):
        raise GitHubError("unreadable", "GitHub names another host for the next page, which is not asked")
    place = {name: url.params[name] for name in _PLACES if name in url.params}
    if not _is_place(place):
        raise GitHubError("unreadable", "GitHub names a next page and does not say where it begins")
    return place


def _is_next(parameters: str) -> bool:
    return any(
        parameter.strip().rstrip(",").strip().casefold() in ('rel="next"', "rel=next")
        for parameter in parameters.split(";")
    )


def same_origin(one: httpx.URL, other: httpx.URL) -> bool:
    """Tell whether two addresses are of one scheme, host and port, and name no user."""
    return _origin(one) == _origin(other) and not one.userinfo


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}.get(url.scheme)
