"""The in-memory GitHub answers as the real one does, and the client reads it the same way over a real network."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Awaitable
from datetime import timedelta
from typing import Any

import httpx
import pytest
import uvicorn
from githubclient import NOW, SHA, TOKEN, WEB, Clock
from pydantic import ValidationError

from mcp_ops.github.api import CheckRun, CommitStatus, GitHubError, Issue, RepoName, Review
from mcp_ops.github.client import RestGitHub, Token
from mcp_ops.github.memory.asgi import application
from mcp_ops.github.memory.service import MemoryGitHub
from mcp_ops.github.memory.state import GitHubState

pytestmark = pytest.mark.covers("D10")

API = RepoName("acme", "api")

LOG = "".join(f"step {number}\n" for number in range(500)) + "Error: unit failed\n"
STATE: dict[str, Any] = {
    "repositories": {
        "acme/web": {
            "description": "The shop",
            "renamed_from": "acme/old-web",
            "next_number": 101,
            "pull_requests": {
                "17": {
                    "title": "Reduce checkout latency",
                    "author": "ada",
                    "head_sha": SHA,
                    "hours_ago": 2,
                    "requested_reviewers": ["eve", None],
                    "reviews": [{"author": "grace", "state": "CHANGES_REQUESTED", "hours_ago": 1}, {"author": None}],
                    "files": {
                        "src/pay.py": {"additions": 2, "deletions": 1, "patch": "@@ -1 +1 @@\n-a\n+b"},
                        "logo.png": {"status": "added"},
                    },
                    "statuses": {"ci/build": "failure", "ci/lint": "success"},
                    "check_runs": [
                        {"name": "unit", "conclusion": "failure"},
                        {"name": "e2e", "status": "in_progress"},
                    ],
                    "workflow_runs": [
                        {"conclusion": "failure", "jobs": [{"name": "old", "conclusion": "failure", "log": "old"}]},
                        {
                            "conclusion": "failure",
                            "jobs": [
                                {"name": "unit", "conclusion": "failure", "log": LOG},
                                {"name": "gone", "conclusion": "failure"},
                                {"name": "fine", "conclusion": "success", "log": "fine"},
                            ],
                        },
                    ],
                },
                "16": {"title": "Old", "state": "closed", "hours_ago": 5, "author": None},
                "15": {"title": "Older", "state": "closed", "hours_ago": 50},
            },
            "issues": {
                str(number): {"title": f"Issue {number}", "labels": ["bug"] if number % 2 else [], "hours_ago": number}
                for number in range(1, 8)
            },
            "commits": [
                {"message": "Yesterday", "hours_ago": 30},
                {"message": "Add health check", "author": "ada", "hours_ago": 3},
                {"message": "Now", "author": None, "hours_ago": 0},
            ],
        },
        "acme/api": {"private": True, "has_issues": False},
        "acme/hidden": {"private": True, "visible": False},
        "acme/museum": {"archived": True},
    }
}


def memory(answers: list[dict[str, Any]] | None = None, clock: Clock | None = None, **state: Any) -> MemoryGitHub:
    state = {**STATE, **state, "answers": answers or []}
    return MemoryGitHub(GitHubState.model_validate(state), token=TOKEN, now=clock or Clock())


@contextlib.asynccontextmanager
async def served(github: MemoryGitHub) -> AsyncIterator[str]:
    """Serve it by a real HTTP server on loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        server = uvicorn.Server(uvicorn.Config(application(github), log_level="critical", ws="none"))
        serving = asyncio.create_task(server.serve([listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving


async def refused(ask: Awaitable[Any]) -> GitHubError:
    with pytest.raises(GitHubError) as caught:
        await ask
    return caught.value


async def everything(github: RestGitHub) -> list[Any]:
    """Return what each method of the interface says."""
    day = NOW - timedelta(hours=24)
    pulls = await github.pull_requests(WEB, limit=30)
    first = await github.issues(WEB, state="all", limit=3)
    jobs = await github.failed_jobs(WEB, SHA)
    return [
        await github.repository(WEB),
        await github.repository(API),
        pulls,
        await github.pull_requests(WEB, limit=30, updated_since=day),
        await github.pull_request(WEB, 17),
        await github.files(WEB, 17, limit=1),
        await github.reviews(WEB, 17, limit=30),
        tuple(await github.statuses(WEB, SHA)),
        tuple(await github.check_runs(WEB, SHA)),
        tuple(jobs),
        await github.job_log(WEB, jobs[0].id, max_bytes=40),
        first,
        await github.issues(WEB, state="all", limit=3, cursor=first.next),
        await github.issues(WEB, labels=["bug"], limit=30),
        await github.issues(WEB, limit=30, updated_since=NOW - timedelta(hours=3)),
        await github.commits(WEB, since=day, limit=10),
        await github.repository(RepoName("acme", "old-web")),
        await github.create_issue(WEB, title="Investigate", body="Body", labels=["ci"]),
        await github.create_issue(WEB, title="Again", body=""),
        [(error.kind, str(error)) for error in await failures(github, jobs[1].id)],
    ]


async def failures(github: RestGitHub, gone: int) -> list[GitHubError]:
    asks = [
        github.repository(RepoName("acme", "hidden")),
        github.repository(RepoName("acme", "nothing")),
        github.pull_request(WEB, 99),
        github.files(WEB, 3, limit=3),
        github.reviews(WEB, 99, limit=3),
        github.statuses(WEB, "0" * 40),
        github.check_runs(WEB, "0" * 40),
        github.issues(API, limit=3),
        github.create_issue(API, title="T", body="B"),
        github.create_issue(RepoName("acme", "museum"), title="T", body="B"),
        github.create_issue(RepoName("acme", "old-web"), title="T", body="B"),
        github.create_issue(WEB, title=" ", body="B"),
        github.create_issue(WEB, title="T" * 257, body="B"),
        github.create_issue(WEB, title="T", body="B" * 65537),
        github.job_log(WEB, gone, max_bytes=10),
        github.job_log(WEB, 999, max_bytes=10),
    ]
    return [await refused(ask) for ask in asks]


async def test_the_client_reads_the_same_without_a_network_and_over_a_real_server() -> None:
    async with memory().client() as github:
        here = await everything(github)
    there = memory()
    async with served(there) as url, RestGitHub(url, Token(TOKEN), now=Clock()) as github:
        over_http = await everything(github)
    async with served(memory()) as url, RestGitHub(f"{url}/api/v3", Token(TOKEN), now=Clock()) as github:
        enterprise = await everything(github)
    assert here == over_http == enterprise
    assert there.snapshot()["acme/web#101"].title == "Investigate"


async def test_what_the_state_says_is_what_the_client_reads() -> None:
    async with memory().client() as github:
        said = await everything(github)
    web, api, pulls, updated, pull, files, reviews, statuses, checks, jobs, log, *rest = said
    assert (web.name, web.private, web.open_issues, api.private) == (WEB, False, 8, True)
    assert [each.number for each in pulls.items] == [17]
    assert [(each.number, each.state, each.author) for each in updated.items] == [
        (17, "open", "ada"),
        (16, "closed", None),
    ]
    assert (pull.head_sha, pull.updated, pull.requested_reviewers) == (SHA, NOW - timedelta(hours=2), ("eve", None))
    assert [(each.path, each.patch) for each in files.items] == [("src/pay.py", "@@ -1 +1 @@\n-a\n+b")]
    assert files.next is not None
    assert reviews.items[0] == Review("grace", "changes_requested", NOW - timedelta(hours=1))
    assert statuses == (CommitStatus("ci/build", "failure"), CommitStatus("ci/lint", "success"))
    assert checks == (CheckRun("unit", "completed", "failure"), CheckRun("e2e", "in_progress", None))
    assert [job.name for job in jobs] == ["unit", "gone"]
    assert (log.text, log.full_length) == (LOG[-40:], len(LOG))
    first, second, bugs, recent, commits, renamed, created, again, failed = rest
    # The list holds pull request 17 between issues 1 and 3 and loses it: a page may hold fewer than its limit.
    assert [each.number for each in first.items] == [1, 2]
    assert [each.number for each in second.items] == [3, 4]
    assert [each.number for each in bugs.items] == [1, 3, 5, 7]
    assert [each.number for each in recent.items] == [1, 2, 3]
    assert [(each.message, each.author) for each in commits.items] == [("Now", "Somebody"), ("Add health check", "ada")]
    assert renamed.name == WEB
    assert (created.number, created.labels, again.number) == (101, ("ci",), 102)
    assert [kind for kind, _ in failed] == [
        *("not_found", "not_found", "not_found", "not_found", "not_found", "invalid", "invalid", "gone", "gone"),
        *("forbidden", "redirected", "invalid", "invalid", "invalid", "gone", "not_found"),
    ]
    assert failed[0][1].replace("hidden", "nothing") == failed[1][1]


async def test_an_opened_issue_is_in_the_list_and_in_the_snapshot() -> None:
    github = memory()
    before = github.snapshot()
    async with github.client() as asking:
        created = await asking.create_issue(WEB, title="New", body="Text", labels=["ci"])
        listed = await asking.issues(WEB, limit=1)
        assert (await asking.repository(WEB)).open_issues == 9
    added = {name: seen for name, seen in github.snapshot().items() if name not in before}
    assert {name: (seen.title, seen.body, seen.labels, seen.state) for name, seen in added.items()} == {
        "acme/web#101": ("New", "Text", ("ci",), "open")
    }
    assert isinstance(created, Issue)
    assert listed.items == (created,)


@pytest.mark.parametrize(
    ("state", "number"),
    [
        ({}, 1),
        ({"issues": {"4": {}}, "pull_requests": {"9": {}}}, 10),
        ({"issues": {"4": {}}, "next_number": 101}, 101),
        ({"issues": {"101": {}}, "next_number": 101}, 102),
    ],
)
async def test_a_new_issue_gets_the_next_number_of_issues_and_pull_requests(state: dict[str, Any], number: int) -> None:
    github = memory(repositories={"acme/web": state})
    async with github.client() as asking:
        numbers = [(await asking.create_issue(WEB, title="T", body="")).number for _ in range(3)]
    assert numbers == [number, number + 1, number + 2]


async def test_what_did_not_change_is_answered_without_a_body() -> None:
    github, clock = memory(), Clock()
    first = github.respond("GET", "/repos/acme/web/issues", {}, {"Authorization": f"Bearer {TOKEN}"})
    clock.pass_by(600)
    again = {"Authorization": f"Bearer {TOKEN}", "If-None-Match": first.headers["ETag"]}
    same = github.respond("GET", "/repos/acme/web/issues", {}, again)
    assert (first.status, same.status, same.body) == (200, 304, b"")
    async with github.client() as asking:
        one = await asking.issues(WEB, limit=9)
        assert await asking.issues(WEB, limit=9) == one
        await asking.create_issue(WEB, title="T", body="")
        assert len((await asking.issues(WEB, limit=9)).items) == len(one.items) + 1
    tags = [request.headers.get("if-none-match") for request in github.requests[2:]]
    assert [tag is not None for tag in tags] == [False, True, False, True]


def test_a_combined_status_says_what_its_statuses_come_to_and_without_any_it_is_pending() -> None:
    pulls = {"1": {"statuses": {"a": "success", "b": "error"}}, "2": {"statuses": {"a": "success"}}, "3": {}}
    github, auth = memory(repositories={"acme/web": {"pull_requests": pulls}}), {"authorization": f"Bearer {TOKEN}"}
    said = []
    for number in pulls:
        sha = github.respond("GET", f"/repos/acme/web/pulls/{number}", {}, auth).json["head"]["sha"]
        status = github.respond("GET", f"/repos/acme/web/commits/{sha}/status", {}, auth).json
        said.append((status["state"], status["total_count"]))
    assert said == [("failure", 2), ("success", 1), ("pending", 0)]


async def test_another_token_or_none_is_not_accepted() -> None:
    github = memory()
    assert github.respond("GET", "/repos/acme/web").json["message"] == "Requires authentication"
    assert github.respond("GET", "/repos/acme/web", {}, {"authorization": "token x"}).status == 401
    assert github.respond("GET", "/repos/acme/web", {}, {"authorization": f"token {TOKEN}"}).status == 200


async def test_the_storage_of_logs_takes_no_credentials_and_wants_its_signature() -> None:
    github = memory()
    auth = {"authorization": f"Bearer {TOKEN}"}
    redirect = github.respond("GET", "/repos/acme/web/actions/jobs/1002/logs", {}, auth)
    url = httpx.URL(redirect.headers["Location"])
    assert redirect.status == 302
    assert github.respond("GET", url.path, dict(url.params)).body == LOG.encode()
    assert github.respond("GET", url.path, dict(url.params), auth).status == 400
    assert github.respond("GET", url.path).status == 404


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("DELETE", "/repos/acme/web", 404),
        ("PATCH", "/repos/acme/web/issues/3", 404),
        ("POST", "/repos/acme/web/pulls", 404),
        ("GET", "/user", 404),
        ("GET", "/repositories/1296269", 200),
        ("GET", "/repositories/1", 404),
        ("GET", "/repos/ACME/Web", 200),
        ("GET", "/repos/acme/web/issues/3", 200),
        ("GET", "/repos/acme/web/issues/17", 404),
    ],
)
def test_what_is_no_route_is_not_there(method: str, path: str, status: int) -> None:
    assert memory().respond(method, path, {}, {"authorization": f"Bearer {TOKEN}"}).status == status


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"title": 5}', b'{"title": "T", "labels": "x"}', b'{"title": "T", "body": 1}']
)
def test_a_new_issue_in_a_wrong_form_is_refused(body: bytes) -> None:
    github = memory()
    reply = github.respond("POST", "/repos/acme/web/issues", {}, {"authorization": f"Bearer {TOKEN}"}, body)
    assert reply.status in (400, 422)
    assert github.snapshot() == memory().snapshot()


