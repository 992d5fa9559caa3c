"""How long the other side asks to wait."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


def retry_after(value: str | None, now: datetime) -> float | None:
    """Read a Retry-After header, which says seconds or a date, as seconds. None when it says neither."""
    if value is None:
        return None
    if _SECONDS.fullmatch(value.strip()):
        return float(value)
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    aware = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (aware - now).total_seconds())
