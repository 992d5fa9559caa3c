"""Anthropic and OpenAI alike, against an endpoint on loopback that behaves well, and badly in every way there is."""

import asyncio
import json
import socket
from typing import Any

import pytest
from endpoint import KEY, Endpoint, FakeTime, answer, drip, endpoint, flood, stall_after
from providers import ASKED, PROVIDERS, Provider, failure, reply, streamed

from mcp_ops.llm import NativeCall, RetryPolicy, native_model

pytestmark = pytest.mark.covers("D9")

both = pytest.mark.parametrize("provider", PROVIDERS, ids=["anthropic", "openai"])


@both
async def test_text_comes_in_pieces_and_is_put_together_with_what_it_cost(provider: Provider) -> None:
    async with endpoint(provider.says("all is wéll")) as here:
        said = await reply(provider.model(here))
    assert (said.text, said.calls, said.cut, said.kept) == ("all is wéll", (), False, ())
    assert (said.model, said.prompt_tokens, said.completion_tokens, said.usd) == ("m-1", 12, 7, None)
    assert (said.finish_reason, said.attempts) == (provider.ends[1], 1)
    assert here.requests[0].line == f"POST {provider.path} HTTP/1.1"


@both
async def test_nothing_but_model_messages_tools_and_the_wish_to_stream_is_sent(provider: Provider) -> None:
    async with endpoint(provider.says("x")) as here:
        await reply(provider.model(here))
    [request] = here.requests
    allowed = {"model", "messages", "tools", "stream", "stream_options", "system", "max_tokens"}
    assert set(request.body) <= allowed
    assert request.body["stream"] is True
    assert "the system" in json.dumps(request.body)
    assert request.headers["accept-encoding"] == "identity"


@both
async def test_one_call_is_put_together_from_the_pieces_of_its_arguments(provider: Provider) -> None:
    async with endpoint(provider.says("I look.", ("read_file", '{"path": "ü/a"}'), finish=provider.ends[0])) as here:
        said = await reply(provider.model(here))
    assert said.text == "I look."
    assert [(call.name, call.arguments, call.unreadable) for call in said.calls] == [("read_file", {"path": "ü/a"}, "")]


@both
async def test_parallel_calls_keep_their_order_and_have_ids_of_their_own(provider: Provider) -> None:
    calls = [("read_file", f'{{"path": "{name}"}}') for name in "abc"]
    async with endpoint(provider.says(*calls, finish=provider.ends[0])) as here:
        said = await reply(provider.model(here))
    assert [call.arguments for call in said.calls] == [{"path": "a"}, {"path": "b"}, {"path": "c"}]
    assert len({call.id for call in said.calls}) == 3


@both
async def test_a_call_without_arguments_has_none(provider: Provider) -> None:
    async with endpoint(provider.says(("ping", ""), finish=provider.ends[0])) as here:
        said = await reply(provider.model(here))
    assert said.calls[0].arguments == {}


@both
@pytest.mark.parametrize(
    ("written", "why"),
    [
        ('{"path": "a', "not valid JSON"),
        ("path=a", "not valid JSON"),
        ('["a"]', "JSON but no object"),
        ('"a"', "JSON but no object"),
        ("null", "JSON but no object"),
        ('{"path": "a", "path": "b"}', "'path' stands twice"),
        ('{"n": NaN}', "NaN is no JSON number"),
        ('{"n": ' + "9" * 5000 + "}", "too many digits"),
        ("[" * 200 + "]" * 200, "nested deeper than 64 levels"),
        ('{"a":' * 100_000, "nested deeper than 64 levels"),
    ],
)
async def test_arguments_that_cannot_be_read_are_none_and_it_is_said_why(
    provider: Provider, written: str, why: str
) -> None:
    async with endpoint(provider.says(("read_file", written), finish=provider.ends[0])) as here:
        said = await reply(provider.model(here))
    [call] = said.calls
    assert call.arguments is None
    assert why in call.unreadable
    assert call.written == written


