"""Where a GitHub token goes, where it does not, and that nobody gets to read it."""

import asyncio
import base64
import contextlib
import json
import logging
import ssl
import traceback
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from endpoint import Endpoint, answer, drip, endpoint, flood
from githubclient import SHA, TOKEN, WEB, client, fails, issue, late, pull, repository, says, target

from mcp_ops.github.api import GitHubError
from mcp_ops.github.client import RestGitHub, Token
from mcp_ops.github.client.redirects import is_storage

pytestmark = pytest.mark.covers("D5")

SECRET_PART = TOKEN.removeprefix("ghp_")


async def refused(ask: Awaitable[Any]) -> GitHubError:
    with pytest.raises(GitHubError) as caught:
        await ask
    return caught.value


ECHOES = {
    "plain": TOKEN,
    "header": f"Bearer {TOKEN}.",
    "beginning": TOKEN[:14],
    "lines": f"{TOKEN[:14]}\n{TOKEN[14:]}",
    "spaced": " ".join(TOKEN),
    "upper": TOKEN.upper(),
    "url": "".join(f"%{ord(character):02X}" for character in TOKEN),
    "quoted": quote(quote(TOKEN)),
    "base64": base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode(),
    "json": json.dumps(json.dumps({"t": TOKEN})),
    "escaped": "".join(f"\\u{ord(character):04x}" for character in TOKEN),
}
"""How the other side may repeat a token."""

WHOLE = {name: echo for name, echo in ECHOES.items() if name not in ("beginning", "spaced", "upper")}
"""Those that hold the whole token, which are taken out of what is passed on."""


def gives_away(text: str) -> bool:
    """Tell whether a text holds eight characters of the token in a row, or its base64."""
    letters = "".join(filter(str.isalnum, text)).casefold()
    pieces = [SECRET_PART[start : start + 8].casefold() for start in range(len(SECRET_PART) - 7)]
    encoded = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()[24:40]
    return any(piece in letters for piece in pieces) or encoded in text or ECHOES["url"] in text


def everything_said(error: BaseException) -> str:
    """Return what the most talkative reporter shows: texts of the whole chain, and our frames' local variables."""
    said = ""
    chain: BaseException | None = error
    while chain is not None:
        frames = [frame for frame, _ in traceback.walk_tb(chain.__traceback__) if "mcp_ops" in frame.f_code.co_filename]
        said += repr(chain) + str(chain) + "".join(repr(frame.f_locals) for frame in frames)
        chain = chain.__cause__ or chain.__context__
    return said


