"""`create_issue`: the one tool that writes."""

from dataclasses import dataclass

from pydantic import Field

from mcp_ops.gate import Output, Refuse, Result, Tool, ToolClass, executed
from mcp_ops.github.api import GitHubError, RepoName, Repository
from mcp_ops.github.context import GitHubContext
from mcp_ops.github.guards.writing import guard_target, guard_write
from mcp_ops.github.tools.arguments import RepoArguments
from mcp_ops.github.tools.asking import failed, no_token
from mcp_ops.github.tools.list_issues import Label
from mcp_ops.github.tools.wording import MAX_TITLE, address, quoted, title

MAX_BODY = 65_536
"""GitHub's own limit, in characters."""


class CreateArguments(RepoArguments):
    """Arguments of `create_issue`."""

    title: str = Field(
        description="Title, on one line.",
        examples=["Investigate checkout CI"],
        pattern=r"^[^\x00-\x1f\x7f]*[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$",
        max_length=MAX_TITLE,
    )
    body: str = Field(default="", description="Text in Markdown. It is written as it is.", max_length=MAX_BODY)
    labels: list[Label] = Field(default=[], description="Labels that the repository has.", max_length=10)


class Created(Output):
    """What `create_issue` returns."""

    repository: str = Field(description="owner/name.")
    number: int = Field(description="Number of the new issue.")
    title: str = Field(description="Its title as GitHub has it.")
    url: str = Field(description="Page of the new issue.")


@dataclass(frozen=True)
class CreatePlan:
    """What the guard allowed."""

    repo: RepoName
    title: str
    body: str
    labels: tuple[str, ...]


def guard(arguments: CreateArguments, context: GitHubContext, refuse: Refuse) -> CreatePlan:
    """Allow a repository that may be written to, and texts without the server's own credential."""
    texts = (arguments.title, arguments.body, *arguments.labels)
    repo = guard_write(arguments.owner, arguments.repo, texts, context, refuse)
    return CreatePlan(repo, arguments.title, arguments.body, tuple(arguments.labels))


async def run(plan: CreatePlan, context: GitHubContext, refuse: Refuse) -> Result:
    """Look at the target as it is now, then open the issue, once.

    What was read is judged after the target answered, with nothing to wait for between that and the request.
    """
    if context.client is None:
        return no_token()
    target: Repository | None = None
    try:
        target = await context.client.repository(plan.repo)
    except GitHubError as error:
        guard_target(plan.repo, None, context, refuse)
        return failed(error)
    guard_target(plan.repo, target, context, refuse)
    try:
        issue = await context.client.create_issue(target.name, title=plan.title, body=plan.body, labels=plan.labels)
    except GitHubError as error:
        return failed(error)
    context.private_reads.note(target)
    return executed(
        f"Opened issue #{issue.number} of {target.name}, {quoted(title(issue.title))}: {address(issue.url)}",
        repository=str(target.name),
        number=issue.number,
        title=title(issue.title),
        url=address(issue.url),
    )


CREATE_ISSUE = Tool(
    name="create_issue",
    description=(
        "Open an issue. It writes to GitHub, under the operator's account, and others read it. Calling it twice opens "
        "two issues."
    ),
    arguments=CreateArguments,
    guard=guard,
    run=run,
    classification=ToolClass.MUTATING,
    open_world=True,
    output=Created,
)