@both
async def test_text_that_ran_into_the_limit_is_marked_as_cut(provider: Provider) -> None:
    async with endpoint(provider.says("half an ans", finish=provider.ends[2])) as here:
        said = await reply(provider.model(here))
    assert (said.text, said.cut, said.finish_reason) == ("half an ans", True, provider.ends[2])


@both
@pytest.mark.parametrize("written", ["", '{"pa'])
async def test_a_call_that_ran_into_the_limit_cannot_be_read_and_a_whole_one_before_it_can(
    provider: Provider, written: str
) -> None:
    events = provider.events(("read_file", '{"path": "a"}'), ("read_file", written), finish=provider.ends[2])
    stopped = [event for event in events if event != {"type": "content_block_stop", "index": 1}]
    async with endpoint(streamed(*stopped)) as here:
        said = await reply(provider.model(here))
    assert said.cut
    assert [call.arguments for call in said.calls] == [{"path": "a"}, None]


@both
async def test_a_limit_that_left_no_text_at_all_is_an_error(provider: Provider) -> None:
    async with endpoint(provider.says(finish=provider.ends[2])) as here:
        error = await failure(provider.model(here))
    assert (error.kind, error.attempts) == ("empty", 1)
    assert "length limit before any text" in str(error)


@both
async def test_a_refusal_and_a_filter_are_the_models_no_and_not_asked_again(provider: Provider) -> None:
    async with endpoint(provider.says("I beg", finish=provider.ends[3])) as here:
        error = await failure(provider.model(here))
    assert (error.kind, error.attempts, error.infrastructure) == ("refused", 1, False)


NOT_ASKED_AGAIN = [
    (400, "refused", "refuses the request (400): why"),
    (401, "auth", "does not accept the API key (401): why"),
    (402, "payment", "no credit is left (402): why"),
    (403, "refused", "refuses the request (403): why"),
    (404, "refused", "no such address or model (404): why"),
    (413, "refused", "refuses the request (413): why"),
    (307, "refused", "no redirect is followed"),
]


@both
@pytest.mark.parametrize(("status", "kind", "sentence"), NOT_ASKED_AGAIN)
async def test_what_asking_again_cannot_help_is_one_defined_error(
    provider: Provider, status: int, kind: str, sentence: str
) -> None:
    said = answer(provider.error("some_error", "why"), status, Location="http://127.0.0.1:1/")
    async with endpoint(said, provider.says("x")) as here:
        error = await failure(provider.model(here))
    assert (error.kind, error.attempts, len(here.requests)) == (kind, 1, 1)
    assert sentence in str(error)


@both
@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limit"), (500, "server"), (503, "server"), (529, "server")])
async def test_overload_and_rate_limits_are_asked_again_after_the_wait_that_is_asked_for(
    provider: Provider, status: int, kind: str
) -> None:
    time = FakeTime()
    busy = answer(provider.error("overloaded_error", "busy"), status, Retry_After="7")
    async with endpoint(busy, busy, provider.says("x")) as here:
        said = await reply(provider.model(here, time))
    assert (said.text, said.attempts, time.waits) == ("x", 3, [7.0, 7.0])
    async with endpoint(busy) as here:
        error = await failure(provider.model(here))
    assert (error.kind, error.attempts, error.infrastructure) == (kind, 4, True)
    assert "busy; it asks to wait 7 s (4 attempts)" in str(error)


@both
@pytest.mark.parametrize(
    ("type_", "kind", "again", "sentence"),
    [
        ("overloaded_error", "server", True, "overloaded (529): why"),
        ("rate_limit_error", "rate_limit", True, "limits the rate (429): why"),
        ("server_error", "server", True, "failed (500): why"),
        ("something_new", "server", True, "failed (502): why"),
        ("authentication_error", "auth", False, "does not accept the API key (401): why"),
        ("invalid_request_error", "refused", False, "refuses the request (400): why"),
        ("insufficient_quota", "payment", False, "no credit is left (402): why"),
    ],
)
@pytest.mark.parametrize("after", [0, 3], ids=["at once", "after some text"])
async def test_an_error_inside_a_stream_is_what_its_type_says(
    provider: Provider, type_: str, kind: str, again: bool, sentence: str, after: int
) -> None:
    events = [*provider.events("half a reply")[:after], provider.error(type_, "why")]
    async with endpoint(streamed(*events)) as here:
        error = await failure(provider.model(here))
    assert (error.kind, error.attempts) == (kind, 4 if again else 1)
    assert sentence in str(error)
    async with endpoint(streamed(*events), provider.says("whole")) as here:
        if again:
            assert (await reply(provider.model(here))).text == "whole"


