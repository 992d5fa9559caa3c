"""What the GitHub client asks for and what it makes of the answers, on a real connection."""

import base64
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from endpoint import Endpoint, answer, endpoint
from githubclient import NOW, SHA, TOKEN, WEB, Clock, client, fails, issue, late, pull, repository, says, target

from mcp_ops.github.api import CheckRun, CommitStatus, GitHubError, Job, RepoName, Review
from mcp_ops.github.client import RestGitHub, Token
from mcp_ops.github.client.cache import AnswerCache
from mcp_ops.github.client.paths import joined

pytestmark = pytest.mark.covers("D4")

Ask = Callable[[RestGitHub], Awaitable[Any]]


def query(here: Any, index: int = -1) -> dict[str, list[str]]:
    return parse_qs(urlsplit(target(here, index)).query)


async def refused(ask: Awaitable[Any]) -> GitHubError:
    with pytest.raises(GitHubError) as caught:
        await ask
    return caught.value


async def test_a_repository_is_asked_for_with_the_token_and_read() -> None:
    async with endpoint(says(repository())) as here, client(here) as github:
        found = await github.repository(WEB)
    assert here.requests[0].line == "GET /v1/repos/acme/web HTTP/1.1"
    sent = here.requests[0].headers
    assert (sent["authorization"], sent["x-github-api-version"]) == (f"Bearer {TOKEN}", "2022-11-28")
    assert (sent["accept"], sent["accept-encoding"]) == ("application/vnd.github+json", "identity")
    assert (found.name, found.private, found.default_branch, found.open_issues) == (WEB, False, "main", 3)


@pytest.mark.parametrize("visibility", ["internal", "private"])
async def test_what_github_calls_internal_is_private(visibility: str) -> None:
    async with endpoint(says(repository(visibility=visibility))) as here, client(here) as github:
        assert (await github.repository(WEB)).private


async def test_null_users_null_bodies_and_missing_optional_fields_are_read_as_nothing() -> None:
    gone = pull(user=None, body=None, requested_reviewers=[None, {"login": "eve"}])
    for name in ("draft", "labels"):
        del gone[name]
    async with endpoint(says(gone), says([{"state": "APPROVED", "user": None}])) as here, client(here) as github:
        found = await github.pull_request(WEB, 17)
        reviews = await github.reviews(WEB, 17, limit=5)
    assert (found.author, found.body, found.draft, found.labels) == (None, "", False, ())
    assert found.requested_reviewers == (None, "eve")
    assert reviews.items == (Review(None, "approved", None),)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (pull(head={"ref": "x"}), "head.sha"),
        (pull(head={"ref": "x", "sha": "abc"}), "head.sha"),
        (pull(user="ada"), "user"),
        (pull(number="17"), "number"),
        (pull(updated_at="yesterday"), "updated_at"),
        (pull(updated_at="2026-11-30T10:00:00"), "updated_at"),
        (pull(draft="no"), "draft"),
        (pull(labels=[{"name": "a"}, 5]), "labels[1]"),
        ([pull()], "its top"),
        (None, "its top"),
    ],
)
async def test_a_shape_that_is_not_understood_is_an_error_that_names_the_field(body: Any, field: str) -> None:
    async with endpoint(says(body)) as here, client(here) as github:
        error = await refused(github.pull_request(WEB, 17))
    assert error.kind == "unreadable"
    assert f"pull request #17 of acme/web: GitHub's answer is not understood at {field}" in str(error)


async def test_an_entry_that_is_not_understood_is_named_by_its_place_in_the_list() -> None:
    async with endpoint(says([pull(), pull(title=None)])) as here, client(here) as github:
        error = await refused(github.pull_requests(WEB, limit=5))
    assert "[1].title" in str(error)


@pytest.mark.parametrize("body", [b"<html>", b'{"full_name": ', b"", b"\xff\xfe", b"[" * 5000])
async def test_an_answer_that_is_no_json_is_an_error(body: bytes) -> None:
    async with endpoint(says(body)) as here, client(here) as github:
        error = await refused(github.repository(WEB))
    assert (error.kind, "no JSON" in str(error)) == ("unreadable", True)


