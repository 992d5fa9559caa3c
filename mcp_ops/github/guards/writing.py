"""Which repositories may be written to, with what, and after what was read."""

from collections.abc import Iterable

from mcp_ops.gate import Refuse
from mcp_ops.github.api import RepoName, Repository
from mcp_ops.github.context import GitHubContext
from mcp_ops.github.rules import PRIVATE_TO_PUBLIC, TOKEN_IN_TEXT, WRITE_REPOS


def guard_write(owner: str, repo: str, texts: Iterable[str], context: GitHubContext, refuse: Refuse) -> RepoName:
    """Return the repository when its name may be written to, with these texts.

    Raises:
        Denied: `github.write_repos`, `github.token_in_text`.
    """
    name = RepoName(owner, repo)
    if name not in context.write_repos:
        refuse(WRITE_REPOS, f"{name} may not be written to; the operator allows {context.write_repos}")
    secrets = () if context.client is None else context.client.secrets()
    # Over all texts at once: half of a value in the title and half in the body is a value too.
    together = "\n".join(texts)
    if any(secret.stands_in(together) for secret in secrets):
        refuse(TOKEN_IN_TEXT, "what would be written holds the server's own credential, or a part of it")
    return name


def guard_target(asked: RepoName, found: Repository | None, context: GitHubContext, refuse: Refuse) -> None:
    """Refuse a target that is called otherwise by now, or that others can read after something private was read.

    Args:
        asked: The name that the call gave.
        found: The target as GitHub describes it now; None when it did not say.
        context: What was read so far, and what may be written to.
        refuse: How rules say no.

    Raises:
        Denied: `github.write_repos`, `github.private_to_public`.
    """
    if found is not None and found.name not in context.write_repos:
        refuse(WRITE_REPOS, f"{asked} is called {found.name} by now, which may not be written to")
    if context.private_reads and (found is None or not found.private):
        visible = "is public" if found is not None else "did not say whether it is public"
        refuse(PRIVATE_TO_PUBLIC, f"{asked} {visible}, and {context.private_reads} was read, which is private")
