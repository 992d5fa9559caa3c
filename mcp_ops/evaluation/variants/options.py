"""GNU options that a reading program must not get, and the spellings of one.

Written down by themselves, from the manuals: a table of the guard that is to be tried would not show what is missing in
it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mcp_ops.evaluation.variants.words import RawWord


@dataclass(frozen=True)
class Harmful:
    """One option."""

    program: str
    letter: str
    """Empty when it has none."""
    name: str
    """Its long name; empty when it has none."""
    shortest: str
    """The shortest unambiguous beginning of the long name."""
    takes_value: bool = True


HARMFUL = (
    Harmful("sort", "o", "output", "o"),
    Harmful("sort", "T", "temporary-directory", "t"),
    Harmful("sort", "", "compress-program", "co"),
    Harmful("sort", "", "files0-from", "fil"),
    Harmful("sort", "", "random-source", "random-sou"),
    Harmful("wc", "", "files0-from", "f"),
    Harmful("du", "", "files0-from", "f"),
    Harmful("du", "X", "exclude-from", "exclude-"),
    Harmful("du", "L", "dereference", "dereference", takes_value=False),
    Harmful("du", "D", "dereference-args", "dereference-", takes_value=False),
    Harmful("ls", "L", "dereference", "dereference", takes_value=False),
    Harmful("ls", "H", "dereference-command-line", "dereference-command-line", takes_value=False),
    Harmful("stat", "L", "dereference", "d", takes_value=False),
    Harmful("grep", "f", "file", "file"),
    Harmful("grep", "R", "dereference-recursive", "der", takes_value=False),
    Harmful("grep", "", "exclude-from", "exclude-f"),
    Harmful("tail", "f", "follow", "f", takes_value=False),
    Harmful("tail", "F", "", "", takes_value=False),
    Harmful("date", "s", "set", "s"),
    Harmful("date", "f", "file", "f"),
)

COMPANIONS = {
    "sort": "ru",
    "wc": "lw",
    "du": "ah",
    "ls": "la",
    "stat": "t",
    "grep": "ni",
    "tail": "qv",
    "head": "qv",
    "uniq": "ci",
    "date": "u",
    "cat": "n",
}
"""For each program letters of options without a value that change nothing about the harm."""


@dataclass(frozen=True)
class Use:
    """A harmful option in a command line."""

    option: Harmful
    value: str
    """As it is written; empty for an option without one."""
    rest: tuple[str, ...]
    """The other words, the program left out, as they are written."""

    def short(self, companion: str = "", *, apart: bool = False) -> tuple[str, ...]:
        """Return the words of the short spelling, in one bundle with another letter, the value glued or apart."""
        bundle = f"-{companion}{self.option.letter}"
        return (bundle, self.value) if apart and self.value else (bundle + self.value,)

    def long(self, name: str, *, apart: bool = False) -> tuple[str, ...]:
        """Return the words of the long spelling under a full or shortened name."""
        if not self.value:
            return (f"--{name}",)
        return (f"--{name}", self.value) if apart else (f"--{name}={self.value}",)


def find_use(words: Sequence[RawWord]) -> Use | None:
    """Return the first harmful option of a command line, in whatever spelling."""
    for at, word in enumerate(words[1:], 1):
        for option in HARMFUL:
            if option.program != words[0].text:
                continue
            for value, used in _values(option, word.text, words[at + 1].text if at + 1 < len(words) else None):
                others = (*words[1:at], *words[at + used :])
                return Use(option, value, tuple(other.text for other in others))
    return None


def _values(option: Harmful, word: str, following: str | None) -> Iterator[tuple[str, int]]:
    """Yield the value that a word gives to an option, and how many words that takes; nothing for any other word."""
    name, equals, value = word.partition("=")
    shortest = f"--{option.shortest}"
    if word.startswith("--"):
        if not option.name or not (name.startswith(shortest) and f"--{option.name}".startswith(name)):
            return
        glued = value if equals else None
    elif word.startswith("-") and option.letter:
        bundle, letter, glued_value = word[1:].partition(option.letter)
        if not letter or not set(bundle) <= set(COMPANIONS[option.program]):
            return
        glued = glued_value or None
    else:
        return
    if not option.takes_value:
        if glued is None:
            yield "", 1
    elif glued is not None:
        yield glued, 1
    elif following is not None:
        yield following, 2
