"""Who was asked for a review, and what they said."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from mcp_ops.github.api import GitHub, GitHubError, PullRequest, RepoName, Review
from mcp_ops.github.tools.rollup import unseen
from mcp_ops.github.tools.wording import GHOST

ReviewState = Literal["changes_requested", "approved", "requested", "commented", "none", "unknown"]
"""The first of these that somebody's latest word is. Unknown: the reviews cannot be read."""

_DECISIVE = ("changes_requested", "approved", "dismissed")
MOST = 100
"""So many reviews are read of a pull request, the oldest first."""


@dataclass(frozen=True)
class Reviews:
    """The reviews of one pull request."""

    state: ReviewState
    reviewers: tuple[tuple[str, str], ...] = ()
    """Name and latest word of each."""
    notes: tuple[str, ...] = ()


def summed_up(pull: PullRequest, reviews: Sequence[Review], notes: tuple[str, ...] = ()) -> Reviews:
    """Return the latest word of each reviewer. A comment does not take back what somebody decided before.

    Somebody who is asked again is shown as requested, and what they said before still counts.
    """
    latest = dict(_latest(reviews))
    words = {word for _, word in latest.values()} | {"requested" for _ in pull.requested_reviewers}
    ranked: tuple[ReviewState, ...] = ("changes_requested", "approved", "requested", "commented")
    state: ReviewState = next((word for word in ranked if word in words), "none")
    asked = tuple((name or GHOST, "requested") for name in pull.requested_reviewers)
    names = {name for name, _ in asked}
    said = tuple((name, word) for name, word in latest.values() if name == GHOST or name not in names)
    return Reviews(state, asked + said, notes)


def _latest(reviews: Sequence[Review]) -> Iterator[tuple[object, tuple[str, str]]]:
    """Yield a key for each reviewer, name and word, the last one last. Reviewers whose accounts are gone stay apart."""
    decided: dict[object, str] = {}
    for at, review in enumerate(reviews):
        key: object = at if review.author is None else review.author
        if review.state == "pending" or (key in decided and review.state not in _DECISIVE):
            continue
        if review.state in _DECISIVE:
            decided[key] = review.state
        yield key, (review.author or GHOST, review.state)


async def reviews_of(client: GitHub, repo: RepoName, pull: PullRequest) -> Reviews:
    """Read the reviews of a pull request. When the credential may not see them, a note says so.

    Raises:
        GitHubError: There is no answer for another reason.
    """
    try:
        page = await client.reviews(repo, pull.number, limit=MOST)
    except GitHubError as error:
        asked = tuple((name or GHOST, "requested") for name in pull.requested_reviewers)
        return Reviews("unknown", asked, (unseen("reviews", error),))
    notes = (f"only the first {MOST} reviews of #{pull.number} are counted",) if page.next else ()
    return summed_up(pull, page.items, notes)
