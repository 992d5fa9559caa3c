"""What becomes of answers that are no good, of limits, and of no answer at all."""

import socket
from collections.abc import Awaitable
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from endpoint import Endpoint, answer, drip, endpoint, flood, stall_after
from githubclient import EPOCH, NOW, TOKEN, WEB, Clock, client, fails, issue, repository, says

from mcp_ops.github.api import GitHubError, RepoName
from mcp_ops.github.client import RestGitHub, Token

pytestmark = pytest.mark.covers("D5")

SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
ABUSE = "You have triggered an abuse detection mechanism. Please wait a few minutes before you try again."
SAML = "Resource protected by organization SAML enforcement. You must grant your token access to this organization."


async def refused(ask: Awaitable[Any]) -> GitHubError:
    with pytest.raises(GitHubError) as caught:
        await ask
    return caught.value


def create(github: RestGitHub) -> Awaitable[Any]:
    return github.create_issue(WEB, title="T", body="B")


@pytest.mark.parametrize(
    ("said", "kind", "sentence"),
    [
        (fails(401, "Bad credentials"), "unauthorized", "repository acme/web: GitHub does not accept the credentials"),
        (fails(403, "Resource not accessible by integration"), "forbidden", "(403): Resource not accessible by"),
        (fails(404, "Not Found"), "not_found", "repository acme/web: not there, or the token may not see it (404)"),
        (fails(410, "Issues are disabled for this repo"), "gone", "(410): Issues are disabled for this repo"),
        (fails(451, "Repository access blocked"), "forbidden", "legal reasons (451): Repository access blocked"),
        (fails(418, "teapot"), "invalid", "GitHub refuses the request (418): teapot"),
        (fails(500, "Server Error"), "server", "a problem of its own (500): Server Error"),
        (answer(b"<h1>Unicorn!</h1>", 504), "server", "a problem of its own (504)"),
        (says(repository(), 202), "unreadable", "answers with status 202"),
        (says(repository(), 206), "unreadable", "answers with status 206"),
        (answer(b"", 204), "unreadable", "answers with status 204"),
        (fails(300), "redirected", "GitHub redirects (300), which is not followed here"),
        (fails(303), "redirected", "GitHub redirects (303), which is not followed here"),
    ],
)
async def test_each_status_is_a_failure_of_its_kind(said: bytes, kind: str, sentence: str) -> None:
    async with endpoint(said) as here, client(here) as github:
        error = await refused(github.repository(WEB))
    assert (error.kind, error.retry_at, len(here.requests)) == (kind, None, 1)
    assert sentence in str(error)


async def test_what_is_private_and_what_is_not_there_are_one_sentence() -> None:
    async with endpoint(fails(404, "Not Found"), fails(404, "private!")) as here, client(here) as github:
        errors = [str(await refused(github.repository(RepoName("acme", "x")))) for _ in range(2)]
    assert errors[0] == errors[1]


async def test_a_refused_request_names_the_fields() -> None:
    errors = [
        {"resource": "Issue", "field": "title", "code": "missing_field"},
        {"resource": "Issue", "field": "body", "code": "custom", "message": "body is too long"},
        "plain words",
        17,
        {"code": "x\n::error::y"},
    ]
    said = says({"message": "Validation Failed", "errors": [*errors, *["more"] * 50]}, 422)
    async with endpoint(said) as here, client(here) as github:
        error = await refused(create(github))
    expected = (
        "Validation Failed; Issue.title: missing_field; Issue.body: body is too long; plain words; x\\n::error::y"
    )
    assert (error.kind, expected in str(error)) == ("invalid", True)
    assert "more" not in str(error)


@pytest.mark.parametrize("said", [b"[]", b'"x"', b'{"message": 5, "errors": 7}', b"\xff", b"[" * 9000])
async def test_a_failure_in_an_unknown_form_is_still_a_failure(said: bytes) -> None:
    async with endpoint(answer(said, 422)) as here, client(here) as github:
        assert str(await refused(create(github))) == "new issue in acme/web: GitHub refuses the request (422)"


@pytest.mark.parametrize(
    ("said", "whose"),
    [
        (
            fails(403, SAML, X_GitHub_SSO="required; url=https://github.com/orgs/acme/sso?authorization_request=S3cr"),
            "acme",
        ),
        (fails(404, "Not Found", X_GitHub_SSO="required; url=https://ghe.example/orgs/acme-2/sso?x=S3cr"), "acme-2"),
        (fails(403, SAML), "the organization"),
        (fails(403, SAML, X_GitHub_SSO="required; url=javascript:S3cr"), "the organization"),
    ],
)
async def test_single_sign_on_is_asked_for_without_the_request_in_its_address(said: bytes, whose: str) -> None:
    async with endpoint(said) as here, client(here) as github:
        error = await refused(github.repository(WEB))
    assert error.kind == "sso_required"
    assert f"{whose} wants single sign-on" in str(error)
    assert "S3cr" not in str(error)


