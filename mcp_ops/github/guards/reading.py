"""Which repositories may be read."""

from mcp_ops.gate import Refuse
from mcp_ops.github.api import RepoName, Repository
from mcp_ops.github.context import GitHubContext
from mcp_ops.github.rules import WATCHLIST


def guard_read(owner: str, repo: str, context: GitHubContext, refuse: Refuse) -> RepoName:
    """Return the repository when its name may be read.

    Raises:
        Denied: `github.watchlist`.
    """
    name = RepoName(owner, repo)
    if not (context.extended or name in context.watchlist):
        refuse(WATCHLIST, f"{name} is not on the watch list; it names {context.watchlist}")
    return name


def guard_present_name(asked: RepoName, found: Repository, context: GitHubContext, refuse: Refuse) -> None:
    """Refuse a repository that answers to a listed name and is called otherwise by now.

    Raises:
        Denied: `github.watchlist`.
    """
    if not (context.extended or found.name in context.watchlist):
        refuse(WATCHLIST, f"{asked} is called {found.name} by now, which is not on the watch list")
