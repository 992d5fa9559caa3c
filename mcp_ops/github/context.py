"""What every guard and runner of the github server knows."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from mcp_ops.github.api import GitHub, Repository
from mcp_ops.github.watchlist import Watchlist
from mcp_ops.text import Redactor


class PrivateReads:
    """Which private repositories were read since the server was made. It only grows."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def note(self, repository: Repository) -> None:
        """Remember a repository that is about to be read, if it is private."""
        if repository.private:
            self._names.setdefault(repository.name.key, str(repository.name))

    def __bool__(self) -> bool:
        return bool(self._names)

    def __str__(self) -> str:
        return ", ".join(self._names.values())


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class GitHubContext:
    """GitHub, and which of its repositories may be read and written."""

    client: GitHub | None
    """None: every tool answers `github.no_token`."""
    watchlist: Watchlist
    write_repos: Watchlist = field(default_factory=Watchlist)
    extended: bool = False
    """Whether every repository that the credential sees may be read."""
    private_reads: PrivateReads = field(default_factory=PrivateReads)
    seconds: float = 60.0
    """Longest time of one read, over all requests that it takes."""
    now: Callable[[], datetime] = _now

    def hide(self, value: object) -> object:
        """Return a JSON value without the server's credentials, whoever wrote them into it."""
        secrets = () if self.client is None else self.client.secrets()
        return Redactor({secret.reveal(): "github-token" for secret in secrets if secret}).value(value)