@pytest.mark.parametrize(
    ("repo", "where"),
    [
        (RepoName("../..", "user"), "owner"),
        (RepoName("..", "web"), "owner"),
        (RepoName("acme/x", "web"), "owner"),
        (RepoName("acme?x", "web"), "owner"),
        (RepoName("", "web"), "owner"),
        (RepoName("acme", "web/../../orgs/acme/members"), "name"),
        (RepoName("acme", ".."), "name"),
        (RepoName("acme", "web/issues"), "name"),
        (RepoName("acme", "web#1"), "name"),
        (RepoName("acme", "web\n"), "name"),
        (RepoName("acme", "wéb"), "name"),
        (RepoName("acme", "%2e%2e"), "name"),
    ],
)
async def test_a_name_that_github_does_not_give_out_is_not_asked_for(repo: RepoName, where: str) -> None:
    async with endpoint(says(repository())) as here, client(here) as github:
        error = await refused(github.repository(repo))
    assert (error.kind, here.requests) == ("invalid", [])
    assert f"the {where} of a repository" in str(error)


@pytest.mark.parametrize(
    "ask",
    [
        lambda github: github.statuses(WEB, "../../../user"),
        lambda github: github.check_runs(WEB, "main"),
        lambda github: github.failed_jobs(WEB, ""),
        lambda github: github.pull_request(WEB, 0),
        lambda github: github.job_log(WEB, -1, max_bytes=10),
        lambda github: github.issues(WEB, labels=["a,b"], limit=1),
        lambda github: github.issues(WEB, labels=["\ud800"], limit=1),
    ],
)
async def test_a_part_of_a_request_that_cannot_be_meant_is_not_sent(ask: Ask) -> None:
    async with endpoint(says([])) as here, client(here) as github:
        error = await refused(ask(github))
    assert (error.kind, here.requests) == ("invalid", [])


async def test_every_value_stays_inside_its_parameter() -> None:
    async with endpoint(says([])) as here, client(here) as github:
        await github.issues(WEB, labels=["a&state=all", "b#c d/é"], limit=7)
    assert query(here)["labels"] == ["a&state=all,b#c d/é"]
    assert (query(here)["state"], query(here)["per_page"]) == (["open"], ["7"])


async def test_an_enterprise_base_path_is_kept() -> None:
    async with endpoint(says(repository())) as here:
        url = here.url.removesuffix("/v1") + "/api/v3/"
        async with RestGitHub(url, Token(TOKEN), now=Clock()) as github:
            await github.repository(WEB)
    assert here.requests[0].line == "GET /api/v3/repos/acme/web HTTP/1.1"


async def test_issues_come_without_pull_requests() -> None:
    listed = [issue(5), issue(4, pull_request={"url": "x"}), issue(3)]
    async with endpoint(says(listed)) as here, client(here) as github:
        page = await github.issues(WEB, state="all", limit=3, updated_since=NOW - timedelta(hours=24))
    assert [found.number for found in page.items] == [5, 3]
    assert query(here)["since"] == ["2026-11-29T12:00:00Z"]
    assert (query(here)["sort"], query(here)["direction"]) == (["updated"], ["desc"])


@pytest.mark.covers("D11")
async def test_the_first_pull_request_that_was_updated_earlier_ends_the_list() -> None:
    earlier, day = pull(2, updated_at="2026-11-29T10:00:00Z"), NOW - timedelta(hours=24)
    two_pages = late(lambda: says([pull(3), earlier], Link=following(here)))
    more_of_them = late(lambda: says([pull(4), pull(3)], Link=following(here)))
    async with endpoint(two_pages, more_of_them) as here, client(here) as github:
        ended = await github.pull_requests(WEB, limit=2, updated_since=day)
        going_on = await github.pull_requests(WEB, limit=2, updated_since=day)
    assert ([found.number for found in ended.items], ended.next) == ([3], None)
    assert going_on.next is not None
    assert query(here)["state"] == ["all"]


async def test_only_the_first_page_is_asked_for_and_the_limit_holds() -> None:
    async with endpoint(says([pull(n) for n in (9, 8, 7)])) as here, client(here) as github:
        page = await github.pull_requests(WEB, limit=2)
        await github.pull_requests(WEB, limit=1000)
    assert [found.number for found in page.items] == [9, 8]
    assert query(here)["per_page"] == ["100"]
    assert len(here.requests) == 2


def following(here: Endpoint, begin: str = "page=2") -> str:
    """Return a Link header as GitHub writes it: by the repository's id, the last page beside the next one."""
    there = f"{here.url}/repositories/1300192/issues"
    return f'<{there}?per_page=2&{begin}>; rel="next", <{there}?page=9>; rel="last"'