CHECKS = "/repos/*/commits/*/check-runs"


@pytest.mark.parametrize(
    ("scripted", "kind"),
    [
        ({"kind": "bad_credentials"}, "unauthorized"),
        ({"kind": "broken_json"}, "unreadable"),
        ({"kind": "echo"}, "invalid"),
        ({"kind": "forbidden"}, "forbidden"),
        ({"kind": "rate_limited"}, "rate_limited"),
        ({"kind": "secondary_limit"}, "secondary_limit"),
        ({"kind": "server_error"}, "server"),
        ({"kind": "sso_required"}, "sso_required"),
        ({"status": 404}, "not_found"),
        ({"status": 200, "body": {"check_runs": None}}, "unreadable"),
        ({"status": 200, "body": "<html>"}, "unreadable"),
        ({"status": 429, "headers": {"Retry-After": "7"}}, "secondary_limit"),
    ],
)
async def test_a_scripted_answer_takes_the_place_of_the_usual_one(scripted: dict[str, Any], kind: str) -> None:
    github = memory([{"path": CHECKS, **scripted}])
    async with github.client() as asking:
        await asking.statuses(WEB, SHA)
        error = await refused(asking.check_runs(WEB, SHA))
    assert error.kind == kind
    assert TOKEN not in str(error)


