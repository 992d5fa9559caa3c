"""Words of a command line as they are written, by the quoting rules of a POSIX shell."""

import re
from dataclasses import dataclass

_WORD = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+""", re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z0-9_./:,@%+-]+")


@dataclass(frozen=True)
class RawWord:
    """One word."""

    text: str
    """As it is written, quotes included."""
    start: int
    """Where it begins in the command line."""

    @property
    def end(self) -> int:
        """Where it ends in the command line."""
        return self.start + len(self.text)

    @property
    def is_plain(self) -> bool:
        """Whether a shell reads it letter by letter: no quote, no glob, no operator, no home folder."""
        return _PLAIN.fullmatch(self.text) is not None


def raw_words(command: str) -> list[RawWord]:
    """Return the words of a command line; none when a quote does not close or it ends in a backslash."""
    words = [RawWord(found[0], found.start()) for found in _WORD.finditer(command)]
    between = _WORD.sub("", command)
    return words if not between.strip() else []
