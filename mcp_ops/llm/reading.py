"""Taking values out of JSON that somebody else wrote, whatever it is."""

import json
import math
from collections.abc import Mapping
from typing import Any


def json_of(data: bytes | str) -> Any:
    """Return the value that stands in `data`; None when it is no JSON."""
    try:
        return json.loads(data.decode("utf-8-sig") if isinstance(data, bytes) else data)
    except (ValueError, RecursionError):
        return None


def mapping(value: object) -> Mapping[str, Any]:
    """Return an object, or an empty one."""
    return value if isinstance(value, dict) else {}


def mappings(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a list, or none."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(value: object) -> str:
    """Return a text, or an empty one."""
    return value if isinstance(value, str) else ""


def count(value: object) -> int | None:
    """Return a number of things."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def amount(value: object) -> float | None:
    """Return an amount of money."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
    return float(value) if known else None  # type: ignore[arg-type]
