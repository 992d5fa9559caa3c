"""What stands in an in-memory GitHub: plain data, which a scenario line or a JSON file can hold."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

T = TypeVar("T")

Items = Annotated[tuple[T, ...], Strict(False)]
RepositoryKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}/[A-Za-z0-9._-]{1,100}$")]
NumberKey = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,8}$")]
Hours = Annotated[float, Field(strict=False, ge=0, le=1_000_000)]
Sha = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
Conclusion = Literal[
    "success",
    "failure",
    "neutral",
    "cancelled",
    "skipped",
    "timed_out",
    "action_required",
    "startup_failure",
    "stale",
]
Progress = Literal["queued", "in_progress", "completed", "waiting", "requested", "pending"]


def _fault(sentence: str, *path: str | int) -> PydanticCustomError:
    context = {"sentence": sentence, "path": path, "at_key": bool(path)}
    return PydanticCustomError("github", "{sentence}", context)


def _age(what: str, default: float) -> Any:
    return Field(
        default=default, description=f"How long ago {what}, in hours before the run begins.", examples=[2, 0.5, 30]
    )


class Part(BaseModel):
    """Base of every object: strict, frozen, and without keys that mean nothing."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class FileState(Part):
    """One changed file of a pull request."""

    status: Literal["added", "removed", "modified", "renamed", "copied", "changed", "unchanged"] = Field(
        default="modified", description="What happened to the file.", examples=["modified", "added"]
    )
    additions: int = Field(default=1, ge=0, description="Lines that were added.", examples=[12])
    deletions: int = Field(default=0, ge=0, description="Lines that were removed.", examples=[3])
    patch: str | None = Field(
        default=None,
        description="The file's part of the diff; without one the file is binary or too large to be shown.",
        examples=["@@ -1 +1 @@\n-timeout = 30\n+timeout = 3"],
    )


class ReviewState(Part):
    """What one reviewer said."""

    author: str | None = Field(
        default="reviewer", description="Login of the reviewer; null for an account that is gone.", examples=["grace"]
    )
    state: Literal["APPROVED", "CHANGES_REQUESTED", "COMMENTED", "DISMISSED", "PENDING"] = Field(
        default="COMMENTED", description="What the review says, as GitHub writes it.", examples=["APPROVED"]
    )
    hours_ago: Hours = _age("the review was submitted", 1)


class CheckRunState(Part):
    """One check of a commit."""

    name: str = Field(default="build", description="Name of the check.", examples=["unit"])
    status: Progress = Field(default="completed", description="How far it is.", examples=["completed", "in_progress"])
    conclusion: Conclusion | None = Field(
        default=None, description="How it ended; null while it has not.", examples=["failure", "success"]
    )


class JobState(Part):
    """One job of a workflow run."""

    id: int | None = Field(
        default=None, ge=1, le=2**53, description="Its id; numbered from 1001 on by default.", examples=[4001]
    )
    name: str = Field(default="build", description="Name of the job.", examples=["unit (3.11)"])
    conclusion: Conclusion | None = Field(
        default=None, description="How it ended; null while it runs.", examples=["failure"]
    )
    log: str | None = Field(
        default=None, description="Text of its log; without one the log is not there any more.", examples=["Error: x\n"]
    )


class WorkflowRunState(Part):
    """One run of a workflow for a commit."""

    workflow: str = Field(
        default="CI", description="Name of the workflow; of several runs of one the last counts.", examples=["CI"]
    )
    status: Progress = Field(default="completed", description="How far it is.", examples=["completed"])
    conclusion: Conclusion | None = Field(
        default=None, description="How it ended; null while it runs.", examples=["failure"]
    )
    jobs: Items[JobState] = Field(
        default=(), description="Its jobs.", examples=[[{"name": "unit", "conclusion": "failure", "log": "Error: x\n"}]]
    )


class Entry(Part):
    """What issues and pull requests have in common."""

    title: str = Field(default="Untitled", description="Title.", examples=["Reduce checkout latency"])
    author: str | None = Field(
        default="octocat", description="Login of the author; null for an account that is gone.", examples=["ada", None]
    )
    body: str | None = Field(
        default=None, description="Description; null as GitHub says it for an empty one.", examples=["Steps: …", None]
    )
    state: Literal["open", "closed"] = Field(default="open", description="Whether it is open.", examples=["open"])
    labels: Items[str] = Field(default=(), description="Names of its labels.", examples=[["bug", "ci"]])
    hours_ago: Hours = _age("it was last updated", 1)


class IssueState(Entry):
    """An issue."""

    comments: int = Field(default=0, ge=0, description="Number of its comments.", examples=[2])


class PullRequestState(Entry):
    """A pull request, with what is known about its latest commit."""

    draft: bool = Field(default=False, description="Whether it is a draft.", examples=[True])
    head_branch: str = Field(default="topic", description="The branch that is to be merged.", examples=["cache"])
    head_sha: Sha | None = Field(
        default=None,
        description="The latest commit of that branch; made from repository and number by default.",
        examples=["6dcb09b5b57875f334f61aebed695e2e4193db5e"],
    )
    base_branch: str | None = Field(
        default=None, description="The branch to merge into; the default branch by default.", examples=["main"]
    )
    requested_reviewers: Items[str | None] = Field(
        default=(),
        description="Logins of who was asked to review; null for an account that is gone.",
        examples=[["eve"]],
    )
    reviews: Items[ReviewState] = Field(
        default=(), description="Its reviews, oldest first.", examples=[[{"author": "grace", "state": "APPROVED"}]]
    )
    files: Mapping[str, FileState] = Field(
        default={}, description="Its changed files by path.", examples=[{"src/pay.py": {"additions": 2, "patch": "@@"}}]
    )
    statuses: Mapping[str, Literal["error", "failure", "pending", "success"]] = Field(
        default={}, description="Statuses of its latest commit by context.", examples=[{"ci/build": "failure"}]
    )
    check_runs: Items[CheckRunState] = Field(
        default=(),
        description="Check runs of its latest commit.",
        examples=[[{"name": "unit", "status": "completed", "conclusion": "failure"}]],
    )
    workflow_runs: Items[WorkflowRunState] = Field(
        default=(),
        description="Workflow runs of its latest commit, oldest first.",
        examples=[[{"workflow": "CI", "conclusion": "failure", "jobs": [{"name": "unit", "conclusion": "failure"}]}]],
    )