@pytest.mark.covers("D11")
@pytest.mark.parametrize("begin", ["page=2", "after=Y3Vyc29yOnYyOpK5%3D%3D", "page=2&after=abc"])
async def test_a_cursor_asks_for_the_next_page_of_the_same_list(begin: str) -> None:
    first, last = late(lambda: says([issue(9)], Link=following(here, begin))), says([issue(8)])
    async with endpoint(first, last) as here, client(here) as github:
        page = await github.issues(WEB, limit=2, labels=["bug"])
        assert page.next is not None
        rest = await github.issues(WEB, limit=2, labels=["bug"], cursor=page.next)
    assert ([found.number for found in rest.items], rest.next) == ([8], None)
    assert target(here).startswith("/repos/acme/web/issues?")
    assert query(here) == {**query(here, 0), **parse_qs(begin)}
    assert "github" not in page.next


@pytest.mark.covers("D11")
async def test_a_cursor_goes_with_a_time_that_moved_on() -> None:
    first = late(lambda: says([issue(9)], Link=following(here)))
    async with endpoint(first, says([])) as here, client(here) as github:
        page = await github.issues(WEB, limit=2, updated_since=NOW - timedelta(hours=24))
        await github.issues(WEB, limit=2, updated_since=NOW - timedelta(hours=23), cursor=page.next)
    assert query(here)["since"] == ["2026-11-29T13:00:00Z"]


OTHER_LISTS: list[Any] = [
    lambda github, cursor: github.issues(RepoName("acme", "api"), limit=2, cursor=cursor),
    lambda github, cursor: github.issues(WEB, limit=2, state="all", cursor=cursor),
    lambda github, cursor: github.issues(WEB, limit=2, labels=["bug"], cursor=cursor),
    lambda github, cursor: github.issues(WEB, limit=3, cursor=cursor),
    lambda github, cursor: github.pull_requests(WEB, limit=2, cursor=cursor),
]


@pytest.mark.covers("D11")
@pytest.mark.parametrize("ask", OTHER_LISTS)
async def test_a_cursor_of_another_list_is_refused(ask: Any) -> None:
    first = late(lambda: says([issue(9)], Link=following(here)))
    async with endpoint(first, says([])) as here, client(here) as github:
        page = await github.issues(WEB, limit=2)
        error = await refused(ask(github, page.next))
        await github.issues(RepoName("ACME", "Web"), limit=2, cursor=page.next)
    assert (error.kind, len(here.requests)) == ("invalid", 2)
    assert "this cursor is none of this list" in str(error)


def forged(cursor: str, **place: str) -> str:
    """Return a cursor of the same list that begins elsewhere."""
    read = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    return base64.urlsafe_b64encode(json.dumps({**read, "place": place}).encode()).decode().rstrip("=")


@pytest.mark.covers("D11", "D12")
async def test_a_cursor_that_was_made_up_is_refused() -> None:
    first = late(lambda: says([issue(9)], Link=following(here)))
    async with endpoint(first, says([])) as here, client(here) as github:
        good = (await github.issues(WEB, limit=2)).next
        assert good is not None
        made_up = ["", "2", "https://evil.example/x?page=2", "é", "=" * 9, "A" * 9000, good[:-4], good + "x"]
        made_up += [forged(good), forged(good, page="0"), forged(good, page="2&state=all"), forged(good, url="x")]
        made_up += [forged(good, page="2", per_page="100"), forged(good, after="a b"), forged(good, after="\r\nX: 1")]
        kinds = [(await refused(github.issues(WEB, limit=2, cursor=cursor))).kind for cursor in made_up]
        await github.issues(WEB, limit=2, cursor=forged(good, page="3"))
    assert kinds == ["invalid"] * len(made_up)
    assert len(here.requests) == 2


@pytest.mark.covers("D12")
@pytest.mark.parametrize(
    "link",
    [
        '<https://evil.example/repositories/1/issues?page=2>; rel="next"',
        '<http://127.0.0.1:1/v1/repositories/1/issues?page=2>; rel="next"',
        "<//evil.example/?page=2>; rel=next",
        '<not an address [>; rel="next"',
    ],
)
async def test_a_next_page_on_another_host_is_an_error(link: str) -> None:
    async with endpoint(says([issue()], Link=link)) as here, client(here) as github:
        error = await refused(github.issues(WEB, limit=2))
    assert (error.kind, "another host" in str(error)) == ("unreadable", True)