@both
@pytest.mark.parametrize("left_out", [1, 3, 5])
async def test_a_stream_that_ends_early_is_no_reply(provider: Provider, left_out: int) -> None:
    events = provider.events("half a reply", ("read_file", '{"path": "a"}'))
    # What tells the end: for one provider the last event, for the other the reason why it ends.
    cut = events[:-left_out] if isinstance(events[0].get("type"), str) else events[: -left_out - 2]  # type: ignore[union-attr]
    async with endpoint(streamed(*cut)) as here:
        error = await failure(provider.model(here))
    assert (error.kind, error.attempts, error.infrastructure) == ("server", 4, True)
    assert "the stream ended before" in str(error)


@both
async def test_a_stream_may_hold_comments_unknown_events_and_any_line_ends(provider: Provider) -> None:
    lines: list[str] = [": keep-alive", "", "retry: 10", ""]
    for event in provider.events("wéll", ("read_file", '{"path": "ü"}'), finish=provider.ends[0]):
        lines += [
            "id: 1",
            f"data: {event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)}",
            "",
            ":",
        ]
        if event != "[DONE]":
            lines += ["event: news", 'data: {"type": "news", "index": [], "delta": 3}', ""]
    for end in ("\n", "\r\n", "\r"):
        body = ("\ufeff" + end.join([*lines, ""])).encode()
        async with endpoint(answer(body, Content_Type="Text/Event-Stream")) as here:
            said = await reply(provider.model(here))
        assert (said.text, said.calls[0].arguments) == ("wéll", {"path": "ü"})


@both
async def test_the_last_line_of_a_stream_may_lack_its_end(provider: Provider) -> None:
    whole = provider.says("x").partition(b"\r\n\r\n")[2].rstrip(b"\n")
    async with endpoint(answer(whole, Content_Type="text/event-stream")) as here:
        assert (await reply(provider.model(here))).completion_tokens == 7


@both
async def test_bytes_may_be_split_anywhere_within_a_character_too(provider: Provider) -> None:
    whole = provider.says("€ and ü")
    head, _, body = whole.partition(b"\r\n\r\n")

    async def one_at_a_time(writer: asyncio.StreamWriter, over: asyncio.Event) -> None:
        writer.write(head + b"\r\n\r\n")
        for byte in body:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)

    async with endpoint(one_at_a_time) as here:
        assert (await reply(provider.model(here))).text == "€ and ü"


@both
async def test_the_reply_is_there_as_soon_as_the_stream_says_so_though_the_connection_stays_open(
    provider: Provider,
) -> None:
    head, _, body = provider.says("done").partition(b"\r\n\r\n")
    endless = head.replace(f"Content-Length: {len(body)}".encode(), b"X-Length: unknown") + b"\r\n\r\n" + body
    async with endpoint(stall_after(endless)) as here:
        assert (await reply(provider.model(here))).text == "done"


