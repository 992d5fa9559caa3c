"""A call as a person is shown it before it is sent: every argument in full, nothing that a terminal obeys."""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcp_ops.agent.policies.confirmation import Ask

_NARROWEST = 20
_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Me"})
"""Categories of characters that show nothing, or act on what stands beside them."""
_LOOKS_EMPTY = re.compile("[\u00a0\u034f\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200a\u202f\u205f"
                          "\u2800\u3000\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")  # fmt: skip


def visible(text: str) -> str:
    """Return a text in which every character can be seen: those that show nothing become `<U+202E>`. LF stays.

    Nothing is left out. What only reads badly, such as an HTML comment, a mention or the address of an image, stays
    as it is.
    """
    return "".join(each if each == "\n" or not _is_unseen(each) else f"<U+{ord(each):04X}>" for each in text)


def _is_unseen(character: str) -> bool:
    if " " <= character <= "~":
        return False
    return unicodedata.category(character) in _UNSEEN or _LOOKS_EMPTY.fullmatch(character) is not None


def preview(asked: Ask, width: int) -> list[str]:
    """Return the rows that show a call, none of them wider than `width` columns.

    Each row of a text begins with `|`; where a long line of it goes on in the next row, that one begins with `:`.
    """
    head = f"{visible(asked.tool)}, a {asked.tool_class.replace('_', '-')} tool of server {visible(asked.server)}:"
    rows = list(_wrapped(head.replace("\n", "<U+000A>"), width, "", "  "))
    for name, value in asked.arguments.items():
        rows += _argument(visible(name).replace("\n", "<U+000A>"), value, width)
    if not asked.arguments:
        rows.append("  no arguments")
    return rows


def pages(rows: Sequence[str], height: int) -> list[Sequence[str]]:
    """Return rows in pages of at most `height`; at least one page."""
    return [rows[start : start + height] for start in range(0, len(rows), height)] or [[]]


def _argument(name: str, value: Any, width: int) -> Iterator[str]:
    if isinstance(value, Mapping | list):
        value = json.dumps(value, indent=2, ensure_ascii=False)
    elif not isinstance(value, str):
        yield from _wrapped(f"  {name}: {json.dumps(value)}", width, "", "    ")
        return
    yield from _wrapped(f"  {name}:", width, "", "    ")
    for line in visible(value).split("\n"):
        yield from _wrapped(line, width, "    | ", "    : ")


def _wrapped(line: str, width: int, first: str, further: str) -> Iterator[str]:
    """Yield a line in rows that fit. A character whose width depends on the terminal counts as wide."""
    width = max(width, _NARROWEST)
    row, room = first, width - len(first)
    for character in line:
        columns = 2 if unicodedata.east_asian_width(character) in "WFA" else 1
        if columns > room:
            yield row
            row, room = further, width - len(further)
        row += character
        room -= columns
    yield row
