"""The client: each method of the interface is a request or two to GitHub's REST API."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TypeVar

import httpx

from mcp_ops.github.api import (
    ChangedFile,
    CheckRun,
    Commit,
    CommitStatus,
    GitHubError,
    Issue,
    IssueState,
    Job,
    Log,
    Page,
    PullRequest,
    RepoName,
    Repository,
    Review,
)
from mcp_ops.github.client import models
from mcp_ops.github.client.answer import Answer
from mcp_ops.github.client.auth import Credentials
from mcp_ops.github.client.connection import Limits
from mcp_ops.github.client.pages import ListName, next_place
from mcp_ops.github.client.paths import commit_sha, positive, repo_path
from mcp_ops.github.client.sending import Progress, Sender
from mcp_ops.text import Secret
from mcp_ops.wire import base_address

T = TypeVar("T")

MAX_PAGE = 100
"""Entries of a page, as GitHub bounds them."""
_MAX_RUNS = 5
_MAX_JOBS = 100
_FAILED = ("failure", "timed_out", "startup_failure", "action_required", "cancelled")
"""Conclusions of a failed job, the most telling first."""
_FINE = ("success", "neutral", "skipped")
_OVERLAP = 4096
"""Bytes before the end of a log in which a secret may begin that ends in it."""


class RestGitHub:
    """GitHub over its REST API. One object serves one event loop and is closed with `aclose`."""

    def __init__(
        self,
        base_url: str,
        credentials: Credentials,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        limits: Limits | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Prepare; nothing is opened or sent yet.

        Args:
            base_url: `https://api.github.com`, or `https://ghe.example/api/v3`; http on loopback only.
            credentials: They go to the base URL's host and to no other.
            transport: Something else than the network.
            limits: How long to wait and how much to read.
            now: Current time.

        Raises:
            ValueError: The URL cannot be used.
        """
        base = base_address(base_url, example="https://api.github.com", secret="the GitHub token")  # noqa: S106
        if base.query:
            raise ValueError("the base URL holds a query: write it like https://api.github.com")
        self._credentials, self._limits = credentials, limits or Limits()
        self._sender = Sender(base, credentials, transport=transport, limits=self._limits, now=now)

    def __repr__(self) -> str:
        return f"RestGitHub({self._sender.base.host})"

    async def __aenter__(self) -> "RestGitHub":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._sender.aclose()

    def secrets(self) -> Sequence[Secret]:
        """Return every value that must stand in no text, as known now."""
        return self._credentials.secrets()

    async def repository(self, repo: RepoName) -> Repository:
        """Return a repository."""
        read = await self._one(models.Repository, repo_path(repo), {}, f"repository {repo}")
        return self._credentials.redacted(read.plain())

    async def pull_requests(
        self, repo: RepoName, *, limit: int, cursor: str | None = None, updated_since: datetime | None = None
    ) -> Page[PullRequest]:
        """Return open pull requests, or those in any state that were updated since a time; latest update first."""
        params = {"state": "all" if updated_since else "open", "sort": "updated", "direction": "desc"}
        page = await self._page(
            models.PullRequest, repo_path(repo, "pulls"), params, f"pull requests of {repo}", limit, cursor
        )
        if updated_since is None:
            return page
        recent = tuple(item for item in page.items if item.updated >= updated_since)
        return Page(recent, page.next if len(recent) == len(page.items) else None)

    async def pull_request(self, repo: RepoName, number: int) -> PullRequest:
        """Return one pull request."""
        path = repo_path(repo, "pulls", positive(number))
        read = await self._one(models.PullRequest, path, {}, f"pull request #{number} of {repo}")
        return self._credentials.redacted(read.plain())

    async def files(self, repo: RepoName, number: int, *, limit: int) -> Page[ChangedFile]:
        """Return the changed files of a pull request."""
        path = repo_path(repo, "pulls", positive(number), "files")
        return await self._page(models.ChangedFile, path, {}, f"files of pull request #{number} of {repo}", limit)

    async def reviews(self, repo: RepoName, number: int, *, limit: int) -> Page[Review]:
        """Return the reviews of a pull request, oldest first."""
        path = repo_path(repo, "pulls", positive(number), "reviews")
        return await self._page(models.Review, path, {}, f"reviews of pull request #{number} of {repo}", limit)

    async def statuses(self, repo: RepoName, sha: str) -> Sequence[CommitStatus]:
        """Return the latest status of each context of a commit, all of them up to 100."""
        path = repo_path(repo, "commits", commit_sha(sha), "status")
        params = {"per_page": str(MAX_PAGE)}
        read = await self._one(models.CombinedStatus, path, params, f"statuses of commit {sha[:12]} of {repo}")
        return self._plain(read.statuses)

    async def check_runs(self, repo: RepoName, sha: str) -> Sequence[CheckRun]:
        """Return the latest check runs of a commit, all of them up to 100."""
        path = repo_path(repo, "commits", commit_sha(sha), "check-runs")
        params = {"filter": "latest", "per_page": str(MAX_PAGE)}
        read = await self._one(models.CheckRuns, path, params, f"check runs of commit {sha[:12]} of {repo}")
        return self._plain(read.check_runs)

    async def failed_jobs(self, repo: RepoName, sha: str) -> Sequence[Job]:
        """Return the failed jobs of the latest workflow runs of a commit: of five runs at most, failures first."""
        what = f"workflow runs of commit {sha[:12]} of {repo}"
        params = {"head_sha": commit_sha(sha), "per_page": str(MAX_PAGE)}
        read = await self._one(models.WorkflowRuns, repo_path(repo, "actions", "runs"), params, what)
        # A workflow runs once for each event, such as a push and the pull request that it belongs to.
        latest: dict[tuple[int, str], models.WorkflowRun] = {}
        for run in read.workflow_runs:
            key = (run.workflow_id, run.event)
            latest[key] = max(run, latest.get(key, run), key=lambda each: each.id)
        wanted = [run for run in latest.values() if run.conclusion not in _FINE]
        wanted.sort(key=lambda run: run.conclusion not in _FAILED)
        jobs: list[Job] = []
        for run in wanted[:_MAX_RUNS]:
            path = repo_path(repo, "actions", "runs", run.id, "jobs")
            params = {"filter": "latest", "per_page": str(_MAX_JOBS)}
            listed = await self._one(models.Jobs, path, params, f"jobs of workflow run {run.id} of {repo}")
            jobs += [job for job in self._plain(listed.jobs) if job.conclusion in _FAILED]
        return tuple(sorted(jobs, key=lambda job: _FAILED.index(job.conclusion or "")))

    async def job_log(self, repo: RepoName, job: int, *, max_bytes: int) -> Log:
        """Return the end of a job's log, at most so many bytes of it."""
        what = f"log of job {job} of {repo}"
        path = repo_path(repo, "actions", "jobs", positive(job), "logs")
        answer = await self._sender.download(path, what, keep=max_bytes + _OVERLAP)
        if answer.status != 200:
            raise self._sender.failure(answer, what)
        # Secrets are taken out before the text is cut, so that no part of one is left at the cut.
        text = self._credentials.redacted(answer.body.decode("utf-8", "replace").removeprefix("\ufeff"))
        end = f"\n[the log goes on: only its first {answer.length} bytes were read]" if not answer.complete else ""
        return Log(_end(text, max_bytes - len(end)) + end if max_bytes else "", answer.length)

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
        if any("," in label or not _encodable(label) for label in labels):
            raise GitHubError(
                "invalid", "GitHub cannot be asked for a label with a comma or half a character: leave it out"
            )
        params = {"state": state, "sort": "updated", "direction": "desc"}
        if labels:
            params["labels"] = ",".join(labels)
        since = {"since": _timestamp(updated_since)} if updated_since else {}
        path, what = repo_path(repo, "issues"), f"issues of {repo}"
        return await self._page(models.Issue, path, params, what, limit, cursor, unbound=since)

    async def commits(self, repo: RepoName, *, since: datetime, limit: int) -> Page[Commit]:
        """Return commits of the default branch since a time, newest first. An empty repository has none."""
        params = {"since": _timestamp(since)}
        return await self._page(
            models.Commit, repo_path(repo, "commits"), params, f"commits of {repo}", limit, empty=409
        )

    async def create_issue(self, repo: RepoName, *, title: str, body: str, labels: Sequence[str] = ()) -> Issue:
        """Open an issue. It is not sent twice: a lost answer is an error that says that the issue may be there."""
        what = f"new issue in {repo}"
        content = json.dumps({"title": title, "body": body, "labels": list(labels)}).encode("ascii")
        path, progress, failed = repo_path(repo, "issues"), Progress(), None
        try:
            answer = await self._sender.post(path, content, what, progress)
            if answer.status == 201:
                created: models.Issue = models.parsed(models.Issue, answer, what)
                return self._credentials.redacted(created.plain())
            failed = self._sender.failure(answer, what)
        except GitHubError as error:
            failed = error
        if progress.sent and failed.kind in ("timeout", "network", "server", "unreadable"):
            sentence = f"{failed}; the issue may be there all the same: look before you try again"
            raise GitHubError(failed.kind, sentence, may_be_done=True)
        raise failed

    async def _one(self, shape: type[T], path: str, params: Mapping[str, str], what: str) -> T:
        answer = await self._sender.get(path, params, what)
        if answer.status != 200:
            raise self._sender.failure(answer, what)
        read: T = models.parsed(shape, answer, what)
        return read

    async def _page(
        self,
        shape: Any,
        path: str,
        params: Mapping[str, str],
        what: str,
        limit: int,
        cursor: str | None = None,
        *,
        unbound: Mapping[str, str] | None = None,
        empty: int | None = None,
    ) -> Page[Any]:
        """Return one page.

        Args:
            shape: Of an entry.
            path: Of the list.
            params: What the list is narrowed by; a cursor is good for the same only.
            what: In words.
            limit: Most entries, from 1 to 100.
            cursor: Where the page begins.
            unbound: Further parameters, which may be others with the next page.
            empty: A status that stands for a list without entries.
        """
        limit = max(1, min(limit, MAX_PAGE))
        asked = {**params, "per_page": str(limit)}
        name = ListName((path.casefold(), *(f"{key}={value}" for key, value in sorted(asked.items()))))
        place = name.place(cursor) if cursor is not None else {}
        answer = await self._sender.get(path, {**asked, **(unbound or {}), **place}, what)
        if answer.status == empty:
            return Page(())
        if answer.status != 200:
            raise self._sender.failure(answer, what)
        entries = models.parsed(tuple[shape, ...], answer, what)[:limit]
        items = self._plain([entry for entry in entries if getattr(entry, "pull_request", None) is None])
        return Page(items, self._next(name, answer))

    def _next(self, name: ListName, answer: Answer) -> str | None:
        place = next_place(answer.link, self._sender.base)
        if place is None or any(secret.stands_in(value) for secret in self.secrets() for value in place.values()):
            return None
        return name.cursor(place)

    def _plain(self, entries: Sequence[Any]) -> tuple[Any, ...]:
        return self._credentials.redacted(tuple(entry.plain() for entry in entries))


def _timestamp(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _encodable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _end(text: str, max_bytes: int) -> str:
    """Return the last so many bytes of a text, without the rest of a character that was cut."""
    data = text.encode("utf-8", "replace")
    return data[max(0, len(data) - max(0, max_bytes)) :].decode("utf-8", "ignore") if max_bytes > 0 else ""
