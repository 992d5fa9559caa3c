"""A GitHub App's installation gets itself tokens, one at a time, and none of them is told."""

import asyncio
from collections.abc import Awaitable
from datetime import datetime, timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from endpoint import Endpoint, answer, endpoint, stall_after
from githubclient import NOW, WEB, Clock, client, fails, issue, repository, says

from mcp_ops.github.api import GitHubError
from mcp_ops.github.client import AppInstallation

pytestmark = pytest.mark.covers("D11")

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = KEY.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
FIRST, SECOND = "ghs_FirstToken0a1b2c3d4e5f6g7h8i9j", "ghs_SecondToken9z8y7x6w5v4u3t2s1r"


async def refused(ask: Awaitable[Any]) -> GitHubError:
    with pytest.raises(GitHubError) as caught:
        await ask
    return caught.value


def app(clock: Clock, pem: str = PEM) -> AppInstallation:
    return AppInstallation("Iv23liAbCdEf", 4711, pem, now=clock)


def minted(token: str = FIRST, expires: datetime = NOW + timedelta(hours=1)) -> bytes:
    return says({"token": token, "expires_at": expires.strftime("%Y-%m-%dT%H:%M:%SZ"), "permissions": {}}, 201)


def tokens(here: Endpoint) -> list[str]:
    """Return the last ten characters of the credentials of each request."""
    return [request.headers["authorization"][-10:] for request in here.requests]


GOOD = says(repository())


async def test_a_token_is_fetched_with_a_statement_that_the_key_signed() -> None:
    clock = Clock()
    async with endpoint(minted(), GOOD) as here, client(here, app(clock), clock) as github:
        await github.repository(WEB)
    assert here.requests[0].line == "POST /v1/app/installations/4711/access_tokens HTTP/1.1"
    kind, _, statement = here.requests[0].headers["authorization"].partition(" ")
    claims = jwt.decode(
        statement, KEY.public_key(), algorithms=["RS256"], options={"verify_exp": False, "verify_iat": False}
    )
    begin = int(NOW.timestamp())
    assert (kind, claims) == ("Bearer", {"iat": begin - 60, "exp": begin + 540, "iss": "Iv23liAbCdEf"})
    assert here.requests[1].headers["authorization"] == f"Bearer {FIRST}"


async def test_a_token_is_used_until_five_minutes_before_its_end() -> None:
    clock = Clock()
    async with endpoint(minted(), GOOD, GOOD, minted(SECOND), GOOD) as here, client(here, app(clock), clock) as github:
        await github.repository(WEB)
        clock.pass_by(3600 - 301)
        await github.repository(WEB)
        assert len(here.requests) == 3
        clock.pass_by(1)
        await github.repository(WEB)
    assert [request.line.partition(" ")[0] for request in here.requests] == ["POST", "GET", "GET", "POST", "GET"]
    assert tokens(here)[-1] == SECOND[-10:]


async def test_requests_that_wait_together_share_one_token() -> None:
    clock = Clock()
    async with endpoint(minted(), GOOD) as here, client(here, app(clock), clock) as github:
        await asyncio.gather(*(github.repository(WEB) for _ in range(6)))
    assert [request.line.partition(" ")[0] for request in here.requests] == ["POST", *["GET"] * 6]


async def test_a_token_that_is_refused_is_replaced_once() -> None:
    clock, bad = Clock(), fails(401, "Bad credentials")
    async with endpoint(minted(), bad, minted(SECOND), GOOD) as here, client(here, app(clock), clock) as github:
        assert (await github.repository(WEB)).name == WEB
    assert tokens(here)[1::2] == [FIRST[-10:], SECOND[-10:]]
    async with endpoint(minted(), bad, minted(SECOND), bad) as here, client(here, app(clock), clock) as github:
        assert (await refused(github.repository(WEB))).kind == "unauthorized"
    assert len(here.requests) == 4


async def test_an_issue_is_opened_with_the_next_token_when_the_first_was_refused() -> None:
    clock, bad = Clock(), fails(401, "Bad credentials")
    answers = minted(), bad, minted(SECOND), says(issue(), 201)
    async with endpoint(*answers) as here, client(here, app(clock), clock) as github:
        await github.create_issue(WEB, title="T", body="B")
    assert [request.body for request in here.requests[1::2]] == [{"title": "T", "body": "B", "labels": []}] * 2


async def test_requests_that_are_refused_together_ask_for_one_new_token() -> None:
    clock, good_until = Clock(), NOW + timedelta(hours=1)
    credentials = app(clock)
    given = iter([FIRST, SECOND])

    async def mint(installation: int, statement: Any) -> Any:
        from mcp_ops.github.client.auth import Minted, token_secret

        return Minted(token_secret(next(given)), good_until)

    old = await credentials.token(mint)
    assert credentials.refused(old)
    new = await credentials.token(mint)
    assert credentials.refused(old)
    assert await credentials.token(mint) is new


