"""What the in-memory GitHub answers at each path of a repository."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mcp_ops.github.memory.answers import NOT_FOUND, Reply, Request, failed, said
from mcp_ops.github.memory.lists import paged
from mcp_ops.github.memory.rendering import job, workflow_run
from mcp_ops.github.memory.state import IssueState
from mcp_ops.github.memory.store import StoredRepository

STORAGE = "/_storage/logs"
"""Where the logs are that a request is redirected to. In GitHub that is another host."""
MAX_TITLE, MAX_BODY = 256, 65536


@dataclass(frozen=True)
class Visit:
    """A request at one repository."""

    repo: StoredRepository
    request: Request
    found: re.Match[str]
    """The path below the repository."""
    now: datetime

    def number(self) -> int:
        """Return the number in the path."""
        return int(self.found["number"])

    def list(self, items: list[dict[str, Any]], wrap: str | None = None) -> Reply:
        """Return the page of a list that was asked for."""
        return paged(self.request, f"/repositories/{self.repo.id}{self.found.string}", items, wrap)


def _repository(visit: Visit) -> Reply:
    return said(200, visit.repo.render.repository())


def _pulls(visit: Visit) -> Reply:
    render, query = visit.repo.render, visit.request.query
    items = [render.pull_request(int(number), pull) for number, pull in visit.repo.state.pull_requests.items()]
    return visit.list(_sorted([item for item in items if _in_state(item, query)], query))


def _pull(visit: Visit) -> Reply:
    pull = visit.repo.pull_request(visit.number())
    return NOT_FOUND if pull is None else said(200, visit.repo.render.pull_request(visit.number(), pull))


def _files(visit: Visit) -> Reply:
    pull = visit.repo.pull_request(visit.number())
    return NOT_FOUND if pull is None else visit.list(visit.repo.render.files(pull))


def _reviews(visit: Visit) -> Reply:
    pull = visit.repo.pull_request(visit.number())
    return NOT_FOUND if pull is None else visit.list(visit.repo.render.reviews(pull))


def _commits(visit: Visit) -> Reply:
    render, since = visit.repo.render, visit.request.query.get("since", "")
    items = [render.commit(index, commit) for index, commit in enumerate(visit.repo.state.commits)]
    items.sort(key=lambda item: item["commit"]["committer"]["date"], reverse=True)
    return visit.list([item for item in items if _time(item["commit"]["committer"]["date"]) >= _time(since)])


def _status(visit: Visit) -> Reply:
    sha = visit.found["sha"]
    if not visit.repo.knows_commit(sha):
        return failed(422, f"No commit found for SHA: {sha}")
    return said(200, visit.repo.render.combined_status(sha, visit.repo.of_commit(sha)))


def _check_runs(visit: Visit) -> Reply:
    sha = visit.found["sha"]
    if not visit.repo.knows_commit(sha):
        return failed(422, f"No commit found for SHA: {sha}")
    return said(200, visit.repo.render.check_runs(sha, visit.repo.of_commit(sha)))


def _runs(visit: Visit) -> Reply:
    sha = visit.request.query.get("head_sha")
    runs = [run for run in reversed(visit.repo.runs) if sha is None or run.sha == sha]
    return visit.list([workflow_run(run.id, run.workflow_id, run.sha, run.state) for run in runs], "workflow_runs")


def _jobs(visit: Visit) -> Reply:
    run = next((run for run in visit.repo.runs if run.id == visit.number()), None)
    if run is None:
        return NOT_FOUND
    return visit.list([job(each.id, run.id, each.state) for each in run.jobs], "jobs")


def _log(visit: Visit) -> Reply:
    jobs = (each for run in visit.repo.runs for each in run.jobs)
    found = next((each for each in jobs if each.id == visit.number()), None)
    if found is None or found.state.conclusion is None:
        return NOT_FOUND
    if found.state.log is None:
        return failed(410, "Gone")
    where = f"{visit.request.base}{STORAGE}/{visit.repo.id}/{found.id}?sig=made-up"
    return Reply(302, {"Location": where}, b"")


def stored_log(repo: StoredRepository | None, job_id: int) -> str | None:
    """Return a log as its storage has it."""
    jobs = (each for run in (repo.runs if repo else ()) for each in run.jobs)
    return next((each.state.log for each in jobs if each.id == job_id), None)


def _issues(visit: Visit) -> Reply:
    if not visit.repo.state.has_issues:
        return failed(410, "Issues are disabled for this repo")
    render, query = visit.repo.render, visit.request.query
    items = [_issue_now(visit.repo, number, issue) for number, issue in visit.repo.issues()]
    items += [
        render.pull_request_as_issue(int(number), pull) for number, pull in visit.repo.state.pull_requests.items()
    ]
    wanted = set(filter(None, query.get("labels", "").split(",")))
    since = _time(query.get("since", ""))
    kept = [
        item
        for item in items
        if _in_state(item, query)
        and wanted <= {label["name"] for label in item["labels"]}
        and _time(item["updated_at"]) >= since
    ]
    return visit.list(_sorted(kept, query))


def _issue(visit: Visit) -> Reply:
    issue = next((issue for number, issue in visit.repo.issues() if number == visit.number()), None)
    return NOT_FOUND if issue is None else said(200, _issue_now(visit.repo, visit.number(), issue))


def _new_issue(visit: Visit) -> Reply:
    repo = visit.repo
    if not repo.state.has_issues:
        return failed(410, "Issues are disabled for this repo")
    if repo.state.archived:
        return failed(403, "Repository was archived so is read-only.")
    try:
        given = json.loads(visit.request.body)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        return failed(400, "Problems parsing JSON")
    title, body, labels = given.get("title"), given.get("body"), given.get("labels") or []
    wrong = _wrong_issue(title, body, labels)
    if wrong is not None:
        return failed(422, "Validation Failed", errors=[{"resource": "Issue", **wrong}])
    issue = IssueState(title=str(title), author="token-owner", body=body, labels=tuple(labels), hours_ago=0)
    number = repo.open_issue(issue, visit.now)
    created = _issue_now(repo, number, issue)
    return said(201, created, Location=f"{visit.request.base}/repos/{repo.name}/issues/{number}")


def _wrong_issue(title: object, body: object, labels: object) -> Mapping[str, str] | None:
    if not isinstance(title, str) or not title.strip():
        return {"code": "missing_field", "field": "title"}
    if len(title) > MAX_TITLE:
        return {"code": "custom", "field": "title", "message": f"title is too long (maximum is {MAX_TITLE} characters)"}
    if not isinstance(body, str | None):
        return {"code": "invalid", "field": "body"}
    if body is not None and len(body) > MAX_BODY:
        return {"code": "custom", "field": "body", "message": f"body is too long (maximum is {MAX_BODY} characters)"}
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        return {"code": "invalid", "field": "labels"}
    return None


def _issue_now(repo: StoredRepository, number: int, issue: IssueState) -> dict[str, Any]:
    opened = repo.created.get(number)
    return repo.render.issue(number, issue, opened[1] if opened else None)


def _in_state(item: Mapping[str, Any], query: Mapping[str, str]) -> bool:
    state = query.get("state", "open")
    return state == "all" or item["state"] == state


def _sorted(items: list[dict[str, Any]], query: Mapping[str, str]) -> list[dict[str, Any]]:
    key = "updated_at" if query.get("sort") == "updated" else "number"
    return sorted(items, key=lambda item: (item[key], item["number"]), reverse=query.get("direction", "desc") == "desc")


def _time(text: str) -> datetime:
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return read if read.tzinfo else read.replace(tzinfo=UTC)


_NUMBER = r"(?P<number>[1-9][0-9]{0,15})"
_SHA = r"(?P<sha>[0-9a-fA-F]{7,64})"

ROUTES: tuple[tuple[str, re.Pattern[str], Callable[[Visit], Reply]], ...] = tuple(
    (method, re.compile(pattern, re.ASCII), answer)
    for method, pattern, answer in (
        ("GET", "", _repository),
        ("GET", "/pulls", _pulls),
        ("GET", f"/pulls/{_NUMBER}", _pull),
        ("GET", f"/pulls/{_NUMBER}/files", _files),
        ("GET", f"/pulls/{_NUMBER}/reviews", _reviews),
        ("GET", "/commits", _commits),
        ("GET", f"/commits/{_SHA}/status", _status),
        ("GET", f"/commits/{_SHA}/check-runs", _check_runs),
        ("GET", "/actions/runs", _runs),
        ("GET", f"/actions/runs/{_NUMBER}/jobs", _jobs),
        ("GET", f"/actions/jobs/{_NUMBER}/logs", _log),
        ("GET", "/issues", _issues),
        ("GET", f"/issues/{_NUMBER}", _issue),
        ("POST", "/issues", _new_issue),
    )
)


def at_repository(repo: StoredRepository, below: str, request: Request, now: datetime) -> Reply:
    """Answer a request at a path below a repository."""
    for method, pattern, answer in ROUTES:
        found = pattern.fullmatch(below)
        if found is not None and method == request.method:
            return answer(Visit(repo, request, found, now))
    return NOT_FOUND
