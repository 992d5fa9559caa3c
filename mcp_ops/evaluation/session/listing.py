"""A server's list of tools: read within bounds, pinned when it is first seen, compared ever after."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from mcp.client.session import ClientSession
from mcp_types import PaginatedRequestParams, Tool

from mcp_ops.text import clean, one_line

MAX_TOOLS = 200
"""Most tools that are taken from one server; reading ends there."""
MAX_PAGES = 100
"""Most pages of one list. A page may be empty, so that tools alone do not bound them."""
MAX_LISTING_BYTES = 1 << 20
"""Most bytes of one list, as JSON."""

_SHOWN_DIFFERENCES = 20
_WORKSPACE = "{workspace}"
_FIELDS = ("title", "description", "inputSchema", "outputSchema", "annotations")
_UNORDERED = frozenset({"required", "enum", "type"})
"""Keywords of JSON Schema whose lists mean the same in any order."""
_BEFORE_DIFFERENCE = 20
_SHOWN_VALUE = 100


class ListingError(ValueError):
    """A list of tools is not taken. The message is the rest of a sentence that begins with the server."""


async def read_tools(session: ClientSession) -> tuple[Tool, ...]:
    """Return all tools of a server.

    Raises:
        ListingError: The list has no end, is too large, or names a tool twice.
        MCPError: The server sent an error instead.
    """
    tools: list[Tool] = []
    size = 0
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        tools += page.tools[: MAX_TOOLS + 1]
        if len(tools) > MAX_TOOLS:
            raise ListingError(f"it lists more than {MAX_TOOLS} tools")
        size += sum(len(_as_json(_plain(tool))) for tool in page.tools)
        if size > MAX_LISTING_BYTES:
            raise ListingError(f"its list of tools has more than {MAX_LISTING_BYTES} bytes")
        cursor = page.next_cursor
        if cursor is None:
            break
    else:
        raise ListingError(f"its list of tools goes on after {MAX_PAGES} pages")
    names = [clean(tool.name) for tool in tools]
    for name in names:
        if names.count(name) > 1:
            raise ListingError(f"it lists the tool {one_line(name, 60)} twice")
    return tuple(tools)


class ToolPins:
    """The first list of each server of this process, by the server's name."""

    def __init__(self) -> None:
        self._pinned: dict[str, tuple[Sequence[Tool], Path]] = {}

    def differences(self, server: str, tools: Sequence[Tool], workspace: Path) -> list[str]:
        """Return how a list differs from the server's first one; the first one itself is kept and does not differ.

        Args:
            server: The server's name.
            tools: What it lists now.
            workspace: The copy that it works in now: another in each run, so that its path is no difference.
        """
        first, folder = self._pinned.setdefault(server, (tuple(tools), workspace))
        return listing_differences(first, tools, folder, workspace)


def listing_differences(before: Sequence[Tool], after: Sequence[Tool], *workspaces: Path) -> list[str]:
    """Return one readable line for each difference: tool, field, old value, new value. The order of tools is none."""
    old, new = _pinnable(before, workspaces[:1]), _pinnable(after, workspaces[-1:])
    lines = [f"{one_line(name, 60)} is no longer listed" for name in old if name not in new]
    lines += [f"{one_line(name, 60)} is new" for name in new if name not in old]
    for name in old.keys() & new.keys():
        found = _differences(old[name], new[name], (one_line(name, 60),))
        lines += [f"{'.'.join(path)}: {_shown_pair(was, now)}" for path, was, now in islice(found, _SHOWN_DIFFERENCES)]
    if len(lines) <= _SHOWN_DIFFERENCES:
        return lines
    return [*lines[:_SHOWN_DIFFERENCES], f"and {len(lines) - _SHOWN_DIFFERENCES} more"]


def _pinnable(tools: Sequence[Tool], workspaces: Sequence[Path]) -> dict[str, dict[str, Any]]:
    pinnable = {}
    for tool in tools:
        text = _as_json({field: value for field, value in _plain(tool).items() if field in _FIELDS})
        for workspace in workspaces:
            text = text.replace(_as_json(str(workspace))[1:-1], _WORKSPACE)
        pinnable[tool.name] = json.loads(text)
    return pinnable


def _plain(tool: Tool) -> dict[str, Any]:
    return tool.model_dump(by_alias=True, exclude_none=True)


def _as_json(value: object) -> str:
    return json.dumps(value, default=str)


def _differences(was: Any, now: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """Yield the innermost values that differ. A list differs as a whole: its places mean nothing to a reader."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        for key in (*was, *(key for key in now if key not in was)):
            yield from _differences(was.get(key, _ABSENT), now.get(key, _ABSENT), (*path, one_line(key, 60)))
    elif _comparable(was, path) != _comparable(now, path):
        yield path, was, now


_ABSENT = object()


def _comparable(value: Any, path: tuple[str, ...]) -> str | None:
    """Return text that is equal for JSON values that mean the same: `true` is not `1`."""
    if value is _ABSENT:
        return None
    if isinstance(value, list) and path[-1] in _UNORDERED:
        return _as_json(sorted(map(_as_json, value)))
    return json.dumps(value, sort_keys=True)


def _shown_pair(was: Any, now: Any) -> str:
    """Return both values. Two texts that begin alike are shown from shortly before the place where they part."""
    start = 0
    if isinstance(was, str) and isinstance(now, str):
        pairs = zip(was, now, strict=False)
        same = next((place for place, (one, other) in enumerate(pairs) if one != other), min(len(was), len(now)))
        start = max(0, same - _BEFORE_DIFFERENCE)
    return f"{_shown(was, start)} -> {_shown(now, start)}"


def _shown(value: Any, start: int) -> str:
    if value is _ABSENT:
        return "nothing"
    if isinstance(value, str):
        value = ("…" if start else "") + value[start:]
    return one_line(json.dumps(value, ensure_ascii=False), _SHOWN_VALUE)