async def test_a_scripted_limit_ends_by_the_clock_of_the_run() -> None:
    clock = Clock()
    github = memory([{"kind": "rate_limited", "times": 1}], clock)
    async with github.client() as asking:
        assert (await refused(asking.repository(WEB))).retry_at == NOW + timedelta(seconds=1800)
        clock.pass_by(1800)
        assert (await asking.repository(WEB)).name == WEB


async def test_scripted_answers_are_used_up_in_order_and_by_method() -> None:
    answers = [
        {"method": "POST", "status": 500, "times": 1},
        {"path": "/repos/acme/web", "status": 404, "times": 2},
        {"path": "/repos/acme/web", "status": 410, "times": 1},
    ]
    async with memory(answers).client() as github:
        kinds = [(await refused(github.repository(WEB))).kind for _ in range(3)]
        assert (await github.repository(WEB)).name == WEB
        assert "may be there" in str(await refused(github.create_issue(WEB, title="T", body="")))
        assert (await github.create_issue(WEB, title="T", body="")).number == 101
    assert kinds == ["not_found", "not_found", "gone"]


async def test_a_scripted_answer_can_echo_the_token_that_came() -> None:
    said = {"status": 200, "body": {"statuses": [{"context": "leak ${token}", "state": "success"}]}}
    github = memory([{"path": "*/status", **said}])
    reply = github.respond("GET", "/x/status", {}, {"authorization": 'Bearer a"b'})
    assert reply.json["statuses"][0]["context"] == 'leak a"b'
    async with github.client() as asking:
        assert [each.context for each in await asking.statuses(WEB, SHA)] == ["leak <redacted:github-token>"]


