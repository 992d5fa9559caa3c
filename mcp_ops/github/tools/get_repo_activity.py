"""`get_repo_activity`: what happened in a repository in the last hours."""

from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from pydantic import Field

from mcp_ops.gate import Output, Refuse, Result, Tool, ToolClass, executed
from mcp_ops.github.api import Commit, GitHub, GitHubError, Page, PullRequest, RepoName, Repository
from mcp_ops.github.context import GitHubContext
from mcp_ops.github.guards.reading import guard_read
from mcp_ops.github.tools.arguments import PAGE, RepoArguments
from mcp_ops.github.tools.asking import read
from mcp_ops.github.tools.entries import IssueEntry, Part, issue_line, typed_issue
from mcp_ops.github.tools.wording import DATA, address, iso, noted, person, quoted, short, title

T = TypeVar("T")

MAX_SHA = 12
_NOT_THERE = ("gone", "not_found", "forbidden")


class ActivityArguments(RepoArguments):
    """Arguments of `get_repo_activity`."""

    hours: int = Field(default=24, description="How far back, in hours.", ge=1, le=168)


class CommitEntry(Part):
    """One commit."""

    sha: str = Field(description="Beginning of its hash.")
    message: str = Field(description="First line of its message.")
    author: str = Field(description="Login; ghost when there is no account.")
    date: str = Field(description="Time of the commit, UTC.")


class PullRequestEntry(Part):
    """One pull request, without its checks."""

    number: int = Field(description="Number of the pull request.")
    title: str = Field(description="Title, on one line.")
    author: str = Field(description="Login; ghost when the account is gone.")
    state: str = Field(description="open or closed.")
    updated: str = Field(description="Time of the latest update, UTC.")
    url: str = Field(description="Page of the pull request.")


class Activity(Output):
    """What `get_repo_activity` returns."""

    repository: str = Field(description="owner/name.")
    branch: str = Field(description="The default branch, whose commits are listed.")
    since: str = Field(description="Beginning of the time, UTC.")
    until: str = Field(description="End of the time, UTC.")
    commits: list[CommitEntry] = Field(description="Commits, the newest first.")
    issues: list[IssueEntry] = Field(description="Issues that were updated, the latest first.")
    pull_requests: list[PullRequestEntry] = Field(description="Pull requests that were updated, the latest first.")
    notes: list[str] = Field(description="What is not all there. Pass it on.")


@dataclass(frozen=True)
class ActivityPlan:
    """What the guard allowed."""

    repo: RepoName
    hours: int


@dataclass(frozen=True)
class Window:
    """The time that is looked at."""

    since: datetime
    until: datetime


def guard(arguments: ActivityArguments, context: GitHubContext, refuse: Refuse) -> ActivityPlan:
    """Allow a watched repository."""
    return ActivityPlan(guard_read(arguments.owner, arguments.repo, context, refuse), arguments.hours)


async def run(plan: ActivityPlan, context: GitHubContext, refuse: Refuse) -> Result:
    """Read the first page of each kind."""
    until = context.now()
    window = Window(until - timedelta(hours=plan.hours), until)

    async def ask(client: GitHub, repository: Repository) -> Result:
        name, notes = repository.name, list[str]()
        commits = await _part("commits", client.commits(name, since=window.since, limit=PAGE), notes)
        asked = client.issues(name, state="all", limit=PAGE, updated_since=window.since)
        issues = await _part("issues", asked, notes)
        pulls = await _part("pull requests", client.pull_requests(name, limit=PAGE, updated_since=window.since), notes)
        return _result(
            repository,
            window,
            [_commit(commit) for commit in commits.items],
            [typed_issue(issue) for issue in issues.items],
            [_pull(pull) for pull in pulls.items],
            notes,
        )

    return await read(plan.repo, context, refuse, ask)


async def _part(kind: str, asked: Awaitable[Page[T]], notes: list[str]) -> Page[T]:
    """Return one kind of activity. A repository without it, as one whose issues are off, still has the others."""
    try:
        page = await asked
    except GitHubError as error:
        if error.kind not in _NOT_THERE:
            raise
        notes.append(f"{kind} cannot be read ({error.kind}): they are not counted")
        return Page(())
    if page.next:
        notes.append(f"there are more {kind} in this time than are shown")
    return page


def _commit(commit: Commit) -> CommitEntry:
    first = commit.message.strip().partition("\n")[0]
    return CommitEntry(
        sha=commit.sha[:MAX_SHA], message=title(first), author=person(commit.author), date=iso(commit.date)
    )


def _pull(pull: PullRequest) -> PullRequestEntry:
    return PullRequestEntry(
        number=pull.number,
        title=title(pull.title),
        author=person(pull.author),
        state=short(pull.state),
        updated=iso(pull.updated),
        url=address(pull.url),
    )


def _result(
    repository: Repository,
    window: Window,
    commits: list[CommitEntry],
    issues: list[IssueEntry],
    pulls: list[PullRequestEntry],
    notes: list[str],
) -> Result:
    branch, since, until = short(repository.default_branch), iso(window.since), iso(window.until)
    lines = [f"{repository.name} from {since} to {until}. {DATA}", *_lines(branch, commits, issues, pulls)]
    return executed(
        noted(lines, notes),
        keep="ends",
        repository=str(repository.name),
        branch=branch,
        since=since,
        until=until,
        commits=[commit.model_dump() for commit in commits],
        issues=[issue.model_dump() for issue in issues],
        pull_requests=[pull.model_dump() for pull in pulls],
        notes=notes,
    )


def _lines(
    branch: str, commits: list[CommitEntry], issues: list[IssueEntry], pulls: list[PullRequestEntry]
) -> Iterator[str]:
    yield f"Commits of {branch}: {len(commits)}"
    yield from (f"- {each.sha} {quoted(each.message)} by {each.author}; {each.date}" for each in commits)
    yield f"Updated issues: {len(issues)}"
    yield from (f"- {issue_line(issue)}" for issue in issues)
    yield f"Updated pull requests: {len(pulls)}"
    for pull in pulls:
        yield f"- #{pull.number} {pull.state} {quoted(pull.title)} by {pull.author}; updated {pull.updated}"


GET_REPO_ACTIVITY = Tool(
    name="get_repo_activity",
    description=(
        "What happened in a repository in the last hours (24 by default, 168 at most): commits of the default branch, "
        "updated issues, updated pull requests in any state; at most 30 of each."
    ),
    arguments=ActivityArguments,
    guard=guard,
    run=run,
    classification=ToolClass.READ_ONLY,
    open_world=True,
    max_reply_bytes=32 * 1024,
    output=Activity,
)
