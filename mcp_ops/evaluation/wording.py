"""How values, paths and names stand in the sentences that a person reads."""

import difflib
import json
import re
from collections.abc import Iterable

from mcp_ops.text import one_line

Path = tuple[str | int, ...]
"""Keys and indexes, from the outside in."""

_PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_-]*")


def show_path(path: Path) -> str:
    """Return a path as people write it: `expect.calls[1].args.pod`."""
    shown_path = ""
    for part in path:
        if isinstance(part, int):
            shown_path += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            shown_path += f".{part}"
        else:
            shown_path += f"[{shown(part)}]"
    return shown_path.removeprefix(".")


def shown(value: object, limit: int = 80) -> str:
    """Return a value as JSON on one line, cleaned, in at most `limit` characters."""
    return one_line(json.dumps(value, ensure_ascii=False, default=str), limit)


def near(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean "expect"?`, or `; known are …` when nothing is near."""
    names = list(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    return f'; did you mean "{close[0]}"?' if close else f"; known are {', '.join(names)}"


def counted(number: float, unit: str) -> str:
    """Return `1 call` or `2 calls`."""
    return f"{number:g} {unit}" if number == 1 else f"{number:g} {unit}s"
