"""OpenRouterLLM against an endpoint on loopback that behaves well, and badly in every way there is."""

import asyncio
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from endpoint import (
    ASKED,
    GOOD,
    KEY,
    Endpoint,
    FakeTime,
    answer,
    drip,
    endpoint,
    failure,
    flood,
    model,
    says,
    stall_after,
)

from mcp_ops.agent import TURN_SCHEMA, Malformed, parse_turn
from mcp_ops.llm import Message, OpenRouterLLM, Reply, RetryPolicy

pytestmark = pytest.mark.covers("A19")


def choice(**parts: Any) -> bytes:
    return answer({"choices": [parts]})


async def test_one_post_with_the_conversation_at_temperature_zero() -> None:
    async with endpoint(GOOD) as here:
        await model(here).complete(ASKED, schema=TURN_SCHEMA)
    [request] = here.requests
    assert request.line == "POST /v1/chat/completions HTTP/1.1"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["accept-encoding"] == "identity"
    assert request.body == {
        "model": "acme/m-1",
        "temperature": 0,
        "messages": [{"role": "system", "content": "protocol"}, {"role": "user", "content": "Task: x"}],
    }


async def test_the_schema_is_sent_when_the_run_asks_for_it() -> None:
    async with endpoint(GOOD) as here:
        await model(here, response_schema=True).complete(ASKED, schema=TURN_SCHEMA)
    sent = here.requests[0].body["response_format"]
    assert sent["type"] == "json_schema"
    assert sent["json_schema"]["schema"] == TURN_SCHEMA


async def test_without_a_key_no_authorization_is_sent() -> None:
    async with endpoint(GOOD) as here:
        await model(here, api_key=None).complete(ASKED)
    assert "authorization" not in here.requests[0].headers


async def test_a_lone_surrogate_in_a_message_is_sent_as_an_escape() -> None:
    async with endpoint(GOOD) as here:
        await model(here).complete([Message("user", "half \ud83d")])
    assert here.requests[0].body["messages"][0]["content"] == "half \ud83d"


async def test_a_reply_carries_text_model_tokens_price_and_attempts() -> None:
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "cost": 0.00042}
    async with endpoint(says('{"finish":"ok"}', usage=usage)) as here:
        reply = await model(here).complete(ASKED)
    assert reply == Reply('{"finish":"ok"}', "m-1", "stop", 12, 3, 0.00042, attempts=1)


@pytest.mark.parametrize(
    "usage", [None, [], {}, {"prompt_tokens": "12", "completion_tokens": -1, "cost": True}, {"cost": "0.1"}]
)
async def test_usage_that_makes_no_sense_is_unknown_not_zero(usage: Any) -> None:
    async with endpoint(says("x", usage=usage)) as here:
        reply = await model(here).complete(ASKED)
    assert (reply.prompt_tokens, reply.completion_tokens, reply.usd) == (None, None, None)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": '{"finish":'}, {"type": "text", "text": '"ok"}'}], '{"finish":"ok"}'),
        ([{"type": "thinking", "text": "draft"}, {"type": "text", "text": "real"}, "junk", {"type": "text"}], "real"),
        ("  spaces stay  ", "  spaces stay  "),
    ],
)
async def test_the_parts_of_a_content_list_are_joined(content: Any, text: str) -> None:
    async with endpoint(says(content)) as here:
        assert (await model(here).complete(ASKED)).text == text


async def test_reasoning_is_never_taken_for_the_answer() -> None:
    silent = {"content": "", "reasoning": '{"finish":"draft"}', "reasoning_content": '{"finish":"draft"}'}
    async with endpoint(choice(message=silent, finish_reason="stop")) as here:
        error = await failure(here)
    assert error.kind == "empty"
    assert "no text (finish_reason stop)" in str(error)


@pytest.mark.parametrize(
    "message",
    [
        {"content": None, "tool_calls": [{"function": {"name": "rm", "arguments": "{}"}}]},
        {"function_call": {"name": "rm", "arguments": "{}"}},
        {"content": '{"finish":"ok"}', "tool_calls": [{"function": {"name": "rm", "arguments": "{}"}}]},
    ],
)
async def test_a_native_tool_call_is_a_malformed_turn_and_visible(message: dict[str, Any]) -> None:
    async with endpoint(choice(message=message, finish_reason="tool_calls")) as here:
        reply = await model(here).complete(ASKED)
    assert isinstance(parse_turn(reply.text), Malformed)
    assert '"rm"' in reply.text
    assert reply.finish_reason == "tool_calls"


async def test_a_reply_that_was_cut_is_handed_on_with_its_reason() -> None:
    async with endpoint(says('{"finish":"o', "length")) as here:
        reply = await model(here).complete(ASKED)
    assert (reply.text, reply.finish_reason) == ('{"finish":"o', "length")


