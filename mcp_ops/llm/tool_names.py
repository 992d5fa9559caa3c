"""Names of tools as providers take them: letters, digits, `_` and `-`, 64 at most."""

import hashlib
import re
from collections.abc import Iterable

LONGEST = 64
"""Most characters of a tool's name that every provider takes."""

_TAKEN = re.compile(f"[A-Za-z0-9_-]{{1,{LONGEST}}}")
_NOT_TAKEN = re.compile(r"[^A-Za-z0-9_-]")
_DIGITS = 8


class ToolNames:
    """Maps the names of one question's tools to names that a provider takes, and back."""

    def __init__(self, names: Iterable[str]) -> None:
        self._sent: dict[str, str] = {}
        self._meant: dict[str, str] = {}
        # A name that is taken as it is keeps itself, whatever comes before it.
        for name in sorted(set(names), key=lambda name: (_TAKEN.fullmatch(name) is None, name)):
            self._add(name)

    def sent(self, name: str) -> str:
        """Return the name that the provider is sent for a tool, also for one that nobody listed."""
        return self._sent.get(name) or self._add(name)

    def meant(self, name: str) -> str:
        """Return the tool that a name in a reply means. A name that was not sent means itself."""
        return self._meant.get(name, name)

    def _add(self, name: str) -> str:
        sent, number = (name if _TAKEN.fullmatch(name) else _made_of(name, 0)), 0
        while sent in self._meant:
            number += 1
            sent = _made_of(name, number)
        self._sent[name], self._meant[sent] = sent, name
        return sent


def _made_of(name: str, number: int) -> str:
    digest = hashlib.sha256(f"{number} {name}".encode("utf-8", "replace")).hexdigest()[:_DIGITS]
    return f"{_NOT_TAKEN.sub('_', name)[: LONGEST - _DIGITS - 1]}_{digest}"