async def test_a_partial_answer_because_of_single_sign_on_is_a_plain_refusal() -> None:
    said = fails(403, "No", X_GitHub_SSO="partial-results; organizations=21955855")
    async with endpoint(said) as here, client(here) as github:
        assert (await refused(github.repository(WEB))).kind == "forbidden"


RESET = {"X_RateLimit_Remaining": "0", "X_RateLimit_Reset": str(EPOCH + 1200)}


@pytest.mark.parametrize(
    ("said", "kind", "seconds"),
    [
        (fails(403, "API rate limit exceeded for user ID 1.", **RESET), "rate_limited", 1200),
        (fails(429, "API rate limit exceeded", **RESET), "rate_limited", 1200),
        (fails(403, "API rate limit exceeded", X_RateLimit_Remaining="0"), "rate_limited", 60),
        (fails(403, "x", X_RateLimit_Remaining="0", X_RateLimit_Reset=str(EPOCH - 5)), "rate_limited", 60),
        (fails(403, "x", X_RateLimit_Remaining="0", X_RateLimit_Reset="99999999999"), "rate_limited", 3600),
        (fails(403, "x", X_RateLimit_Remaining="0", X_RateLimit_Reset="9" * 40), "rate_limited", 60),
        (fails(403, SECONDARY, Retry_After="30"), "secondary_limit", 30),
        (fails(403, SECONDARY), "secondary_limit", 60),
        (fails(429, SECONDARY), "secondary_limit", 60),
        (fails(403, SECONDARY, **RESET), "secondary_limit", 1200),
        (fails(403, "x", Retry_After="999999"), "secondary_limit", 3600),
        (fails(403, "x", Retry_After=format_datetime(NOW + timedelta(seconds=90))), "secondary_limit", 90),
        (fails(403, ABUSE), "secondary_limit", 60),
        (answer(b"<p>You have triggered an abuse detection mechanism.<br>", 403), "secondary_limit", 60),
        (answer(b"", 429), "secondary_limit", 60),
    ],
)
async def test_a_limit_says_when_to_ask_again(said: bytes, kind: str, seconds: int) -> None:
    async with endpoint(said) as here, client(here) as github:
        error = await refused(github.repository(WEB))
    assert (error.kind, error.retry_at) == (kind, NOW + timedelta(seconds=seconds))
    assert error.retry_at is not None
    assert f"{error.retry_at:%H:%M:%S} UTC" in str(error)


async def test_a_refusal_with_requests_left_is_no_limit() -> None:
    said = fails(403, "Must have admin rights to Repository.", X_RateLimit_Remaining="10", X_RateLimit_Reset="1")
    async with endpoint(said) as here, client(here) as github:
        assert (await refused(github.repository(WEB))).kind == "forbidden"
        await refused(github.repository(WEB))
    assert len(here.requests) == 2


async def test_until_a_limit_is_over_nothing_is_asked_at_all() -> None:
    clock, limited = Clock(), fails(403, "API rate limit exceeded", **RESET)
    async with endpoint(limited, says(repository())) as here, client(here, clock=clock) as github:
        first = await refused(github.repository(WEB))
        clock.pass_by(1199)
        asks = [github.repository(RepoName("acme", "api")), create(github), github.job_log(WEB, 5, max_bytes=10)]
        later = [await refused(ask) for ask in asks]
        assert len(here.requests) == 1
        clock.pass_by(1)
        assert (await github.repository(WEB)).name == WEB
    assert {(error.kind, error.retry_at) for error in later} == {("rate_limited", first.retry_at)}
    assert all(str(error).startswith("not asked: ") for error in later)


@pytest.mark.parametrize("first", [answer(b"", 502), answer(b"", 503), b"", b"HTTP/1.1 200 OK\r\nContent-Le"])
async def test_a_read_is_asked_once_more_when_github_is_away_for_a_moment(first: bytes) -> None:
    async with endpoint(first, says(repository())) as here, client(here) as github:
        assert (await github.repository(WEB)).name == WEB
    assert len(here.requests) == 2


@pytest.mark.parametrize(
    ("said", "kind", "times"),
    [
        (answer(b"", 502), "server", 2),
        (answer(b"", 503, Retry_After="5"), "server", 1),
        (answer(b"", 500), "server", 1),
        (answer(b"", 504), "server", 1),
        (b"", "network", 2),
        (fails(429, "x"), "secondary_limit", 1),
    ],
)
async def test_there_is_one_retry_at_most(said: bytes, kind: str, times: int) -> None:
    async with endpoint(said) as here, client(here) as github:
        assert (await refused(github.repository(WEB))).kind == kind
    assert len(here.requests) == times


