"""The denied call that is varied, and what a family makes of it.

A family looks at arguments by their names (`command`, `path`, `glob`, the slots of the cluster tools, `owner` and
`repo`), so that it also fits the tools of another server that call them the same.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_ops.evaluation.line.world_spec import NO_LINKS, Links
from mcp_ops.evaluation.variants.words import RawWord, raw_words
from mcp_ops.trace.events import StateName

DENIED: tuple[StateName, ...] = ("denied",)
NOT_THERE: tuple[StateName, ...] = ("denied", "failed")
"""For spellings that only a server which decodes or normalises names takes for the target: to any other one they name
a file that is not there, and nothing was read."""

CLAIMED = "claimed"
"""The rule of every denial by a server that is not ours: what it refuses, only the call itself says."""

_READ = ("cat", "head", "tail", "wc", "grep", "sort", "uniq")
_PATH_WORD = re.compile(r"[~A-Za-z0-9_./][A-Za-z0-9_./@%-]*")
_REPOSITORY = ("owner", "repo")
_SLOT_OF_RULE = {
    "kubectl.name": ("name", "pod"),
    "kubectl.namespace": ("namespace",),
    "kubectl.output": ("output",),
    "github.watchlist": _REPOSITORY,
    "github.write_repos": _REPOSITORY,
}


@dataclass(frozen=True)
class Changed:
    """One variant of a call."""

    args: Mapping[str, Any]
    states: tuple[StateName, ...] = DENIED
    """What may become of it."""
    plant: Mapping[str, str] = field(default_factory=dict)
    """Files that its world has besides the line's."""
    links: Links = NO_LINKS


@dataclass(frozen=True)
class PathSlot:
    """A path in the arguments of a call."""

    text: str
    put: Callable[[str], Mapping[str, Any]]
    """Returns the arguments with another path in its place."""
    in_command: bool
    """It is a word of a command line, without quotes."""


@dataclass(frozen=True)
class Attack:
    """A call that is expected to be denied."""

    args: Mapping[str, Any]
    rules: tuple[str, ...]
    """The rules that refuse it; empty when the line names none."""

    def is_about(self, *beginnings: str) -> bool:
        """Whether it is refused in the name of a rule that begins so, or of one that says nothing of the reason."""
        return not self.rules or any(rule.startswith((*beginnings, CLAIMED)) for rule in self.rules)

    def text(self, name: str) -> str | None:
        """Return an argument if it is a text that holds something."""
        value = self.args.get(name)
        return value if isinstance(value, str) and value else None

    def with_arg(self, name: str, value: str) -> Mapping[str, Any]:
        """Return the arguments with one of them replaced."""
        return {**self.args, name: value}

    def words(self) -> list[RawWord]:
        """Return the words of the command line; none when there is no command or its quotes do not close."""
        return raw_words(self.text("command") or "")

    def with_words(self, *texts: str) -> Mapping[str, Any]:
        """Return the arguments with these words, as they are to be written, as the command line."""
        return self.with_arg("command", " ".join(texts))

    def paths(self) -> Iterator[PathSlot]:
        """Yield the path that is refused: the argument `path`, or the last file that a reading command names."""
        path = self.text("path")
        if path is not None and "\0" not in path:
            yield PathSlot(path, lambda new: self.with_arg("path", new), in_command=False)
        command, words = self.text("command") or "", self.words()
        if words and words[0].text in _READ:
            word = next((word for word in reversed(words[1:]) if _is_path(word.text)), None)
            if word is not None:
                before, behind = command[: word.start], command[word.end :]
                yield PathSlot(word.text, lambda new: self.with_arg("command", before + new + behind), in_command=True)

    def repository(self) -> Iterator[tuple[str, str]]:
        """Yield name and value of both parts of a repository's name, if it is what is refused."""
        if any(_SLOT_OF_RULE.get(rule) == _REPOSITORY for rule in self.rules):
            yield from self.slots()

    def slots(self) -> Iterator[tuple[str, str]]:
        """Yield name and value of the slots that are refused: a cluster tool's kind unless a rule says others."""
        names = next((_SLOT_OF_RULE[rule] for rule in self.rules if rule in _SLOT_OF_RULE), ("resource",))
        for name in names:
            value = self.text(name)
            if value is not None:
                yield name, value


Family = Callable[[Attack], Iterator[Changed]]


def _is_path(word: str) -> bool:
    return _PATH_WORD.fullmatch(word) is not None and ("/" in word or "." in word)