async def test_a_served_answer_cannot_break_out_of_its_headers() -> None:
    github = memory([{"status": 403, "headers": {"X-Odd": "a\r\nX-More: é\u2028"}}])
    async with served(github) as url, httpx.AsyncClient(trust_env=False) as asking:
        response = await asking.get(f"{url}/repos/acme/web?x=1", headers={"Authorization": "Bearer é".encode()})
    assert (response.status_code, "x-more" in response.headers) == (403, False)
    assert response.headers["x-odd"] == "a X-More: é"
    assert github.requests[0].query == {"x": "1"}


@pytest.mark.parametrize(
    ("state", "place"),
    [
        ({"repos": {}}, ("repos",)),
        ({"repositories": {"acme": {}}}, ("repositories", "acme", "[key]")),
        ({"repositories": {"acme/web": {"issues": {"x": {}}}}}, ("repositories", "acme/web", "issues", "x", "[key]")),
        (
            {"repositories": {"acme/web": {"issues": {"3": {}}, "pull_requests": {"3": {}}}}},
            ("repositories", "acme/web"),
        ),
        ({"repositories": {"acme/web": {}, "Acme/Web": {}}}, ("repositories",)),
        ({"repositories": {"acme/web": {}, "acme/x": {"renamed_from": "ACME/web"}}}, ("repositories",)),
        (
            {"repositories": {"acme/web": {"commits": [{"hours_ago": -1}]}}},
            ("repositories", "acme/web", "commits", 0, "hours_ago"),
        ),
        ({"repositories": {"acme/web": {"private": "no"}}}, ("repositories", "acme/web", "private")),
        ({"answers": [{"path": "*"}]}, ("answers", 0)),
        ({"answers": [{"kind": "unknown"}]}, ("answers", 0, "kind")),
    ],
)
def test_a_state_that_means_nothing_is_refused_with_its_place(state: dict[str, Any], place: tuple[Any, ...]) -> None:
    with pytest.raises(ValidationError) as caught:
        GitHubState.model_validate(state)
    assert caught.value.errors()[0]["loc"] == place


def test_a_state_is_the_same_after_a_trip_through_json() -> None:
    state = GitHubState.model_validate(STATE)
    assert GitHubState.model_validate(json.loads(state.model_dump_json(exclude_unset=True))) == state