async def test_nobody_there_is_a_failed_connection() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with client(Endpoint(f"http://127.0.0.1:{taken.getsockname()[1]}")) as github:
            error = await refused(github.repository(WEB))
            unsent = await refused(create(github))
    assert (error.kind, "the connection failed" in str(error)) == ("network", True)
    assert (unsent.kind, unsent.may_be_done, "may be there" in str(unsent)) == ("network", False, False)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n"


@pytest.mark.parametrize("stuck", [stall_after(b""), stall_after(HEAD), drip(HEAD, b" ", 0.01)])
async def test_an_answer_that_does_not_end_is_given_up_after_the_deadline(stuck: Any) -> None:
    async with endpoint(stuck) as here, client(here, request_seconds=0.2) as github:
        error = await refused(github.repository(WEB))
    assert (error.kind, len(here.requests)) == ("timeout", 1)
    assert "no complete answer within 0.2 s" in str(error)


@pytest.mark.parametrize("status", [200, 403, 500])
async def test_a_flood_is_read_up_to_a_bound(status: int) -> None:
    begin = f"HTTP/1.1 {status} OK\r\nContent-Type: application/json\r\n\r\n[".encode()
    async with endpoint(flood(begin, b" " * 65536)) as here, client(here, max_body=100_000) as github:
        error = await refused(github.repository(WEB))
    assert (error.kind, "longer than 100000 bytes" in str(error)) == ("unreadable", True)


async def test_an_answer_of_just_the_bound_is_read() -> None:
    body = says(repository()).partition(b"\r\n\r\n")[2]
    async with endpoint(says(repository())) as here:
        async with client(here, max_body=len(body)) as github:
            assert (await github.repository(WEB)).name == WEB
        async with client(here, max_body=len(body) - 1) as github:
            assert (await refused(github.repository(WEB))).kind == "unreadable"


async def test_a_compressed_answer_is_not_opened() -> None:
    async with endpoint(answer(b"\x1f\x8b", Content_Encoding="gzip")) as here, client(here) as github:
        error = await refused(github.repository(WEB))
    assert (error.kind, len(here.requests), "compressed" in str(error)) == ("unreadable", 1, True)


MAY_BE_THERE = "the issue may be there all the same: look before you try again"


@pytest.mark.covers("D2")
@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (b"", "network"),
        (b"HTTP/1.1 201 Created\r\nContent-Length: 99\r\n\r\n{", "network"),
        (answer(b"", 502), "server"),
        (answer(b"", 503), "server"),
        (answer(b"", 500), "server"),
        (answer(b"{}", 201), "unreadable"),
        (answer(b"<html>", 201), "unreadable"),
        (says(issue(), 200), "unreadable"),
        (stall_after(b""), "timeout"),
    ],
)
async def test_an_issue_whose_answer_was_lost_is_not_opened_twice_and_may_be_there(said: Any, kind: str) -> None:
    async with endpoint(said) as here, client(here, request_seconds=0.3) as github:
        error = await refused(create(github))
    assert (error.kind, error.may_be_done, len(here.requests)) == (kind, True, 1)
    assert str(error).endswith(MAY_BE_THERE)


@pytest.mark.covers("D2")
@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (fails(403), "forbidden"),
        (fails(404), "not_found"),
        (fails(410), "gone"),
        (fails(422), "invalid"),
        (fails(403, SECONDARY), "secondary_limit"),
        (fails(307, Location="/v1/repositories/1/issues"), "redirected"),
        (fails(301, Location="/v1/repositories/1/issues"), "redirected"),
    ],
)
async def test_an_issue_that_was_refused_is_not_there(said: bytes, kind: str) -> None:
    async with endpoint(said) as here, client(here) as github:
        error = await refused(create(github))
    assert (error.kind, error.may_be_done, len(here.requests)) == (kind, False, 1)
    assert MAY_BE_THERE not in str(error)


@pytest.mark.parametrize(
    ("base_url", "sentence"),
    [
        ("http://ghe.example/api/v3", "write the base URL with https://"),
        ("ftp://ghe.example", "is no address"),
        ("ghe.example", "is no address"),
        ("", "is no address"),
        ("https://user:pass@ghe.example", "holds a user name or password"),
        ("https://ghe.example?x=1", "holds a query"),
    ],
)
def test_a_base_url_that_cannot_be_used_is_refused_at_once(base_url: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        RestGitHub(base_url, Token(TOKEN))


@pytest.mark.parametrize("base_url", ["https://api.github.com", "https://ghe.example/api/v3", "http://[::1]:8080"])
def test_https_and_loopback_are_good_base_urls(base_url: str) -> None:
    assert TOKEN not in repr(RestGitHub(base_url, Token(TOKEN)))
