"""What GitHub sends, as far as it is used: a shape that is not understood is an error that names the field."""

from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any, TypeVar

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from mcp_ops.github import api
from mcp_ops.github.api import GitHubError, RepoName
from mcp_ops.github.client.answer import Answer
from mcp_ops.github.client.auth import Minted, token_secret

T = TypeVar("T")

_MAX_FIELD = 120
Number = Annotated[int, Field(ge=1, le=2**53)]
Count = Annotated[int, Field(ge=0, le=2**53)]


class Sent(BaseModel):
    """Base of everything: further keys are ignored, types are not converted."""

    model_config = ConfigDict(strict=True, frozen=True)


def parsed(shape: Any, answer: Answer, what: str) -> Any:
    """Read an answer's body as a shape.

    Raises:
        GitHubError: `unreadable`; it is no JSON, or not of this shape. The sentence names the field.
    """
    try:
        return _adapter(shape).validate_json(answer.body)
    except ValidationError as error:
        failed = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if failed["type"] == "json_invalid":
        raise GitHubError("unreadable", f"{what}: GitHub's answer is no JSON")
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in failed["loc"]).lstrip(".")
    raise GitHubError(
        "unreadable", f"{what}: GitHub's answer is not understood at {place[:_MAX_FIELD] or 'its top'}: {failed['msg']}"
    )


@lru_cache(maxsize=64)
def _adapter(shape: Any) -> TypeAdapter[Any]:
    return TypeAdapter(shape)


class User(Sent):
    login: str


def _login(user: User | None) -> str | None:
    return user.login if user else None


class Label(Sent):
    name: str | None = None


def _labels(labels: "list[Label | str]") -> tuple[str, ...]:
    names = [label if isinstance(label, str) else label.name for label in labels]
    return tuple(name for name in names if name)


class Repository(Sent):
    full_name: Annotated[str, Field(pattern=r"^[^/\s]{1,100}/[^/\s]{1,100}$")]
    private: bool
    visibility: str = "public"
    default_branch: str
    description: str | None = None
    open_issues_count: Count = 0
    archived: bool = False

    def plain(self) -> api.Repository:
        owner, _, name = self.full_name.partition("/")
        return api.Repository(
            RepoName(owner, name),
            private=self.private or self.visibility != "public",
            default_branch=self.default_branch,
            description=self.description or "",
            open_issues=self.open_issues_count,
            archived=self.archived,
        )


class Branch(Sent):
    ref: str
    sha: Annotated[str, Field(pattern=r"^[0-9a-f]{40,64}$")]


class BaseBranch(Sent):
    ref: str


class PullRequest(Sent):
    number: Number
    title: str
    state: str
    user: User | None = None
    head: Branch
    base: BaseBranch
    updated_at: AwareDatetime
    html_url: str
    body: str | None = None
    draft: bool = False
    labels: list[Label | str] = []
    requested_reviewers: list[User | None] | None = None

    def plain(self) -> api.PullRequest:
        return api.PullRequest(
            self.number,
            self.title,
            _login(self.user),
            head_branch=self.head.ref,
            head_sha=self.head.sha,
            base_branch=self.base.ref,
            updated=self.updated_at,
            url=self.html_url,
            body=self.body or "",
            draft=self.draft,
            state=self.state,
            labels=_labels(self.labels),
            requested_reviewers=tuple(map(_login, self.requested_reviewers or ())),
        )


class Review(Sent):
    state: str
    user: User | None = None
    submitted_at: AwareDatetime | None = None

    def plain(self) -> api.Review:
        return api.Review(_login(self.user), self.state.lower(), self.submitted_at)


class ChangedFile(Sent):
    filename: str
    status: str
    additions: Count
    deletions: Count
    patch: str | None = None

    def plain(self) -> api.ChangedFile:
        return api.ChangedFile(self.filename, self.status, self.additions, self.deletions, self.patch)


class Status(Sent):
    context: str
    state: str

    def plain(self) -> api.CommitStatus:
        return api.CommitStatus(self.context, self.state)


class CombinedStatus(Sent):
    statuses: list[Status]


class CheckRun(Sent):
    name: str
    status: str
    conclusion: str | None = None

    def plain(self) -> api.CheckRun:
        return api.CheckRun(self.name, self.status, self.conclusion)


class CheckRuns(Sent):
    check_runs: list[CheckRun]


class WorkflowRun(Sent):
    id: Number
    workflow_id: Number
    event: str = ""
    conclusion: str | None = None


class WorkflowRuns(Sent):
    workflow_runs: list[WorkflowRun]


class Job(Sent):
    id: Number
    name: str
    conclusion: str | None = None

    def plain(self) -> api.Job:
        return api.Job(self.id, self.name, self.conclusion)


class Jobs(Sent):
    jobs: list[Job]


class PullRequestMark(Sent):
    """Stands in an issue that is a pull request."""


class Issue(Sent):
    number: Number
    title: str
    state: str
    user: User | None = None
    updated_at: AwareDatetime
    html_url: str
    body: str | None = None
    labels: list[Label | str] = []
    comments: Count = 0
    pull_request: PullRequestMark | None = None

    def plain(self) -> api.Issue:
        return api.Issue(
            self.number,
            self.title,
            _login(self.user),
            self.state,
            self.updated_at,
            self.html_url,
            body=self.body or "",
            labels=_labels(self.labels),
            comments=self.comments,
        )


class Signature(Sent):
    name: str | None = None
    date: AwareDatetime | None = None


class CommitData(Sent):
    message: str
    author: Signature | None = None
    committer: Signature | None = None


class Commit(Sent):
    sha: Annotated[str, Field(pattern=r"^[0-9a-f]{40,64}$")]
    commit: CommitData
    author: Annotated[User | None, BeforeValidator(lambda value: value or None)] = None
    """GitHub sends an empty object where it knows no account."""

    def plain(self) -> api.Commit:
        signed = [each for each in (self.commit.committer, self.commit.author) if each is not None]
        date: datetime | None = next((each.date for each in signed if each.date), None)
        if date is None:
            raise GitHubError("unreadable", "GitHub's answer is not understood at commit.committer.date: it is missing")
        name = self.commit.author.name if self.commit.author else None
        return api.Commit(self.sha, self.commit.message, _login(self.author) or name, date)


class InstallationToken(Sent):
    token: Annotated[str, Field(pattern=r"^[!-~]{1,1000}$")]
    expires_at: AwareDatetime

    def minted(self) -> Minted:
        return Minted(token_secret(self.token), self.expires_at)
