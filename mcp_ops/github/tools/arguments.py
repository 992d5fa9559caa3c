"""Arguments that several tools take."""

from pydantic import Field

from mcp_ops.gate import Arguments
from mcp_ops.github.watchlist import MAX_NAME, MAX_OWNER, NAME_PATTERN, OWNER_PATTERN

PAGE = 30
"""Most entries of one page."""


class RepoArguments(Arguments):
    """One repository."""

    owner: str = Field(
        description="Owner of the repository.", examples=["acme"], pattern=OWNER_PATTERN, max_length=MAX_OWNER
    )
    repo: str = Field(
        description="Name of the repository, without its owner.",
        examples=["web"],
        pattern=NAME_PATTERN,
        max_length=MAX_NAME,
    )


class PullRequestArguments(RepoArguments):
    """One pull request."""

    number: int = Field(description="Number of the pull request.", examples=[17], ge=1, le=2**31 - 1)


CURSOR = Field(
    default=None,
    description="The next_cursor of the page before; without it the first page.",
    min_length=1,
    max_length=4000,
    pattern=r"^[A-Za-z0-9_-]+$",
)
LIMIT = Field(default=PAGE, description=f"Most entries of the page, at most {PAGE}.", ge=1, le=PAGE)
