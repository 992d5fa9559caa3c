"""JSON as GitHub writes it, of the parts that a client here may look at."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from mcp_ops.github.memory.state import (
    CommitState,
    IssueState,
    JobState,
    PullRequestState,
    RepositoryState,
    WorkflowRunState,
)

_WEB = "https://github.com"


def made_up_sha(*parts: object) -> str:
    """Return a hash that is the same whenever it is made of the same."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:40]


@dataclass(frozen=True)
class Renderer:
    """Renders one repository, with ages counted from one moment."""

    name: str
    """`owner/name`."""
    id: int
    state: RepositoryState
    begin: datetime
    created: Mapping[int, tuple[IssueState, datetime]] = field(default_factory=dict)
    """Issues that were opened since, and when."""

    def time(self, hours_ago: float) -> str:
        """Return a time as GitHub writes it."""
        return _iso(self.begin - timedelta(hours=hours_ago))

    def repository(self) -> dict[str, Any]:
        """Render the repository itself."""
        state, numbered = self.state, [*self.state.issues.values(), *self.state.pull_requests.values()]
        return {
            "id": self.id,
            "name": self.name.partition("/")[2],
            "full_name": self.name,
            "owner": _user(self.name.partition("/")[0]),
            "private": state.private,
            "visibility": "private" if state.private else "public",
            "html_url": f"{_WEB}/{self.name}",
            "description": state.description,
            "default_branch": state.default_branch,
            "open_issues_count": sum(entry.state == "open" for entry in numbered) + len(self.created),
            "has_issues": state.has_issues,
            "archived": state.archived,
        }

    def head_sha(self, number: int, pull: PullRequestState) -> str:
        """Return the latest commit of a pull request."""
        return pull.head_sha or made_up_sha(self.name.casefold(), "pull", number)

    def pull_request(self, number: int, pull: PullRequestState) -> dict[str, Any]:
        """Render a pull request."""
        return {
            "number": number,
            "title": pull.title,
            "state": pull.state,
            "draft": pull.draft,
            "user": _user(pull.author),
            "body": pull.body,
            "labels": [{"name": label} for label in pull.labels],
            "updated_at": self.time(pull.hours_ago),
            "html_url": f"{_WEB}/{self.name}/pull/{number}",
            "head": {"ref": pull.head_branch, "sha": self.head_sha(number, pull), "repo": None},
            "base": {"ref": pull.base_branch or self.state.default_branch, "sha": made_up_sha(self.name, "base")},
            "requested_reviewers": [_user(login) for login in pull.requested_reviewers],
            "requested_teams": [],
        }

    def issue(self, number: int, issue: IssueState, updated: datetime | None = None) -> dict[str, Any]:
        """Render an issue."""
        return {
            "number": number,
            "title": issue.title,
            "state": issue.state,
            "user": _user(issue.author),
            "body": issue.body,
            "labels": [{"name": label} for label in issue.labels],
            "comments": issue.comments,
            "updated_at": _iso(updated) if updated else self.time(issue.hours_ago),
            "html_url": f"{_WEB}/{self.name}/issues/{number}",
        }

    def pull_request_as_issue(self, number: int, pull: PullRequestState) -> dict[str, Any]:
        """Render a pull request as the list of issues shows it."""
        issue = IssueState(
            **{key: getattr(pull, key) for key in ("title", "author", "body", "state", "labels", "hours_ago")}
        )
        url = f"{_WEB}/{self.name}/pull/{number}"
        return {**self.issue(number, issue), "html_url": url, "draft": pull.draft, "pull_request": {"html_url": url}}

    def files(self, pull: PullRequestState) -> list[dict[str, Any]]:
        """Render the changed files of a pull request."""
        return [
            {
                "sha": made_up_sha(path),
                "filename": path,
                "status": file.status,
                "additions": file.additions,
                "deletions": file.deletions,
                "changes": file.additions + file.deletions,
                **({} if file.patch is None else {"patch": file.patch}),
            }
            for path, file in pull.files.items()
        ]

    def reviews(self, pull: PullRequestState) -> list[dict[str, Any]]:
        """Render the reviews of a pull request."""
        return [
            {
                "id": index,
                "user": _user(review.author),
                "body": "",
                "state": review.state,
                **({} if review.state == "PENDING" else {"submitted_at": self.time(review.hours_ago)}),
            }
            for index, review in enumerate(pull.reviews, 1)
        ]

    def commit(self, index: int, commit: CommitState) -> dict[str, Any]:
        """Render a commit."""
        signed = {
            "name": commit.author or "Somebody",
            "email": "none@example.invalid",
            "date": self.time(commit.hours_ago),
        }
        return {
            "sha": commit.sha or made_up_sha(self.name.casefold(), "commit", index),
            "commit": {"message": commit.message, "author": signed, "committer": signed},
            "author": _user(commit.author),
        }

    def combined_status(self, sha: str, pull: PullRequestState | None) -> dict[str, Any]:
        """Render the statuses of a commit; without any GitHub says pending, and a count of 0."""
        states = dict(pull.statuses) if pull else {}
        bad = {"failure", "error"} & set(states.values())
        good = bool(states) and set(states.values()) == {"success"}
        return {
            "state": "failure" if bad else "success" if good else "pending",
            "sha": sha,
            "total_count": len(states),
            "statuses": [{"context": context, "state": state} for context, state in states.items()],
        }

    def check_runs(self, sha: str, pull: PullRequestState | None) -> dict[str, Any]:
        """Render the check runs of a commit."""
        runs = [
            {"id": index, "head_sha": sha, "name": run.name, "status": run.status, "conclusion": run.conclusion}
            for index, run in enumerate(pull.check_runs if pull else (), 1)
        ]
        return {"total_count": len(runs), "check_runs": runs}


def workflow_run(run_id: int, workflow_id: int, sha: str, run: WorkflowRunState) -> dict[str, Any]:
    """Render a workflow run."""
    state = {"name": run.workflow, "status": run.status, "conclusion": run.conclusion}
    return {"id": run_id, "workflow_id": workflow_id, "head_sha": sha, **state}


def job(job_id: int, run_id: int, given: JobState) -> dict[str, Any]:
    """Render a job."""
    status = "completed" if given.conclusion else "in_progress"
    return {"id": job_id, "run_id": run_id, "name": given.name, "status": status, "conclusion": given.conclusion}


def _user(login: str | None) -> dict[str, Any] | None:
    return None if login is None else {"login": login, "type": "User", "html_url": f"{_WEB}/{login}"}


def _iso(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
