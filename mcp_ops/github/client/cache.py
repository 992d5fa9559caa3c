"""Answers that are kept for the question whether they changed."""

import re
from collections import OrderedDict
from dataclasses import dataclass, field

_ETAG = re.compile(r'(?:W/)?"[!#-~]{1,200}"', re.ASCII)


@dataclass(frozen=True)
class Kept:
    """An answer as it came."""

    etag: str
    link: str
    body: bytes = field(repr=False)


class AnswerCache:
    """The most recently used answers by address and digest of a credential, within a number of entries and of bytes."""

    def __init__(self, max_entries: int = 256, max_bytes: int = 8 * 1024 * 1024) -> None:
        """Bound it; an answer that is too large by itself is not kept."""
        self._max_entries, self._max_bytes = max_entries, max_bytes
        self._kept: OrderedDict[tuple[str, str], Kept] = OrderedDict()
        self._bytes = 0

    def get(self, url: str, credential: str) -> Kept | None:
        """Return what was kept for an address, as this credential saw it."""
        key = (url, credential)
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
        return kept

    def put(self, url: str, credential: str, *, etag: str, link: str, body: bytes) -> None:
        """Keep an answer, unless its tag is none that could be asked with."""
        key = (url, credential)
        self._drop(key)
        if not _ETAG.fullmatch(etag) or len(body) > self._max_bytes or not self._max_entries:
            return
        self._kept[key] = Kept(etag, link, body)
        self._bytes += len(body)
        while len(self._kept) > self._max_entries or self._bytes > self._max_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: tuple[str, str]) -> None:
        gone = self._kept.pop(key, None)
        self._bytes -= len(gone.body) if gone else 0
