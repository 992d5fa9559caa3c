"""What the tools need of GitHub, and nothing else: one interface, typed answers, typed failures."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Literal, Protocol, TypeVar

from mcp_ops.text import Secret, one_line

T = TypeVar("T")

IssueState = Literal["open", "closed", "all"]


@dataclass(frozen=True)
class RepoName:
    """`owner/name` of a repository. Names are compared without regard to letter case, as GitHub does."""

    owner: str
    name: str

    def __str__(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def key(self) -> str:
        """The form in which two names are compared."""
        return str(self).casefold()


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a list."""

    items: Sequence[T]
    next: str | None = None
    """Cursor of the next page; None when this is the last one."""


@dataclass(frozen=True)
class Repository:
    """A repository."""

    name: RepoName
    private: bool
    """Whether not everybody can read it; what GitHub calls internal is private."""
    default_branch: str
    description: str = ""
    open_issues: int = 0
    """Issues and pull requests, as GitHub counts them."""
    archived: bool = False


@dataclass(frozen=True)
class PullRequest:
    """A pull request. Authors and reviewers whose accounts are gone are None."""

    number: int
    title: str
    author: str | None
    head_branch: str
    head_sha: str
    base_branch: str
    updated: datetime
    url: str
    body: str = ""
    draft: bool = False
    state: str = "open"
    labels: tuple[str, ...] = ()
    requested_reviewers: tuple[str | None, ...] = ()


@dataclass(frozen=True)
class Review:
    """What one reviewer said."""

    author: str | None
    state: str
    """`approved`, `changes_requested`, `commented`, `dismissed` or `pending`."""
    submitted: datetime | None = None


@dataclass(frozen=True)
class ChangedFile:
    """One file of a pull request."""

    path: str
    status: str
    additions: int
    deletions: int
    patch: str | None = None
    """None for a binary file and for one that GitHub does not show."""


@dataclass(frozen=True)
class CommitStatus:
    """A status that something outside reported for a commit."""

    context: str
    state: str


@dataclass(frozen=True)
class CheckRun:
    """A check of GitHub's newer system."""

    name: str
    status: str
    conclusion: str | None


@dataclass(frozen=True)
class Job:
    """A job of a workflow run."""

    id: int
    name: str
    conclusion: str | None


@dataclass(frozen=True)
class Issue:
    """An issue that is no pull request."""

    number: int
    title: str
    author: str | None
    state: str
    updated: datetime
    url: str
    body: str = ""
    labels: tuple[str, ...] = ()
    comments: int = 0


@dataclass(frozen=True)
class Commit:
    """A commit of the default branch."""

    sha: str
    message: str
    author: str | None
    date: datetime


@dataclass(frozen=True)
class Log:
    """The last part of a job's log."""

    text: str
    full_length: int
    """In bytes, as far as it was read."""


FailureKind = Literal[
    "unauthorized",
    "forbidden",
    "sso_required",
    "not_found",
    "gone",
    "invalid",
    "rate_limited",
    "secondary_limit",
    "server",
    "timeout",
    "network",
    "redirected",
    "unreadable",
]
"""Why there is no answer. `not_found` also stands for a private repository that the token cannot see."""


class GitHubError(Exception):
    """GitHub gave no usable answer. The message is one sentence without any secret in it.

    Args:
        kind: Why.
        message: The sentence.
        retry_at: When to ask again, if GitHub said so.
        may_be_done: Whether a write may have taken place all the same.
    """

    def __init__(
        self, kind: FailureKind, message: str, *, retry_at: datetime | None = None, may_be_done: bool = False
    ) -> None:
        super().__init__(one_line(message, 500))
        self.kind = kind
        self.retry_at = retry_at
        self.may_be_done = may_be_done


class GitHub(Protocol):
    """GitHub as the tools see it. Every method raises `GitHubError` and nothing else for what GitHub does.

    Lists are one page of at most `limit` entries; a `cursor` is what an earlier page of the same list said as `next`.
    """

    def secrets(self) -> Sequence[Secret]:
        """Return the values that must stand in no text, as far as they are known by now."""
        ...

    async def repository(self, repo: RepoName) -> Repository:
        """Return a repository, by its present name: after a renaming this is not the name that was asked for."""
        ...

    async def pull_requests(
        self, repo: RepoName, *, limit: int, cursor: str | None = None, updated_since: datetime | None = None
    ) -> Page[PullRequest]:
        """Return open pull requests, the most recently updated first.

        With `updated_since`, pull requests in any state that were updated since then.
        """
        ...

    async def pull_request(self, repo: RepoName, number: int) -> PullRequest:
        """Return one pull request."""
        ...

    async def files(self, repo: RepoName, number: int, *, limit: int) -> Page[ChangedFile]:
        """Return the changed files of a pull request."""
        ...

    async def reviews(self, repo: RepoName, number: int, *, limit: int) -> Page[Review]:
        """Return the reviews of a pull request, oldest first."""
        ...

    async def statuses(self, repo: RepoName, sha: str) -> Sequence[CommitStatus]:
        """Return the latest status of each context of a commit, all of them up to 100."""
        ...

    async def check_runs(self, repo: RepoName, sha: str) -> Sequence[CheckRun]:
        """Return the latest check runs of a commit, all of them up to 100."""
        ...

    async def failed_jobs(self, repo: RepoName, sha: str) -> Sequence[Job]:
        """Return the failed jobs of the latest workflow runs of a commit."""
        ...

    async def job_log(self, repo: RepoName, job: int, *, max_bytes: int) -> Log:
        """Return the end of a job's log, at most so many bytes of it."""
        ...

    async def issues(
        self,
        repo: RepoName,
        *,
        state: IssueState = "open",
        labels: Sequence[str] = (),
        limit: int,
        cursor: str | None = None,
        updated_since: datetime | None = None,
    ) -> Page[Issue]:
        """Return issues without pull requests, the most recently updated first. A page may hold fewer than `limit`."""
        ...

    async def commits(self, repo: RepoName, *, since: datetime, limit: int) -> Page[Commit]:
        """Return commits of the default branch since a time, newest first."""
        ...

    async def create_issue(self, repo: RepoName, *, title: str, body: str, labels: Sequence[str] = ()) -> Issue:
        """Open an issue. It is not sent twice: a lost answer is an error that says that the issue may be there."""
        ...
