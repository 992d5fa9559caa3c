"""Lists of repositories, and the form of their names."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from mcp_ops.github.api import RepoName
from mcp_ops.text import one_line

OWNER_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"
"""Also in the schemas of tools: no look-around, which their engine does not know."""
NAME_PATTERN = r"^\.{0,2}[A-Za-z0-9_-][A-Za-z0-9._-]*$"
"""`.github` is a name; `.` and `..` are none."""
MAX_OWNER = 39
MAX_NAME = 100
MAX_REPOS = 200
"""Most repositories of one list: the resource shows it whole."""
MAX_SHOWN = 20
"""Most repositories of a list that a sentence names."""

_OWNER = re.compile(OWNER_PATTERN.removesuffix("$"))
_NAME = re.compile(NAME_PATTERN.removesuffix("$"))


@dataclass(frozen=True)
class Watchlist:
    """A list of repositories, each once. Two names are equal without regard to letter case.

    The same form of list says what may be written to.
    """

    repos: tuple[RepoName, ...] = ()
    _keys: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_keys", frozenset(repo.key for repo in self.repos))

    @classmethod
    def of(cls, names: Iterable[str | RepoName]) -> "Watchlist":
        """Return the list of these names, `owner/repo` each.

        Raises:
            ValueError: One is no name of a repository, or there are too many. The message is one sentence.
        """
        known: dict[str, RepoName] = {}
        for name in names:
            repo = parse_repo(str(name))
            known.setdefault(repo.key, repo)
        if len(known) > MAX_REPOS:
            raise ValueError(f"it names {len(known)} repositories; write at most {MAX_REPOS}")
        return cls(tuple(known.values()))

    @classmethod
    def parse(cls, text: str, *, of: str) -> "Watchlist":
        """Read `owner/repo,owner/other`; spaces and line ends around a name do not matter.

        Raises:
            ValueError: It is something else. The message is one sentence that begins with `of`.
        """
        try:
            return cls.of(name for name in re.split(r"[,\n]", text) if name.strip())
        except ValueError as error:
            raise ValueError(f"{of}: {error}") from None

    def __contains__(self, repo: RepoName) -> bool:
        return repo.key in self._keys

    def __iter__(self) -> Iterator[RepoName]:
        return iter(self.repos)

    def __len__(self) -> int:
        return len(self.repos)

    def __str__(self) -> str:
        """Return the names, of a long list the first ones and how many more there are."""
        more = len(self.repos) - MAX_SHOWN
        names = [*map(str, self.repos[:MAX_SHOWN]), *([f"and {more} more"] if more > 0 else [])]
        return ", ".join(names) or "nothing"


def parse_repo(text: str) -> RepoName:
    """Read `owner/repo`.

    Raises:
        ValueError: It is something else. The message is one sentence that says what to write.
    """
    owner, slash, name = text.strip().partition("/")
    if slash and _fits(_OWNER, owner, MAX_OWNER) and _fits(_NAME, name, MAX_NAME):
        return RepoName(owner, name)
    raise ValueError(f"{one_line(text.strip(), 80)!r} is no owner/repo; write owner/repo,owner/other without addresses")


def _fits(pattern: re.Pattern[str], text: str, longest: int) -> bool:
    return len(text) <= longest and pattern.fullmatch(text) is not None