def test_this_test_would_see_a_token_that_is_told() -> None:
    assert all(gives_away(echo) for name, echo in ECHOES.items() if name not in ("quoted", "escaped"))
    assert not gives_away("GitHub answers: no " + "x" * 50)


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
@pytest.mark.parametrize("status", [200, 201, 302, 401, 403, 404, 422, 429, 500])
async def test_no_failure_repeats_the_token(
    echo: str, status: int, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    said = {"message": f"bad: {echo}", "errors": [echo, {"field": echo, "code": echo}], "full_name": [echo]}
    header = quote(echo)
    headers = {"X_Echo": header, "Location": f"https://evil.example/{header}", "X_GitHub_SSO": header, "ETag": header}
    with caplog.at_level(logging.DEBUG):
        async with endpoint(says(said, status, **headers)) as here, client(here) as github:
            errors = [await refused(github.repository(WEB)), await refused(github.create_issue(WEB, title="", body=""))]
    shown = "".join(map(everything_said, errors)) + repr(github) + "".join(capfd.readouterr())
    assert all(error.kind for error in errors)
    assert not gives_away(shown)
    assert not gives_away("".join(record.getMessage() for record in caplog.records))


@pytest.mark.parametrize(
    "said",
    [
        f"HTTP/1.1 200 {TOKEN}\r\nContent-Length: 1\r\n\r\n{{".encode(),
        f"HTTP/1.1 {TOKEN}\r\n\r\n".encode(),
        f"HTTP/1.1 200 OK\r\nX {TOKEN}: \x00\r\n\r\n".encode(),
        f"{TOKEN}\r\n\r\n".encode(),
    ],
)
async def test_a_broken_answer_that_holds_the_token_is_not_repeated(said: bytes) -> None:
    async with endpoint(said) as here, client(here) as github:
        error = await refused(github.repository(WEB))
    assert not gives_away(everything_said(error))


@pytest.mark.parametrize("echo", WHOLE.values(), ids=WHOLE)
async def test_a_token_in_what_is_passed_on_is_replaced(echo: str) -> None:
    told = [pull(title=f"t {echo}", body=echo, labels=[{"name": echo}], user={"login": echo})]
    files = [{"filename": echo, "status": "added", "additions": 1, "deletions": 0, "patch": f"+{echo}\n"}]
    checks = {"check_runs": [{"name": echo, "status": "completed", "conclusion": "success"}]}
    answers = says(told), says(files), says(checks), says(issue(body=f"a {echo} b"), 201), says(told[0])
    async with endpoint(*answers) as here, client(here) as github:
        pulls = await github.pull_requests(WEB, limit=5)
        changed = await github.files(WEB, 17, limit=5)
        runs = await github.check_runs(WEB, SHA)
        created = await github.create_issue(WEB, title="T", body="B")
        one = await github.pull_request(WEB, 17)
    assert not gives_away(repr(one))
    shown = repr((pulls, changed, runs, created))
    assert not gives_away(shown)
    assert shown.count("<redacted:github-token>") >= 7
    assert (created.title, pulls.items[0].number) == ("Checkout is slow", 17)


async def test_a_next_page_that_holds_the_token_is_no_cursor() -> None:
    link = f'<{{}}/repositories/1/issues?after={TOKEN}>; rel="next"'
    async with endpoint(late(lambda: says([], Link=link.format(here.url)))) as here, client(here) as github:
        assert (await github.issues(WEB, limit=2)).next is None


async def test_a_sentence_without_the_token_is_repeated() -> None:
    async with endpoint(fails(422, "see GitHub pages, ghp_ and github_pat_ tokens")) as here, client(here) as github:
        assert "see GitHub pages, ghp_ and github_pat_ tokens" in str(await refused(github.repository(WEB)))


def test_a_fine_grained_token_is_not_given_away_by_the_name_of_its_kind() -> None:
    token = Token("github_pat_11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ0123456789")
    assert token.quote("GitHub pat tokens; GitHub pages") == "GitHub pat tokens; GitHub pages"
    assert token.quote("it was 11ABCDEFG0a") == ""


@pytest.mark.parametrize("token", ["", "  \n", "ghp_a b", f"{TOKEN}\nX-Evil: 1", f"{TOKEN}é"])
def test_a_token_that_no_header_can_carry_is_refused_without_repeating_it(token: str) -> None:
    with pytest.raises(ValueError, match="the GitHub token") as caught:
        Token(token)
    assert not gives_away(str(caught.value))


def test_white_space_around_a_token_is_not_part_of_it() -> None:
    assert [secret.reveal() for secret in Token(f" {TOKEN}\n").secrets()] == [TOKEN]
    assert TOKEN not in repr(Token(TOKEN)) + repr(Token(TOKEN).secrets()) + repr(vars(Token(TOKEN)))


async def test_only_requests_to_github_are_kept_out_of_the_logs(caplog: pytest.LogCaptureFixture) -> None:
    said = says(repository(), X_Echo=TOKEN)
    with caplog.at_level(logging.DEBUG):
        async with endpoint(said) as here, client(here) as github, httpx.AsyncClient(trust_env=False) as somebody:
            await github.repository(WEB)
            assert not [record for record in caplog.records if record.name.startswith(("httpx", "httpcore.http11"))]
            await somebody.get(here.url)
    assert {"httpx", "httpcore.http11"} <= {record.name for record in caplog.records}


@pytest.mark.covers("D12")
@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_renamed_repository_is_found_with_everything_that_was_asked(status: int) -> None:
    moved = late(lambda: fails(status, Location=f"{here.url}/repositories/1296269/issues"))
    async with endpoint(moved, says([issue()])) as here, client(here) as github:
        page = await github.issues(WEB, limit=2)
    assert (len(page.items), target(here)) == (1, target(here, 0).replace("/repos/acme/web", "/repositories/1296269"))
    assert here.requests[1].headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.covers("D12")
@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_to_another_host_gets_no_request_at_all(status: int) -> None:
    async with endpoint(says(repository())) as elsewhere:
        away = fails(status, Location=f"{elsewhere.url}/repos/acme/web")
        async with endpoint(away) as here, client(here) as github:
            error = await refused(github.repository(WEB))
    assert (error.kind, elsewhere.requests) == ("redirected", [])


@pytest.mark.covers("D12")
@pytest.mark.parametrize(
    "location",
    [
        "/user",
        "/v1/user",
        "/v1/repos",
        "ftp://127.0.0.1/v1/repos/a/b",
        "//evil.example/v1/repos/a/b",
        "",
        "http://[",
        "/v1/repos/%2e%2e/user",
    ],
)
async def test_a_redirect_to_anything_but_a_repository_is_not_followed(location: str) -> None:
    async with endpoint(fails(301, Location=location), says(repository())) as here, client(here) as github:
        error = await refused(github.repository(WEB))
    assert (error.kind, len(here.requests)) == ("redirected", 1)


async def test_a_redirect_that_names_a_user_is_not_followed() -> None:
    there = late(lambda: fails(301, Location=here.url.replace("//", f"//u:{TOKEN}@") + "/repos/acme/x"))
    async with endpoint(there, says(repository())) as here, client(here) as github:
        error = await refused(github.repository(WEB))
    assert (error.kind, len(here.requests)) == ("redirected", 1)
    assert not gives_away(everything_said(error))


async def test_redirects_in_a_circle_end() -> None:
    async with endpoint(fails(301, Location="/v1/repos/acme/web")) as here, client(here, max_redirects=3) as github:
        error = await refused(github.repository(WEB))
    assert (error.kind, len(here.requests)) == ("redirected", 4)


@contextlib.asynccontextmanager
async def stored(said: Any, **limits: Any) -> AsyncIterator[tuple[RestGitHub, Endpoint, Endpoint]]:
    """Yield a client, GitHub, and the other place on this machine to which GitHub redirects for a log."""
    async with endpoint(said) as storage:
        redirect = answer(b"", 302, Location=f"{storage.url}/log?sig=abc")
        async with endpoint(redirect) as here, client(here, **limits) as github:
            yield github, here, storage


@pytest.mark.covers("D11", "D12")
async def test_a_log_is_fetched_from_its_storage_without_credentials() -> None:
    async with stored(answer("\ufefffirst\nlast é\n".encode(), Set_Cookie="a=b")) as (github, here, storage):
        log = await github.job_log(WEB, 5, max_bytes=1000)
        await github.job_log(WEB, 5, max_bytes=1000)
    assert (log.text, log.full_length) == ("first\nlast é\n", 17)
    assert here.requests[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert storage.requests[0].line == "GET /v1/log?sig=abc HTTP/1.1"
    assert all(not {"authorization", "cookie", "x-github-api-version"} & set(each.headers) for each in storage.requests)
    assert not gives_away(repr(storage.requests))


@pytest.mark.covers("D11")
async def test_the_end_of_a_log_is_kept_within_its_bytes() -> None:
    text = "".join(f"line {number} é\n" for number in range(20_000))
    async with stored(answer(text.encode())) as (github, _, _):
        log = await github.job_log(WEB, 5, max_bytes=1000)
        half_a_character = await github.job_log(WEB, 5, max_bytes=2)
        none = await github.job_log(WEB, 5, max_bytes=0)
    assert log.full_length == len(text.encode())
    assert (len(log.text.encode()), text.endswith(log.text)) == (1000, True)
    assert (half_a_character.text, none.text) == ("\n", "")


@pytest.mark.covers("D11")
async def test_a_log_without_an_end_is_read_up_to_a_bound_and_says_so() -> None:
    begin = b"HTTP/1.1 200 OK\r\n\r\nBEGIN"
    async with stored(flood(begin, b"x" * 65536), max_log=300_000) as (github, _, _):
        log = await github.job_log(WEB, 5, max_bytes=200)
    assert log.full_length == 300_000
    assert log.text.endswith("x\n[the log goes on: only its first 300000 bytes were read]")
    assert len(log.text) == 200


@pytest.mark.covers("D11")
async def test_a_log_that_drips_is_given_up() -> None:
    async with stored(drip(b"HTTP/1.1 200 OK\r\n\r\n", b".", 0.01), log_seconds=0.2) as (github, _, _):
        assert (await refused(github.job_log(WEB, 5, max_bytes=200))).kind == "timeout"


@pytest.mark.covers("D11")
@pytest.mark.parametrize("cut", range(0, len(TOKEN) + 2, 3))
async def test_no_part_of_the_token_is_left_where_a_log_is_cut(cut: int) -> None:
    text = f"token {TOKEN}{'.' * 100}"
    async with stored(answer(text.encode())) as (github, _, _):
        log = await github.job_log(WEB, 5, max_bytes=100 + cut)
    assert not gives_away(log.text)
    assert log.text.endswith("." * 100)


@pytest.mark.covers("D12")
@pytest.mark.parametrize(
    "location",
    [
        "http://storage.example/log",
        "ftp://127.0.0.1/log",
        "file:///etc/passwd",
        "https://u:p@storage.example/log",
        "",
        "https://",
        "http://[",
    ],
)
async def test_a_log_is_fetched_by_https_or_from_this_machine_and_from_nowhere_else(location: str) -> None:
    async with endpoint(answer(b"", 302, Location=location), answer(b"x")) as here, client(here) as github:
        error = await refused(github.job_log(WEB, 5, max_bytes=9))
        assert (error.kind, len(here.requests)) == ("redirected", 1)


@pytest.mark.covers("D12")
@pytest.mark.parametrize(
    ("base", "there", "allowed"),
    [
        ("https://api.github.com", "https://storage.example/log?sig=1", True),
        ("https://api.github.com", "https://127.0.0.1/log", False),
        ("https://api.github.com", "http://127.0.0.1/log", False),
        ("https://api.github.com", "http://storage.example/log", False),
        ("http://127.0.0.1:8080", "http://localhost:9/log", True),
        ("http://127.0.0.1:8080", "https://storage.example/log", True),
    ],
)
def test_a_remote_github_sends_nobody_to_this_machine(base: str, there: str, allowed: bool) -> None:
    assert is_storage(httpx.URL(there), httpx.URL(base)) is allowed


@pytest.mark.covers("D11")
@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (answer(b"", 302, Location="http://127.0.0.1:9/again"), "redirected"),
        (answer(b"BlobNotFound", 404), "not_found"),
        (answer(b"", 403), "forbidden"),
        (answer(b"", 500), "server"),
        (answer(b"x", Content_Encoding="gzip"), "unreadable"),
        (b"", "network"),
    ],
)
async def test_a_storage_that_does_not_give_the_log_is_a_failure(said: bytes, kind: str) -> None:
    async with stored(said) as (github, here, _):
        error = await refused(github.job_log(WEB, 5, max_bytes=9))
        assert (error.kind, len(here.requests)) == (kind, 1)


