"""Nothing of a request to GitHub in the HTTP library's own logs."""

import contextlib
import logging
from collections.abc import Iterator
from contextvars import ContextVar

_LOGGERS = ("httpx", *(f"httpcore.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")))
_asking: ContextVar[bool] = ContextVar("asking", default=False)


def _outside(record: logging.LogRecord) -> bool:
    """Tell whether a record is about somebody else's request."""
    return not _asking.get()


@contextlib.contextmanager
def unlogged() -> Iterator[None]:
    """Keep the library's records of this task out of every log until the block ends.

    They hold addresses with signatures in them, and what the other side said, which may echo a token.
    """
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_outside)
    before = _asking.set(True)
    try:
        yield
    finally:
        _asking.reset(before)
