"""`list_issues`: a page of issues, without pull requests."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, StringConstraints

from mcp_ops.gate import Output, Refuse, Result, Tool, ToolClass, executed
from mcp_ops.github.api import GitHub, Issue, IssueState, Page, RepoName, Repository
from mcp_ops.github.context import GitHubContext
from mcp_ops.github.guards.reading import guard_read
from mcp_ops.github.tools.arguments import CURSOR, LIMIT, RepoArguments
from mcp_ops.github.tools.asking import read
from mcp_ops.github.tools.entries import IssueEntry, issue_line, typed_issue
from mcp_ops.github.tools.wording import DATA, noted

Label = Annotated[str, StringConstraints(pattern=r"^[^,\x00-\x1f\x7f]+$", max_length=50)]
"""A label of GitHub has at most 50 characters; a comma would make two of it."""


class IssuesArguments(RepoArguments):
    """Arguments of `list_issues`."""

    state: IssueState = Field(default="open", description="open, closed or all.")
    labels: list[Label] = Field(default=[], description="Only issues with all of these labels.", max_length=10)
    limit: int = LIMIT
    cursor: str | None = CURSOR


class Issues(Output):
    """What `list_issues` returns."""

    repository: str = Field(description="owner/name.")
    issues: list[IssueEntry] = Field(description="Issues, the most recently updated first.")
    next_cursor: str | None = Field(description="Cursor of the next page; null on the last one.")
    notes: list[str] = Field(description="What is not all there. Pass it on.")


@dataclass(frozen=True)
class IssuesPlan:
    """What the guard allowed."""

    repo: RepoName
    state: IssueState
    labels: tuple[str, ...]
    limit: int
    cursor: str | None


def guard(arguments: IssuesArguments, context: GitHubContext, refuse: Refuse) -> IssuesPlan:
    """Allow a watched repository."""
    repo = guard_read(arguments.owner, arguments.repo, context, refuse)
    return IssuesPlan(repo, arguments.state, tuple(arguments.labels), arguments.limit, arguments.cursor)


async def run(plan: IssuesPlan, context: GitHubContext, refuse: Refuse) -> Result:
    """Read one page."""

    async def ask(client: GitHub, repository: Repository) -> Result:
        page = await client.issues(
            repository.name, state=plan.state, labels=plan.labels, limit=plan.limit, cursor=plan.cursor
        )
        return _result(repository.name, plan, page)

    return await read(plan.repo, context, refuse, ask)


def _result(repo: RepoName, plan: IssuesPlan, page: Page[Issue]) -> Result:
    issues = [typed_issue(issue) for issue in page.items]
    notes = ["there are more: ask again with next_cursor"] if page.next else []
    if page.next and len(issues) < plan.limit:
        notes.append("pull requests were taken out of this page, so it is shorter")
    lines = [f"{repo}, issues on this page (state: {plan.state}): {len(issues)}. {DATA}", *map(issue_line, issues)]
    lines += [f"next_cursor: {page.next}"] if page.next else []
    return executed(
        noted(lines, notes),
        keep="ends",
        repository=str(repo),
        issues=[issue.model_dump() for issue in issues],
        next_cursor=page.next,
        notes=notes,
    )


LIST_ISSUES = Tool(
    name="list_issues",
    description=(
        "List the issues of a repository, the most recently updated first, without pull requests. One page of at most "
        "30; next_cursor asks for the next one."
    ),
    arguments=IssuesArguments,
    guard=guard,
    run=run,
    classification=ToolClass.READ_ONLY,
    open_world=True,
    max_reply_bytes=24 * 1024,
    output=Issues,
)