@pytest.mark.covers("D11")
async def test_a_log_of_a_renamed_repository_is_found() -> None:
    async with endpoint(answer(b"text")) as storage:
        renamed = fails(301, Location="/v1/repositories/1/actions/jobs/5/logs")
        redirect = answer(b"", 302, Location=f"{storage.url}/log")
        async with endpoint(renamed, redirect) as here, client(here) as github:
            assert (await github.job_log(WEB, 5, max_bytes=9)).text == "text"
    assert here.requests[1].headers["authorization"] == f"Bearer {TOKEN}"
    assert "authorization" not in storage.requests[0].headers


async def test_a_proxy_of_the_environment_is_never_used_towards_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    async with endpoint(says(repository())) as proxy, endpoint(says(repository())) as here:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url.removesuffix("/v1"))
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        async with client(here) as github:
            await github.repository(WEB)
    assert (len(here.requests), proxy.requests) == (1, [])


async def test_cookies_of_github_are_not_sent_back() -> None:
    async with endpoint(says(repository(), Set_Cookie="session=1; Path=/")) as here, client(here) as github:
        await github.repository(WEB)
        await github.repository(WEB)
    assert "cookie" not in here.requests[1].headers


async def test_a_certificate_that_nobody_vouches_for_gets_no_request_and_no_token() -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(Path(__file__).parent / "data" / "selfsigned.pem")
    async with endpoint(says(repository()), tls=tls) as here, client(here) as github:
        error = await refused(github.repository(WEB))
    assert (error.kind, here.requests) == ("network", [])
    assert "certificate" in str(error).lower()


async def test_many_requests_at_once_each_get_their_own_answer() -> None:
    answers = [says(repository(open_issues_count=count)) for count in range(8)]
    async with endpoint(*answers) as here, client(here) as github:
        found = await asyncio.gather(*(github.repository(WEB) for _ in range(8)))
    assert sorted(each.open_issues for each in found) == list(range(8))