async def test_a_next_page_without_a_beginning_is_an_error() -> None:
    async with endpoint(late(lambda: says([issue()], Link=following(here, "x=1")))) as here, client(here) as github:
        assert "does not say where it begins" in str(await refused(github.issues(WEB, limit=2)))


async def test_a_link_header_without_a_next_page_is_the_end() -> None:
    link = '<https://evil.example/x?page=1>; rel="first", <x>; rel="nextish", <y>'
    async with endpoint(says([issue()], Link=link)) as here, client(here) as github:
        assert (await github.issues(WEB, limit=2)).next is None


async def test_an_answer_that_did_not_change_is_not_sent_again() -> None:
    first = late(lambda: says([issue(9)], ETag='W/"a1"', Link=following(here)))
    async with endpoint(first, answer(b"", 304, ETag='W/"a1"'), says([issue(7)])) as here, client(here) as github:
        one = await github.issues(WEB, limit=2)
        same = await github.issues(WEB, limit=2)
        changed = await github.issues(WEB, limit=2)
    assert one == same
    assert [found.number for found in changed.items] == [7]
    assert [each.headers.get("if-none-match") for each in here.requests] == [None, 'W/"a1"', 'W/"a1"']


async def test_what_was_kept_is_not_used_for_another_address_or_another_token() -> None:
    async with (
        endpoint(says([], ETag='"a"')) as here,
        client(here) as github,
        client(here, Token(f"{TOKEN}2")) as other,
    ):
        await github.issues(WEB, limit=2)
        await github.issues(WEB, limit=3)
        await other.issues(WEB, limit=2)
    assert [each.headers.get("if-none-match") for each in here.requests] == [None, None, None]


@pytest.mark.parametrize("etag", ["", "bare", '"with\tcontrol"', '"' + "x" * 300 + '"', '"inner"quote"'])
async def test_a_tag_that_cannot_be_sent_back_is_not_kept(etag: str) -> None:
    async with endpoint(says([], ETag=etag)) as here, client(here) as github:
        await github.issues(WEB, limit=2)
        await github.issues(WEB, limit=2)
    assert here.requests[1].headers.get("if-none-match") is None


async def test_unchanged_without_having_been_asked_is_an_error() -> None:
    async with endpoint(answer(b"", 304)) as here, client(here) as github:
        error = await refused(github.repository(WEB))
    assert (error.kind, "status 304" in str(error)) == ("unreadable", True)


def test_the_cache_forgets_what_was_used_longest_ago_within_both_bounds() -> None:
    cache = AnswerCache(max_entries=2, max_bytes=10)
    for url, size in (("a", 4), ("b", 4)):
        cache.put(url, "t", etag='"x"', link="", body=b"." * size)
    assert cache.get("a", "t") is not None
    cache.put("c", "t", etag='"x"', link="", body=b"..")
    assert [cache.get(url, "t") is not None for url in "abc"] == [True, False, True]
    cache.put("d", "t", etag='"x"', link="", body=b"." * 9)
    assert [cache.get(url, "t") is not None for url in "acd"] == [False, False, True]
    cache.put("e", "t", etag='"x"', link="", body=b"." * 11)
    assert [cache.get(url, "t") is not None for url in "de"] == [True, False]
    cache.put("d", "t", etag='"x"', link="", body=b"." * 11)
    assert cache.get("d", "t") is None


def test_parts_of_a_path_stay_parts() -> None:
    assert joined("repos", "a/b", "..?x#y%2f", 5) == "/repos/a%2Fb/..%3Fx%23y%252f/5"


async def test_a_combined_status_without_statuses_is_no_status() -> None:
    none = {"state": "pending", "statuses": [], "total_count": 0, "sha": SHA}
    two = {"state": "failure", "statuses": [{"context": "a", "state": "failure"}, {"context": "b", "state": "success"}]}
    async with endpoint(says(none), says(two)) as here, client(here) as github:
        assert tuple(await github.statuses(WEB, SHA)) == ()
        found = await github.statuses(WEB, SHA)
    assert tuple(found) == (CommitStatus("a", "failure"), CommitStatus("b", "success"))
    assert target(here) == f"/repos/acme/web/commits/{SHA}/status?per_page=100"