@pytest.mark.parametrize(
    ("said", "kind", "sentence"),
    [
        (
            fails(401, "A JSON web token could not be decoded"),
            "unauthorized",
            "does not accept the credentials (401): A JSON",
        ),
        (fails(404, "Not Found"), "unauthorized", "the App has no installation with this id"),
        (fails(403, "This installation has been suspended"), "forbidden", "has been suspended"),
        (fails(429, "x", Retry_After="9"), "secondary_limit", "ask again after 12:00:09 UTC"),
        (answer(b"", 502), "server", "a token of the App's installation: GitHub has a problem"),
        (says({"token": FIRST}, 201), "unreadable", "not understood at expires_at"),
        (says({"token": "a b", "expires_at": "2026-11-30T13:00:00Z"}, 201), "unreadable", "not understood at token"),
        (answer(b"x", 201), "unreadable", "no JSON"),
        (b"", "network", "a token of the App's installation: the connection failed"),
        (stall_after(b""), "timeout", "no complete answer"),
    ],
)
async def test_a_token_that_cannot_be_had_is_a_failure_and_the_issue_is_not_there(
    said: Any, kind: str, sentence: str
) -> None:
    clock = Clock()
    async with endpoint(said) as here, client(here, app(clock), clock, request_seconds=0.3) as github:
        error = await refused(github.create_issue(WEB, title="T", body="B"))
    assert (error.kind, len(here.requests)) == (kind, 1)
    assert sentence in str(error)
    assert not error.may_be_done


async def test_a_limit_on_tokens_is_kept_to() -> None:
    clock = Clock()
    async with (
        endpoint(fails(429, "x", Retry_After="9"), minted(), GOOD) as here,
        client(here, app(clock), clock) as github,
    ):
        await refused(github.repository(WEB))
        assert str(await refused(github.repository(WEB))).startswith("not asked: ")
        assert len(here.requests) == 1
        clock.pass_by(9)
        assert (await github.repository(WEB)).name == WEB


async def test_what_was_kept_for_one_token_is_not_used_for_the_next() -> None:
    clock, tagged = Clock(), says(repository(), ETag='"a"')
    answers = minted(), tagged, tagged, minted(SECOND), tagged
    async with endpoint(*answers) as here, client(here, app(clock), clock) as github:
        await github.repository(WEB)
        await github.repository(WEB)
        clock.pass_by(3600)
        await github.repository(WEB)
    tags = [request.headers.get("if-none-match") for request in here.requests]
    assert tags == [None, None, '"a"', None, None]


async def test_a_failed_token_is_asked_for_again_by_the_next_request() -> None:
    clock = Clock()
    async with endpoint(answer(b"", 500), minted(), GOOD) as here, client(here, app(clock), clock) as github:
        assert (await refused(github.repository(WEB))).kind == "server"
        assert (await github.repository(WEB)).name == WEB


async def test_neither_key_nor_statement_nor_any_token_is_told() -> None:
    clock = Clock()
    credentials = app(clock)
    assert credentials.redacted(f"not known yet: {FIRST}") == f"not known yet: {FIRST}"
    async with endpoint(minted(), fails(401), minted(SECOND), fails(422, f"{FIRST} {SECOND}")) as here:
        async with client(here, credentials, clock) as github:
            both = await refused(github.repository(WEB))
        statements = [request.headers["authorization"].partition(" ")[2] for request in here.requests[::2]]
    assert str(both) == "repository acme/web: GitHub refuses the request (422)"
    line_of_the_key = PEM.split("\n")[3]
    for told in (FIRST, SECOND, *statements, PEM, line_of_the_key):
        assert credentials.quote(f"you sent {told}") == ""
    for told in (FIRST, SECOND, *statements, PEM.strip()):
        assert told not in credentials.redacted(f"you sent {told}!")
    assert {FIRST, SECOND, PEM.strip()} <= {secret.reveal() for secret in github.secrets()}
    shown = repr(credentials) + repr(vars(credentials)) + repr(github)
    assert not any(told in shown for told in (FIRST, SECOND, line_of_the_key))


def test_a_key_with_written_line_ends_is_the_same_key() -> None:
    assert app(Clock(), PEM.strip().replace("\n", "\\n")).secrets()[0].reveal() == PEM.strip()


EC_PEM = (
    ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
)


@pytest.mark.parametrize(
    ("app_id", "installation", "pem", "sentence"),
    [
        ("12/../3", 1, PEM, "the App's id is a number or a client id"),
        ("", 1, PEM, "the App's id is a number or a client id"),
        ("12", 0, PEM, "the installation's id is a number"),
        ("12", 1, "", "no RSA key in PEM form"),
        ("12", 1, "hunter2hunter2", "no RSA key in PEM form"),
        ("12", 1, EC_PEM, "no RSA key in PEM form"),
        ("12", 1, PEM.replace("RSA PRIVATE", "RSA PUBLIC"), "no RSA key in PEM form"),
    ],
)
def test_what_cannot_be_an_installation_is_refused_at_once(
    app_id: str, installation: int, pem: str, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        AppInstallation(app_id, installation, pem)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__context__ is None
