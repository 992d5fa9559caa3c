"""Pages of lists, and the Link header that goes with them."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from mcp_ops.github.memory.answers import Reply, Request, said

DEFAULT_PAGE, MAX_PAGE = 30, 100


def paged(request: Request, path: str, items: Sequence[Any], wrap: str | None = None) -> Reply:
    """Return the page of a list that was asked for.

    Args:
        request: Says `page` and `per_page`.
        path: Of the list by the repository's id, as GitHub names it in its links.
        items: The whole list.
        wrap: Key under which the entries stand beside `total_count`; None for a bare list.
    """
    size = min(max(_number(request.query, "per_page", DEFAULT_PAGE), 1), MAX_PAGE)
    page, last = max(_number(request.query, "page", 1), 1), max(1, -(-len(items) // size))
    part = list(items[(page - 1) * size : page * size])
    value = part if wrap is None else {"total_count": len(items), wrap: part}
    if page >= last:
        return said(200, value)
    links = [
        f'<{_address(request, path, number)}>; rel="{name}"' for name, number in (("next", page + 1), ("last", last))
    ]
    return said(200, value, Link=", ".join(links))


def _address(request: Request, path: str, page: int) -> str:
    return f"{request.base}{path}?{urlencode({**request.query, 'page': page})}"


def _number(query: Mapping[str, str], name: str, default: int) -> int:
    value = query.get(name, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else default