async def test_check_runs_are_read_with_and_without_a_conclusion() -> None:
    runs = [{"name": "a", "status": "in_progress", "conclusion": None}, {"name": "b", "status": "completed"}]
    runs[1]["conclusion"] = "timed_out"
    async with endpoint(says({"total_count": 2, "check_runs": runs})) as here, client(here) as github:
        found = await github.check_runs(WEB, SHA)
    assert tuple(found) == (CheckRun("a", "in_progress", None), CheckRun("b", "completed", "timed_out"))
    assert query(here) == {"filter": ["latest"], "per_page": ["100"]}


@pytest.mark.covers("D11")
async def test_failed_jobs_are_those_of_the_latest_run_of_each_workflow() -> None:
    runs = [
        {"id": 12, "workflow_id": 1, "conclusion": "failure"},
        {"id": 11, "workflow_id": 1, "conclusion": "failure"},
        {"id": 10, "workflow_id": 2, "conclusion": "success"},
        {"id": 9, "workflow_id": 3, "conclusion": None},
    ]
    jobs = [{"id": 1, "name": "a", "conclusion": "cancelled"}, {"id": 2, "name": "b", "conclusion": "failure"}]
    jobs += [{"id": 3, "name": "c", "conclusion": "success"}, {"id": 4, "name": "d", "conclusion": None}]
    answers = [says({"workflow_runs": runs}), says({"jobs": jobs}), says({"jobs": []})]
    async with endpoint(*answers) as here, client(here) as github:
        found = await github.failed_jobs(WEB, SHA)
    assert tuple(found) == (Job(2, "b", "failure"), Job(1, "a", "cancelled"))
    asked = [target(here, index).partition("?")[0].removeprefix("/repos/acme/web/actions/runs") for index in range(3)]
    assert asked == ["", "/12/jobs", "/9/jobs"]


async def test_a_run_that_failed_is_looked_at_before_those_in_progress_and_beside_a_green_one_of_another_event() -> (
    None
):
    runs = [{"id": 20 + number, "workflow_id": 10 + number, "conclusion": None} for number in range(6)]
    runs += [{"id": 9, "workflow_id": 1, "event": "pull_request", "conclusion": "success"}]
    runs += [{"id": 8, "workflow_id": 1, "event": "push", "conclusion": "failure"}]
    failed = says({"jobs": [{"id": 1, "name": "a", "conclusion": "failure"}]})
    async with (
        endpoint(says({"workflow_runs": runs}), failed, *[says({"jobs": []})] * 4) as here,
        client(here) as github,
    ):
        assert tuple(await github.failed_jobs(WEB, SHA)) == (Job(1, "a", "failure"),)
    assert "/8/jobs" in target(here, 1)


async def test_a_commit_says_its_author_by_login_else_by_name_and_an_empty_repository_has_none() -> None:
    signed = {"name": "Ada L.", "date": "2026-11-30T09:00:00Z"}
    commits = [
        {"sha": SHA, "commit": {"message": "m", "author": signed, "committer": signed}, "author": {"login": "ada"}},
        {"sha": SHA, "commit": {"message": "m", "author": signed, "committer": signed}, "author": {}},
        {"sha": SHA, "commit": {"message": "m", "author": None, "committer": signed}, "author": None},
    ]
    async with endpoint(says(commits), fails(409, "Git Repository is empty.")) as here, client(here) as github:
        page = await github.commits(WEB, since=NOW - timedelta(hours=24), limit=5)
        empty = await github.commits(WEB, since=NOW, limit=5)
    assert [found.author for found in page.items] == ["ada", "Ada L.", None]
    assert page.items[0].date == datetime(2026, 11, 30, 9, tzinfo=UTC)
    assert empty.items == ()


async def test_a_commit_without_any_date_is_an_error() -> None:
    commits = [{"sha": SHA, "commit": {"message": "m", "author": None, "committer": None}, "author": None}]
    async with endpoint(says(commits)) as here, client(here) as github:
        error = await refused(github.commits(WEB, since=NOW, limit=5))
    assert (error.kind, "commit.committer.date" in str(error)) == ("unreadable", True)


@pytest.mark.covers("D2")
async def test_an_issue_is_opened_with_what_was_given() -> None:
    async with endpoint(says(issue(101, title="T"), 201)) as here, client(here) as github:
        created = await github.create_issue(WEB, title="T", body="B\u2028é", labels=["bug"])
    assert (created.number, created.title) == (101, "T")
    assert here.requests[0].line == "POST /v1/repos/acme/web/issues HTTP/1.1"
    assert here.requests[0].body == {"title": "T", "body": "B\u2028é", "labels": ["bug"]}