class CommitState(Part):
    """A commit of the default branch."""

    message: str = Field(default="Change something", description="Its message.", examples=["Add health check"])
    author: str | None = Field(
        default="octocat", description="Login of the author; null for one without an account.", examples=["ada"]
    )
    sha: Sha | None = Field(
        default=None, description="Its hash; made up by default.", examples=["7fd1a60b01f91b314f59955a4e4d4e80d8edf11d"]
    )
    hours_ago: Hours = _age("it was committed", 1)


class RepositoryState(Part):
    """A repository."""

    private: bool = Field(default=False, description="Whether not everybody can read it.", examples=[True])
    visible: bool = Field(
        default=True,
        description="Whether the token may see it; GitHub answers 404 for what it may not.",
        examples=[False],
    )
    description: str | None = Field(default=None, description="Its description.", examples=["The shop", None])
    default_branch: str = Field(default="main", description="Its default branch.", examples=["main"])
    archived: bool = Field(default=False, description="Whether it is read-only.", examples=[True])
    has_issues: bool = Field(default=True, description="Whether it has issues at all.", examples=[False])
    renamed_from: RepositoryKey | None = Field(
        default=None, description="An earlier name, from which GitHub redirects.", examples=["acme/old-web"]
    )
    next_number: int | None = Field(
        default=None,
        ge=1,
        description="Number of the next issue; one more than the highest of issues and pull requests by default.",
        examples=[101],
    )
    pull_requests: Mapping[NumberKey, PullRequestState] = Field(
        default={}, description="Pull requests by number.", examples=[{"17": {"title": "Reduce checkout latency"}}]
    )
    issues: Mapping[NumberKey, IssueState] = Field(
        default={}, description="Issues by number.", examples=[{"3": {"title": "Checkout is slow", "labels": ["bug"]}}]
    )
    commits: Items[CommitState] = Field(
        default=(),
        description="Commits of the default branch, in any order.",
        examples=[[{"message": "Add health check", "author": "ada", "hours_ago": 5}]],
    )

    @model_validator(mode="after")
    def _one_number_each(self) -> "RepositoryState":
        for number in self.pull_requests:
            if number in self.issues:
                raise _fault(
                    f"is the number of an issue too; give one of the two another number than {number}",
                    "pull_requests",
                    number,
                )
        return self


class ScriptedAnswer(Part):
    """An answer that takes the place of the usual one."""

    method: Literal["GET", "POST"] | None = Field(
        default=None, description="Method of the requests it is for; any by default.", examples=["GET"]
    )
    path: str = Field(
        default="*",
        description="Path of the requests it is for, without the query; `*` stands for anything, slashes too.",
        examples=["/repos/acme/web/commits/*/check-runs"],
    )
    times: int | None = Field(
        default=None,
        ge=1,
        description="How many requests it answers before it is used up; all by default.",
        examples=[1],
    )
    kind: (
        Literal[
            "bad_credentials",
            "broken_json",
            "echo",
            "forbidden",
            "rate_limited",
            "secondary_limit",
            "server_error",
            "sso_required",
        ]
        | None
    ) = Field(
        default=None,
        description="An answer that GitHub is known to give; what else is said here takes the place of its parts."
        " `echo` is a 422 that repeats the Authorization header.",
        examples=["rate_limited"],
    )
    status: int | None = Field(default=None, ge=200, le=599, description="HTTP status.", examples=[403])
    headers: Mapping[str, str] = Field(
        default={},
        description="Headers; `${now+60}` in one is the time in a minute, in seconds as GitHub counts them.",
        examples=[{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "${now+1800}"}],
    )
    body: Any = Field(
        default=None,
        description="JSON value of the body, or a string that is sent as it is; `${token}` in it is the token that came"
        " with the request.",
        examples=[{"message": "Bad credentials for ${token}"}],
    )

    @model_validator(mode="after")
    def _says_something(self) -> "ScriptedAnswer":
        if self.kind is None and self.status is None:
            raise _fault('says neither "kind" nor "status"; write for example "kind": "rate_limited"')
        return self


def _each_name_once(repositories: Mapping[str, RepositoryState]) -> Mapping[str, RepositoryState]:
    seen: dict[str, str] = {}
    for name, repository in repositories.items():
        for known in filter(None, (name, repository.renamed_from)):
            other = seen.setdefault(known.casefold(), name)
            if other != name:
                raise _fault(f"is the same name as {other} to GitHub, which ignores letter case; leave one out", name)
    return repositories


class GitHubState(Part):
    """What stands in an in-memory GitHub when a run begins."""

    repositories: Annotated[Mapping[RepositoryKey, RepositoryState], AfterValidator(_each_name_once)] = Field(
        default={},
        description="Repositories by owner and name.",
        examples=[{"acme/web": {"issues": {"3": {"title": "Checkout is slow"}}}}],
    )
    answers: Items[ScriptedAnswer] = Field(
        default=(),
        description="Answers that take the place of the usual ones; the first that fits and is not used up is given.",
        examples=[[{"path": "/repos/acme/web/pulls", "kind": "rate_limited", "times": 1}]],
    )
