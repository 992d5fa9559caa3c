"""What can be read by address: the watch list, and what a repository is."""

from collections.abc import Mapping, Sequence

from mcp_ops.gate import NoArguments, Refuse, Resource, Result, executed
from mcp_ops.github.api import GitHub, RepoName, Repository
from mcp_ops.github.context import GitHubContext
from mcp_ops.github.guards.reading import guard_read
from mcp_ops.github.tools.arguments import RepoArguments
from mcp_ops.github.tools.asking import read
from mcp_ops.github.tools.wording import short
from mcp_ops.text import one_line

MAX_DESCRIPTION = 500


def _allow(_: NoArguments, __: GitHubContext, ___: Refuse) -> None:
    """Allow the watch list: it is the operator's own text."""


async def _watchlist(_: None, context: GitHubContext, __: Refuse) -> Result:
    repos = [{"owner": repo.owner, "repo": repo.name} for repo in context.watchlist]
    return executed("", repositories=repos)


def _guard_repository(arguments: RepoArguments, context: GitHubContext, refuse: Refuse) -> RepoName:
    return guard_read(arguments.owner, arguments.repo, context, refuse)


async def _repository(repo: RepoName, context: GitHubContext, refuse: Refuse) -> Result:
    async def ask(_: GitHub, found: Repository) -> Result:
        return executed(
            "",
            repository=str(found.name),
            description=one_line(found.description, MAX_DESCRIPTION),
            default_branch=short(found.default_branch),
            visibility="private" if found.private else "public",
            archived=found.archived,
            open_issues_and_pull_requests=found.open_issues,
        )

    return await read(repo, context, refuse, ask)


def _watched(context: GitHubContext) -> Sequence[Mapping[str, str]]:
    return [{"owner": repo.owner, "repo": repo.name} for repo in context.watchlist]


WATCHLIST_RESOURCE = Resource(
    name="watchlist",
    uri="devops://watchlist",
    description="The repositories that this server watches: owner and repo of each.",
    arguments=NoArguments,
    guard=_allow,
    run=_watchlist,
)
REPOSITORY_RESOURCE = Resource(
    name="repository",
    uri="github://repo/{owner}/{repo}",
    description="A watched repository: description, default branch, visibility, number of open issues.",
    arguments=RepoArguments,
    guard=_guard_repository,
    run=_repository,
    listed=_watched,
)
RESOURCES = (WATCHLIST_RESOURCE, REPOSITORY_RESOURCE)
