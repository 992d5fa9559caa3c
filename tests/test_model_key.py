"""The key of a model endpoint: where it goes, and that it is never said."""

import base64
import re
import ssl
import traceback
from pathlib import Path
from urllib.parse import quote

import pytest
from endpoint import ASKED, GOOD, KEY, Endpoint, answer, endpoint, failure, model

from mcp_ops.llm import ModelError, OpenRouterLLM, RetryPolicy

pytestmark = pytest.mark.covers("A19")


async def test_a_certificate_that_nobody_vouches_for_gets_no_request_and_no_key() -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(Path(__file__).parent / "data" / "selfsigned.pem")
    async with endpoint(GOOD, tls=tls) as here:
        error = await failure(here)
    assert (error.kind, here.requests) == ("network", [])
    assert "certificate" in str(error).lower()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed_so_the_key_goes_nowhere_else(status: int) -> None:
    async with endpoint(GOOD) as elsewhere, endpoint(answer({}, status, Location=f"{elsewhere.url}/x")) as here:
        error = await failure(here)
    assert (error.kind, error.attempts, elsewhere.requests) == ("refused", 1, [])
    assert f"redirects ({status})" in str(error)


ECHOES = [
    KEY,
    f"Bearer {KEY}.",
    KEY[:12],
    f"{KEY[:14]}\n{KEY[14:]}",
    " ".join(KEY),
    KEY.upper(),
    quote(KEY.replace("-", "/"), safe="") + quote(KEY),
    base64.b64encode(KEY.encode()).decode(),
    base64.b64encode(f"Bearer {KEY}".encode()).decode(),
]


def everything_said(error: BaseException) -> str:
    """Return what the most talkative reporter shows of an exception: its text, and our frames' local variables."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if "mcp_ops" in frame.f_code.co_filename]
    assert frames
    assert error.__suppress_context__
    return repr(error) + "".join(repr(frame.f_locals) for frame in frames)


@pytest.mark.parametrize("echo", ECHOES)
@pytest.mark.parametrize("status", [200, 400, 401, 500])
async def test_the_key_is_never_repeated_whatever_the_other_side_echoes(echo: str, status: int) -> None:
    said = answer({"error": {"message": f"bad key: {echo}", "code": status}}, status, X_Echo=quote(echo))
    async with endpoint(said) as here:
        asked = model(here, retry=RetryPolicy(attempts=1))
        with pytest.raises(ModelError) as caught:
            await asked.complete(ASKED)
    shown = everything_said(caught.value) + repr(asked)
    letters = "".join(filter(str.isalnum, shown)).casefold()
    assert "badkey" not in letters
    assert KEY.replace("-", "")[8:16] not in letters
    assert base64.b64encode(KEY.encode()).decode()[:20] not in shown


async def test_a_harmless_sentence_of_the_other_side_is_repeated_cleaned_on_one_line() -> None:
    said = answer({"error": {"message": "no\n::error::x \x1b[31mred\x1b[0m \u202e" + "y" * 500}}, 400)
    async with endpoint(said) as here:
        error = await failure(here)
    assert "(400): no\\n::error::x red <U+202E>yyy" in str(error)
    assert len(str(error)) < 320


async def test_the_model_name_and_finish_reason_of_an_answer_are_cleaned() -> None:
    said = answer({"model": f"m {KEY}", "choices": [{"message": {"content": "x"}, "finish_reason": "st\nop"}]})
    async with endpoint(said) as here:
        reply = await model(here).complete(ASKED)
    assert (reply.model, reply.finish_reason) == ("", "st\\nop")


@pytest.mark.parametrize(
    ("base_url", "key", "sentence"),
    [
        ("http://models.example/v1", KEY, "write the base URL with https://"),
        ("ftp://models.example/v1", None, "is no address"),
        ("models.example/v1", None, "is no address"),
        ("", None, "is no address"),
        ("https://", None, "is no address"),
        ("https://[::1", None, "is no address"),
        (f"https://user:{KEY}@models.example/v1", None, "holds a user name or password"),
        ("https://models.example/v1", f"{KEY}\nX-Evil: 1", "a space or a character outside ASCII"),
        ("https://models.example/v1", f"{KEY}é", "a space or a character outside ASCII"),
    ],
)
def test_a_url_or_a_key_that_cannot_be_used_is_refused_at_once(base_url: str, key: str | None, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)) as caught:
        OpenRouterLLM(base_url, "m", key)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("base_url", "key"),
    [
        ("https://openrouter.ai/api/v1", KEY),
        ("http://127.0.0.1:8080/v1", KEY),
        ("http://[::1]:8080/v1/", KEY),
        ("http://localhost:8080/v1", f" {KEY}\n"),
        ("http://gpu.example:8000/v1", None),
    ],
)
def test_https_and_loopback_take_a_key_and_anything_goes_without_one(base_url: str, key: str | None) -> None:
    assert KEY not in repr(OpenRouterLLM(base_url, "m", key))


async def test_a_proxy_of_the_environment_is_used_but_never_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    async with endpoint(GOOD) as proxy, endpoint(GOOD) as here:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url.removesuffix("/v1"))
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        await model(here).complete(ASKED)
        assert (len(here.requests), len(proxy.requests)) == (1, 0)
        await model(Endpoint("http://models.invalid/v1"), api_key=None).complete(ASKED)
    assert proxy.requests[0].line == "POST http://models.invalid/v1/chat/completions HTTP/1.1"
