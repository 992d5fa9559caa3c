"""`summarize_pull_request`: a bounded digest of one pull request, without a model behind it."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from mcp_ops.gate import Output, Refuse, Result, Tool, ToolClass, executed
from mcp_ops.github.api import GitHub, RepoName, Repository
from mcp_ops.github.context import GitHubContext
from mcp_ops.github.guards.reading import guard_read
from mcp_ops.github.tools.arguments import PullRequestArguments
from mcp_ops.github.tools.asking import read
from mcp_ops.github.tools.diff import Patch, Shown, bounded, what_is_missing
from mcp_ops.github.tools.entries import Examined, Head, Part, examined, head_lines
from mcp_ops.github.tools.wording import DATA, block, noted, short
from mcp_ops.text import clean, one_line

MAX_FILES = 30
MAX_BODY = 2000
"""Most characters of the description."""
MAX_PATH = 200


class SummarizeArguments(PullRequestArguments):
    """Arguments of `summarize_pull_request`."""

    diff_characters: int = Field(default=8000, description="Most characters of the diff.", ge=0, le=20000)


class File(Part):
    """One changed file."""

    path: str = Field(description="Path, on one line.")
    status: str = Field(description="added, removed, modified, renamed, …")
    additions: int = Field(description="Added lines.")
    deletions: int = Field(description="Removed lines.")
    patch: str = Field(description="As much of its patch as is shown.")
    shown: Shown = Field(description="whole, cut, omitted (no room left) or no_text (binary or too large).")


class Summary(Output):
    """What `summarize_pull_request` returns."""

    repository: str = Field(description="owner/name.")
    pull_request: Head = Field(description="Title, branches, checks, reviews.")
    pull_request_state: str = Field(description="open or closed.")
    description: str = Field(description="What its author wrote, possibly cut.")
    files: list[File] = Field(description="Changed files, the first ones.")
    notes: list[str] = Field(description="What is cut, or could not be read. Pass it on.")


@dataclass(frozen=True)
class SummarizePlan:
    """What the guard allowed."""

    repo: RepoName
    number: int
    diff_characters: int


def guard(arguments: SummarizeArguments, context: GitHubContext, refuse: Refuse) -> SummarizePlan:
    """Allow a watched repository."""
    repo = guard_read(arguments.owner, arguments.repo, context, refuse)
    return SummarizePlan(repo, arguments.number, arguments.diff_characters)


async def run(plan: SummarizePlan, context: GitHubContext, refuse: Refuse) -> Result:
    """Read the pull request, its files, checks and reviews."""

    async def ask(client: GitHub, repository: Repository) -> Result:
        pull = await client.pull_request(repository.name, plan.number)
        found = await examined(client, repository.name, pull)
        page = await client.files(repository.name, plan.number, limit=MAX_FILES)
        patches = bounded(page.items, plan.diff_characters)
        missing = what_is_missing(patches, plan.diff_characters, more_files=page.next is not None)
        return _result(repository.name, found, patches, [*found.notes, *missing])

    return await read(plan.repo, context, refuse, ask)


def _result(repo: RepoName, found: Examined, patches: Sequence[Patch], notes: list[str]) -> Result:
    body = clean(found.pull.body).strip()
    if len(body) > MAX_BODY:
        notes = [f"the description is cut at {MAX_BODY} of {len(body)} characters", *notes]
        body = body[:MAX_BODY]
    head, files = found.typed(), [_typed(patch) for patch in patches]
    lines = [f"{repo} pull request, {short(found.pull.state)}. {DATA}", *head_lines(head), "Description:"]
    lines += [block(body) if body else "(none)", f"Changed files: {len(files)}"]
    for file in files:
        lines.append(f"- {file.path} ({file.status}, +{file.additions} -{file.deletions}, diff: {file.shown})")
        lines += [block(file.patch)] if file.patch else []
    return executed(
        noted(lines, notes),
        keep="ends",
        repository=str(repo),
        pull_request=head.model_dump(),
        pull_request_state=short(found.pull.state),
        description=body,
        files=[file.model_dump() for file in files],
        notes=list(dict.fromkeys(notes)),
    )


def _typed(patch: Patch) -> File:
    file = patch.file
    return File(
        path=one_line(file.path, MAX_PATH),
        status=short(file.status),
        additions=file.additions,
        deletions=file.deletions,
        patch=patch.text,
        shown=patch.shown,
    )


SUMMARIZE_PULL_REQUEST = Tool(
    name="summarize_pull_request",
    description=(
        "Digest of one pull request: title, author, branches, checks, reviews, the description and as much of the diff "
        "as diff_characters allows (8000 by default, 20000 at most). Notes say what was cut. It is an excerpt, not a "
        "review."
    ),
    arguments=SummarizeArguments,
    guard=guard,
    run=run,
    classification=ToolClass.READ_ONLY,
    open_world=True,
    max_reply_bytes=128 * 1024,
    output=Summary,
)
