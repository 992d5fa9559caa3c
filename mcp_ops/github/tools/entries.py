"""Pull requests and issues in the form of results: typed, on one line each, within a length."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from mcp_ops.github.api import GitHub, Issue, PullRequest, RepoName
from mcp_ops.github.tools.reviewing import Reviews, ReviewState, reviews_of
from mcp_ops.github.tools.rollup import Rollup, Verdict, checks_of
from mcp_ops.github.tools.wording import address, iso, names, person, quoted, short, title

MAX_SHOWN = 10
"""Most failing checks, pending checks and reviewers that are named of one pull request."""


class Part(BaseModel):
    """Base of the objects inside a typed result."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Checks(Part):
    """What the checks of a pull request's latest commit come to."""

    rollup: Verdict = Field(description="failure wins over pending, pending over success; unknown: no check is seen.")
    total: int = Field(description="How many statuses and check runs were counted.")
    failing: list[str] = Field(description="Failing checks, each with GitHub's word for it; the first ones.")
    pending: list[str] = Field(description="Checks that are not done, each with GitHub's word for it; the first ones.")


class Reviewer(Part):
    """Somebody who was asked for a review, or gave one."""

    name: str = Field(description="Login; ghost when the account is gone.")
    state: str = Field(description="The latest word: requested, approved, changes_requested, commented or dismissed.")


class Head(Part):
    """What is known of a pull request before its content."""

    number: int = Field(description="Number of the pull request.")
    title: str = Field(description="Title, on one line.")
    author: str = Field(description="Login; ghost when the account is gone.")
    draft: bool = Field(description="Whether it is a draft.")
    head: str = Field(description="The branch that is to be merged.")
    base: str = Field(description="The branch to merge into.")
    updated: str = Field(description="Time of the latest update, UTC.")
    url: str = Field(description="Page of the pull request.")
    labels: list[str] = Field(description="Names of its labels.")
    checks: Checks = Field(description="Checks of the latest commit.")
    review_state: ReviewState = Field(description="What the reviews come to.")
    reviewers: list[Reviewer] = Field(description="Reviewers, each with the latest word.")


class IssueEntry(Part):
    """One issue."""

    number: int = Field(description="Number of the issue.")
    title: str = Field(description="Title, on one line.")
    author: str = Field(description="Login; ghost when the account is gone.")
    state: str = Field(description="open or closed.")
    updated: str = Field(description="Time of the latest update, UTC.")
    url: str = Field(description="Page of the issue.")
    labels: list[str] = Field(description="Names of its labels.")
    comments: int = Field(description="Number of its comments.")


@dataclass(frozen=True)
class Examined:
    """A pull request with what was asked about it."""

    pull: PullRequest
    checks: Rollup
    reviews: Reviews

    @property
    def notes(self) -> Sequence[str]:
        """What could not be read."""
        return (*self.checks.notes, *self.reviews.notes)

    def typed(self) -> Head:
        """Return it in the form of the result."""
        pull, checks = self.pull, self.checks
        return Head(
            number=pull.number,
            title=title(pull.title),
            author=person(pull.author),
            draft=pull.draft,
            head=short(pull.head_branch),
            base=short(pull.base_branch),
            updated=iso(pull.updated),
            url=address(pull.url),
            labels=names(pull.labels),
            checks=Checks(
                rollup=checks.verdict,
                total=checks.checks,
                failing=[short(name) for name in checks.failing[:MAX_SHOWN]],
                pending=[short(name) for name in checks.pending[:MAX_SHOWN]],
            ),
            review_state=self.reviews.state,
            reviewers=[
                Reviewer(name=short(name), state=short(word)) for name, word in self.reviews.reviewers[:MAX_SHOWN]
            ],
        )


async def examined(client: GitHub, repo: RepoName, pull: PullRequest) -> Examined:
    """Ask for the checks and reviews of a pull request.

    Raises:
        GitHubError: There is no answer.
    """
    return Examined(pull, await checks_of(client, repo, pull.head_sha), await reviews_of(client, repo, pull))


def head_lines(head: Head) -> list[str]:
    """Return what is said of a pull request in words."""
    draft = ", draft" if head.draft else ""
    labels = f"; labels: {', '.join(head.labels)}" if head.labels else ""
    reviewers = ", ".join(f"{each.name} {each.state}" for each in head.reviewers)
    return [
        f"#{head.number} {quoted(head.title)} by {head.author}{draft}",
        f"  {head.head} -> {head.base}; updated {head.updated}{labels}",
        f"  checks: {head.checks.rollup} ({_counted(head.checks)})",
        f"  review: {head.review_state}" + (f" ({reviewers})" if reviewers else ""),
    ]


def _counted(checks: Checks) -> str:
    named = [f"failing: {', '.join(checks.failing)}"] if checks.failing else []
    named += [f"pending: {', '.join(checks.pending)}"] if checks.pending else []
    return "; ".join([f"{checks.total} checks" if checks.total else "no checks", *named])


def typed_issue(issue: Issue) -> IssueEntry:
    """Return an issue in the form of a result."""
    return IssueEntry(
        number=issue.number,
        title=title(issue.title),
        author=person(issue.author),
        state=short(issue.state),
        updated=iso(issue.updated),
        url=address(issue.url),
        labels=names(issue.labels),
        comments=issue.comments,
    )


def issue_line(issue: IssueEntry) -> str:
    """Return what is said of an issue in words."""
    labels = f"; labels: {', '.join(issue.labels)}" if issue.labels else ""
    return f"#{issue.number} {issue.state} {quoted(issue.title)} by {issue.author}; updated {issue.updated}{labels}"
