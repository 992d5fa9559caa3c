"""`list_open_pull_requests`: a page of open pull requests, each with its checks and reviews."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from mcp_ops.gate import Output, Refuse, Result, Tool, ToolClass, executed
from mcp_ops.github.api import GitHub, RepoName, Repository
from mcp_ops.github.context import GitHubContext
from mcp_ops.github.guards.reading import guard_read
from mcp_ops.github.tools.arguments import CURSOR, LIMIT, RepoArguments
from mcp_ops.github.tools.asking import each, read
from mcp_ops.github.tools.entries import Head, examined, head_lines
from mcp_ops.github.tools.wording import DATA, noted


class ListArguments(RepoArguments):
    """Arguments of `list_open_pull_requests`."""

    limit: int = LIMIT
    cursor: str | None = CURSOR


class PullRequests(Output):
    """What `list_open_pull_requests` returns."""

    repository: str = Field(description="owner/name.")
    pull_requests: list[Head] = Field(description="Open pull requests, the most recently updated first.")
    next_cursor: str | None = Field(description="Cursor of the next page; null on the last one.")
    notes: list[str] = Field(description="What could not be read, or is not all there. Pass it on.")


@dataclass(frozen=True)
class ListPlan:
    """What the guard allowed."""

    repo: RepoName
    limit: int
    cursor: str | None


def guard(arguments: ListArguments, context: GitHubContext, refuse: Refuse) -> ListPlan:
    """Allow a watched repository."""
    repo = guard_read(arguments.owner, arguments.repo, context, refuse)
    return ListPlan(repo, arguments.limit, arguments.cursor)


async def run(plan: ListPlan, context: GitHubContext, refuse: Refuse) -> Result:
    """Read one page, and what the checks and reviews of each pull request come to."""

    async def ask(client: GitHub, repository: Repository) -> Result:
        name = repository.name
        page = await client.pull_requests(name, limit=plan.limit, cursor=plan.cursor)
        found = await each(page.items, lambda pull: examined(client, name, pull))
        return _result(name, [one.typed() for one in found], page.next, [note for one in found for note in one.notes])

    return await read(plan.repo, context, refuse, ask)


def _result(repo: RepoName, heads: Sequence[Head], cursor: str | None, notes: Sequence[str]) -> Result:
    more = ("there are more: ask again with next_cursor",) if cursor else ()
    said = list(dict.fromkeys([*notes, *more]))
    lines = [f"{repo}, open pull requests on this page: {len(heads)}. {DATA}"]
    lines += [line for head in heads for line in head_lines(head)]
    lines += [f"next_cursor: {cursor}"] if cursor else []
    return executed(
        noted(lines, said),
        keep="ends",
        repository=str(repo),
        pull_requests=[head.model_dump() for head in heads],
        next_cursor=cursor,
        notes=said,
    )


LIST_OPEN_PULL_REQUESTS = Tool(
    name="list_open_pull_requests",
    description=(
        "List the open pull requests of a repository, the most recently updated first: title, author, branches, what "
        "the CI checks come to (statuses and check runs: failure, pending, success, or unknown when there are none) "
        "and the state of the reviews. One page of at most 30; next_cursor asks for the next one."
    ),
    arguments=ListArguments,
    guard=guard,
    run=run,
    classification=ToolClass.READ_ONLY,
    open_world=True,
    max_reply_bytes=24 * 1024,
    output=PullRequests,
)