NOT_ASKED_AGAIN = [
    (answer({"error": {"message": "bad field"}}, 400), "refused", "refuses the request (400): bad field"),
    (answer({"error": {"message": "no"}}, 401), "auth", "does not accept the API key (401): no"),
    (answer({"error": "credit"}, 402), "payment", "no credit is left (402): credit"),
    (answer({"detail": "moderated"}, 403), "refused", "refuses the request (403): moderated"),
    (answer(b"<html>", 404), "refused", "no such address or model (404)"),
    (answer({"error": {"code": "insufficient_quota", "message": "pay"}}, 429), "payment", "no credit is left"),
    (answer({"error": {"code": 402, "message": "pay"}}), "payment", "no credit is left (402): pay"),
    (answer({"error": {"code": "401", "message": "key"}}), "auth", "does not accept the API key (401): key"),
    (choice(error={"code": 400, "message": "too long"}), "refused", "(400): too long"),
    (choice(message={"content": '{"fin'}, finish_reason="content_filter"), "refused", "content filter"),
    (choice(message={"content": None, "refusal": "I will not"}), "refused", "the model refused: I will not"),
    (choice(message={"content": ""}, finish_reason="length"), "empty", "length limit before any text"),
    (answer(b"\x1f\x8b", Content_Encoding="gzip"), "server", "compressed, which was not asked for"),
]


@pytest.mark.parametrize(("said", "kind", "sentence"), NOT_ASKED_AGAIN)
async def test_what_asking_again_cannot_help_is_one_defined_error(said: bytes, kind: str, sentence: str) -> None:
    time = FakeTime()
    async with endpoint(said, GOOD) as here:
        error = await failure(here, time)
    assert (error.kind, error.attempts, len(here.requests), time.waits) == (kind, 1, 1, [])
    assert str(error).startswith("model acme/m-1 at 127.0.0.1: ")
    assert sentence in str(error)