@both
@pytest.mark.parametrize(
    ("said", "kind", "sentence"),
    [
        (streamed("{oops"), "server", "no JSON object"),
        (streamed("[1]"), "server", "no JSON object"),
        (answer(b"<html>Sign in</html>"), "server", "not a JSON object"),
        (answer(b"[" * 100_000), "server", "not a JSON object"),
        (answer(b"", Content_Type="text/event-stream"), "server", "the stream ended before"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", "network", "the connection failed"),
        (b"", "network", "the connection failed"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "network", "the connection failed"),
    ],
)
async def test_what_is_no_reply_at_all_is_asked_again_and_given_up(
    provider: Provider, said: bytes, kind: str, sentence: str
) -> None:
    time = FakeTime()
    async with endpoint(said) as here:
        error = await failure(provider.model(here, time))
    assert (error.kind, error.attempts, time.waits) == (kind, 4, [1.0, 2.0, 4.0])
    assert sentence in str(error)
    assert str(error).isprintable()


@both
async def test_a_reply_without_text_and_calls_is_asked_for_again(provider: Provider) -> None:
    async with endpoint(provider.says(), provider.says(" \n"), provider.says("x")) as here:
        assert (await reply(provider.model(here))).attempts == 3


STREAM_BEGINS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


@both
@pytest.mark.parametrize(
    "behaviour",
    [stall_after(b""), stall_after(STREAM_BEGINS), drip(STREAM_BEGINS, b": ping\n\n", 0.01)],
    ids=["no answer", "headers, then nothing", "pings without an end"],
)
async def test_a_stalled_stream_has_a_deadline_for_its_last_byte(provider: Provider, behaviour: Any) -> None:
    hasty = RetryPolicy(attempts=2, request_seconds=0.1)
    async with endpoint(behaviour) as here:
        error = await failure(provider.model(here, retry=hasty))
    assert (error.kind, error.attempts, error.infrastructure) == ("timeout", 2, True)
    assert "no complete reply came within 0.1 s" in str(error)


@both
async def test_silence_ends_a_request_before_its_deadline(provider: Provider) -> None:
    patient = RetryPolicy(attempts=1, request_seconds=600.0, total_seconds=600.0, silent_seconds=0.1)
    async with endpoint(stall_after(STREAM_BEGINS)) as here:
        error = await failure(provider.model(here, retry=patient))
    assert (error.kind, error.attempts) == ("timeout", 1)
    assert "within 0.1 s" in str(error)


@both
@pytest.mark.parametrize("piece", [b"data: " + b"x" * 65_536, b": " + b"x" * 65_536 + b"\n"])
async def test_an_endless_stream_is_read_up_to_a_bound(provider: Provider, piece: bytes) -> None:
    async with endpoint(flood(STREAM_BEGINS, piece)) as here:
        error = await failure(provider.model(here))
    assert (error.kind, error.attempts) == ("server", 1)
    assert "longer than 4194304 bytes" in str(error)


@both
async def test_nobody_listening_is_a_network_error(provider: Provider) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        error = await failure(provider.model(Endpoint(f"http://127.0.0.1:{taken.getsockname()[1]}/v1")))
    assert (error.kind, error.attempts) == ("network", 4)


@both
@pytest.mark.covers("H2")
@pytest.mark.parametrize("words", [f"bad key {KEY}", f"bad key {' '.join(KEY)}", f"...{KEY[-10:]}"])
@pytest.mark.parametrize("inside", [False, True], ids=["status", "stream"])
async def test_a_key_that_is_echoed_is_not_repeated(provider: Provider, words: str, inside: bool) -> None:
    error_body = provider.error("authentication_error", words)
    said = streamed(error_body) if inside else answer(error_body, 401)
    async with endpoint(said) as here:
        error = await failure(provider.model(here))
    assert str(error).endswith("the endpoint does not accept the API key (401)")
    assert KEY[-8:] not in repr(provider.model(here))


@both
async def test_an_endpoint_that_does_not_stream_is_understood_too(provider: Provider) -> None:
    if provider.path == "/v1/messages":
        content = [{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "t", "name": "a", "input": {"n": 1}}]
        body: dict[str, Any] = {"model": "m-1", "content": content, "stop_reason": "tool_use"}
    else:
        functions = [{"name": "a", "arguments": '{"n": 1}'}, {"name": "a", "arguments": {"n": 2}}]
        calls = [{"function": function} for function in functions]
        message = {"content": "I look.", "tool_calls": calls}
        body = {"model": "m-1", "choices": [{"message": message, "finish_reason": "tool_calls"}]}
    async with endpoint(answer(body)) as here:
        said = await reply(provider.model(here))
    assert (said.text, said.model, said.prompt_tokens) == ("I look.", "m-1", None)
    assert said.calls[0].arguments == {"n": 1}
    assert [call.arguments for call in said.calls[1:]] in ([], [{"n": 2}])
    async with endpoint(answer(provider.error("rate_limit_error", "slow"))) as here:
        assert (await failure(provider.model(here))).kind == "rate_limit"


@both
async def test_pieces_of_the_text_are_handed_on_as_they_come(provider: Provider) -> None:
    pieces: list[str] = []
    async with endpoint(provider.says("first second", ("read_file", "{}"))) as here:
        await reply(provider.model(here, on_progress=pieces.append))
    assert pieces == ["first ", "second"]


@both
async def test_without_a_key_none_is_sent(provider: Provider) -> None:
    async with endpoint(provider.says("x")) as here:
        await reply(provider.model(here, api_key=None))
    assert not {"authorization", "x-api-key"} & set(here.requests[0].headers)


@both
async def test_tools_whose_names_are_not_taken_are_sent_under_others_and_come_back_under_their_own(
    provider: Provider,
) -> None:
    from mcp_ops.llm import ModelTurn, ResultsTurn, ToolSpec
    from mcp_ops.llm.base import CallResult
    from mcp_ops.llm.tool_names import ToolNames

    names = ["ops.read_file", "x" * 65, "ok", "read file; rm"]
    sent = ToolNames(names).sent("ops.read_file")
    earlier = [
        ModelTurn("", (NativeCall("id-1", "ops.read_file", {"a": 1}), NativeCall("id-2", "never listed!", {}))),
        ResultsTurn((CallResult("id-1", "ops.read_file", "r"), CallResult("id-2", "never listed!", "r"))),
    ]
    async with endpoint(provider.says((sent, "{}"), ("unknown.tool", "{}"))) as here:
        said = await provider.model(here).converse(
            "s", [*ASKED, *earlier], [ToolSpec(name, "", {"type": "object"}) for name in names]
        )
    assert [call.name for call in said.calls] == ["ops.read_file", "unknown.tool"]
    told = [tool.get("name") or tool["function"]["name"] for tool in here.requests[0].body["tools"]]
    assert len(set(told)) == 4
    assert all(name.replace("_", "").replace("-", "").isalnum() and len(name) <= 64 for name in told)
    assert told[2] == "ok"
    again = json.dumps(here.requests[0].body["messages"])
    assert f'"name": "{told[0]}"' in again
    assert "ops.read_file" not in again
    assert "never listed!" not in again


async def test_a_model_is_made_by_its_providers_name_with_a_default() -> None:
    assert native_model("anthropic", None, "k").name == "claude-sonnet-5-5"
    assert native_model("openai", "", "k").name == "gpt-5.4"
    assert native_model("openai", "m", "k").name == "m"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("google", None, "k"), "none of anthropic, openai"),
        (("openai", None, " "), "wants an API key"),
        (("anthropic", None, "k\u2028k"), "outside ASCII"),
        (("anthropic", None, "sk-secret-1", "http://models.example"), "in clear text"),
        (("openai", None, "sk-secret-1", "ftp://models.example"), "no address"),
        (("openai", None, "sk-secret-1", "https://u:sk-secret-1@models.example"), "user name or password"),
    ],
)
def test_a_model_that_cannot_be_asked_says_so_without_the_key(arguments: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        native_model(*arguments)
    assert "sk-secret-1" not in str(caught.value)


@pytest.mark.covers("H2")
@pytest.mark.parametrize(
    ("provider", "base_url", "address"),
    [
        ("anthropic", None, "https://api.anthropic.com/v1/messages"),
        ("anthropic", "https://models.example/", "https://models.example/v1/messages"),
        ("anthropic", "http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1/messages"),
        ("openai", None, "https://api.openai.com/v1/chat/completions"),
        ("openai", "https://models.example", "https://models.example/chat/completions"),
        ("openai", "http://localhost:9/v1/", "http://localhost:9/v1/chat/completions"),
    ],
)
def test_a_key_goes_to_the_providers_host_or_to_the_one_that_was_named(
    provider: str, base_url: str | None, address: str
) -> None:
    model: Any = native_model(provider, None, "k", base_url)
    assert str(model._sender.url) == address