ASKED_AGAIN = [
    (answer({"error": {"message": "slow down"}}, 429), "rate_limit", "limits the rate (429): slow down"),
    (answer({}, 408), "timeout", "gave up waiting (408)"),
    (answer(b"oops", 500), "server", "failed (500)"),
    (answer({"message": "upstream"}, 503), "server", "failed (503): upstream"),
    (answer({"error": {"message": "upstream"}}), "server", "failed (502): upstream"),
    (answer({"error": {"code": 429}}), "rate_limit", "limits the rate (429)"),
    (choice(error={"code": 502, "message": "cut"}, finish_reason="error"), "server", "failed (502): cut"),
    (answer({"choices": []}), "empty", "without any choice"),
    (answer({"choices": [None]}), "empty", "without any choice"),
    (answer({"id": "x"}), "empty", "without any choice"),
    (choice(finish_reason="stop"), "empty", "no text (finish_reason stop)"),
    (choice(message="text"), "empty", "no text (finish_reason missing)"),
    (choice(message={}, finish_reason="MALFORMED_FUNCTION_CALL"), "empty", "MALFORMED_FUNCTION_CALL"),
    (choice(message={"content": " \n"}, finish_reason="stop"), "empty", "no text (finish_reason stop)"),
    (answer(b"<html>Sign in</html>"), "server", "not a JSON object"),
    (answer(b""), "server", "not a JSON object"),
    (answer(b'{"choices": "\xff\xfe"}'), "server", "not a JSON object"),
    (answer(b"[" * 100_000), "server", "not a JSON object"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", "network", "the connection failed"),
    (b"", "network", "the connection failed"),
    (b"SSH-2.0-OpenSSH\r\n\r\n", "network", "the connection failed"),
    (b"HTTP/1.1 200 OK\r\nX-Big: " + b"x" * 200_000 + b"\r\n\r\n", "network", "the connection failed"),
]


@pytest.mark.parametrize(("said", "kind", "sentence"), ASKED_AGAIN)
async def test_what_may_pass_is_asked_again_and_counted(said: bytes, kind: str, sentence: str) -> None:
    time = FakeTime()
    async with endpoint(said, said, GOOD) as here:
        reply = await model(here, time).complete(ASKED)
    assert (reply.text, reply.attempts, time.waits) == ('{"finish":"ok"}', 3, [1.0, 2.0])


@pytest.mark.parametrize(("said", "kind", "sentence"), ASKED_AGAIN)
async def test_what_does_not_pass_is_given_up_after_four_requests(said: bytes, kind: str, sentence: str) -> None:
    time = FakeTime()
    async with endpoint(said) as here:
        error = await failure(here, time)
    assert (error.kind, error.attempts, len(here.requests)) == (kind, 4, 4)
    assert time.waits == [1.0, 2.0, 4.0]
    assert error.infrastructure is (kind != "empty")
    assert sentence in str(error)
    assert str(error).endswith("(4 attempts)")
    assert str(error).isprintable()


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ("7", 7.0),
        (" 0 ", 0.0),
        ("2.5", 2.5),
        ("Mon, 30 Nov 2026 12:00:20 GMT", 20.0),
        ("Mon, 30 Nov 2026 11:00:00 GMT", 0.0),
        ("soon", 1.0),
        ("-5", 1.0),
        ("inf", 1.0),
        ("9" * 400, 1.0),
        ("Mon, 99 Nov 2026 99:00:00 GMT", 1.0),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after_is_honoured_as_seconds_or_as_a_date(header: str, wait: float, status: int) -> None:
    time = FakeTime()
    async with endpoint(answer({}, status, Retry_After=header), GOOD) as here:
        reply = await model(here, time).complete(ASKED)
    assert (reply.attempts, time.waits) == (2, [wait])


@pytest.mark.parametrize("header", ["3600", "999999999", "Tue, 01 Dec 2026 12:00:00 GMT"])
async def test_who_asks_for_a_long_wait_is_not_waited_for(header: str) -> None:
    time = FakeTime()
    async with endpoint(answer({}, 429, Retry_After=header), GOOD) as here:
        error = await failure(here, time)
    assert (error.kind, error.attempts, time.waits) == ("rate_limit", 1, [])
    assert "it asks to wait" in str(error)


async def test_all_attempts_and_waits_together_stay_within_the_total() -> None:
    time = FakeTime()
    patient = RetryPolicy(attempts=100, total_seconds=50.0)
    async with endpoint(answer({}, 429, Retry_After="20")) as here:
        error = await failure(here, time, retry=patient)
    assert (error.attempts, time.waits) == (3, [20.0, 20.0])


def test_a_policy_for_a_run_gives_up_before_the_run_is_over() -> None:
    policy = RetryPolicy.within(300)
    assert policy.request_seconds < policy.total_seconds < 300
    assert RetryPolicy().total_seconds < 120


HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n"
HASTY = RetryPolicy(attempts=2, request_seconds=0.1)


@pytest.mark.parametrize(
    "behaviour",
    [stall_after(b""), stall_after(b"HTTP/1.1 200 OK\r\n"), stall_after(HEADERS), drip(HEADERS, b" ", 0.01)],
    ids=["no answer", "half the headers", "headers, then nothing", "a byte at a time"],
)
async def test_a_request_has_a_deadline_for_its_last_byte(behaviour: Any) -> None:
    async with endpoint(behaviour) as here:
        error = await failure(here, retry=HASTY)
    assert (error.kind, error.attempts, error.infrastructure) == ("timeout", 2, True)
    assert "no complete reply came within 0.1 s" in str(error)


@pytest.mark.parametrize("length", [b"Content-Length: 99999999999", b"Transfer-Encoding: chunked"])
async def test_an_endless_answer_is_read_up_to_a_bound(length: bytes) -> None:
    begin, piece = b"HTTP/1.1 200 OK\r\n" + length + b"\r\n\r\n", b" " * 65_536
    if b"chunked" in length:
        piece = b"10000\r\n" + piece + b"\r\n"
    async with endpoint(flood(begin, piece)) as here:
        error = await failure(here)
    assert (error.kind, error.attempts) == ("server", 1)
    assert "longer than 4194304 bytes" in str(error)


async def test_nobody_listening_is_a_network_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        error = await failure(Endpoint(f"http://127.0.0.1:{taken.getsockname()[1]}/v1"))
    assert (error.kind, error.attempts, error.infrastructure) == ("network", 4, True)


async def test_cancelling_stops_a_request_at_once() -> None:
    arrived = asyncio.Event()

    async def never(writer: asyncio.StreamWriter, over: asyncio.Event) -> None:
        arrived.set()
        await over.wait()

    async with endpoint(never) as here:
        asking = asyncio.create_task(model(here).complete(ASKED))
        await arrived.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking


class Patient(BaseHTTPRequestHandler):
    """Answers on a thread of its own, so that it outlives an event loop."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.wfile.write(GOOD)

    def log_message(self, *_: object) -> None:
        """Say nothing on stderr."""


def test_one_model_serves_runs_that_each_have_their_own_event_loop() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Patient) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        shared = model(Endpoint(f"http://127.0.0.1:{server.server_port}/v1"))
        replies = [asyncio.run(shared.complete(ASKED)).text for _ in range(3)]
        server.shutdown()
        thread.join()
    assert replies == ['{"finish":"ok"}'] * 3


def test_the_body_is_plain_json() -> None:
    body = OpenRouterLLM("http://localhost/v1", "m")._body([Message("user", "ü \u2028")], None)
    assert json.loads(body)["messages"] == [{"role": "user", "content": "ü \u2028"}]
    assert body.isascii()


@pytest.mark.parametrize("base_url", ["http://localhost", "http://localhost/", "http://localhost//"])
def test_a_base_url_without_a_path_is_asked_at_its_root(base_url: str) -> None:
    assert str(OpenRouterLLM(base_url, "m")._sender.url) == "http://localhost/chat/completions"
