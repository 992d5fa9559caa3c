"""What is OpenAI's own: roles, pieces of calls by index, refusals, and models that reason or call tools, not both."""

from typing import Any

import pytest
from endpoint import KEY, answer, endpoint
from providers import ASKED, READ, OpenAI, failure, reply, streamed

from mcp_ops.llm import ConversationTurn, ModelTurn, NativeCall, ResultsTurn
from mcp_ops.llm.base import CallResult

pytestmark = pytest.mark.covers("D9")

OPENAI = OpenAI()
CALLED: list[ConversationTurn] = [
    *ASKED,
    ModelTurn("", (NativeCall("call-1", "read_file", {"path": "ü"}),)),
    ResultsTurn((CallResult("call-1", "read_file", "the text"),), note="That was all."),
]


def pieces(*parts: dict[str, Any], finish: str = "tool_calls") -> bytes:
    """Return a stream in which these pieces of calls come one by one."""
    chunks = [OPENAI.chunk({"tool_calls": [part]}) for part in parts]
    return streamed(*chunks, OPENAI.chunk({}, finish), "[DONE]")


async def test_the_key_is_a_bearer_token() -> None:
    async with endpoint(OPENAI.says("x")) as here:
        await reply(OPENAI.model(here))
    assert here.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_the_conversation_is_sent_in_roles_and_the_note_stands_after_the_results() -> None:
    async with endpoint(OPENAI.says("x")) as here:
        await reply(OPENAI.model(here), CALLED)
    body = here.requests[0].body
    function = {"name": "read_file", "description": "Read a file.", "parameters": READ.input_schema}
    assert body["tools"] == [{"type": "function", "function": function}]
    assert body["stream_options"] == {"include_usage": True}
    called = {"name": "read_file", "arguments": '{"path": "\\u00fc"}'}
    assert body["messages"] == [
        {"role": "system", "content": "the system"},
        {"role": "user", "content": "Task: x"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call-1", "type": "function", "function": called}],
        },
        {"role": "tool", "tool_call_id": "call-1", "content": "the text"},
        {"role": "user", "content": "That was all."},
    ]


async def test_without_tools_none_are_sent() -> None:
    async with endpoint(OPENAI.says("x")) as here:
        await OPENAI.model(here).converse("s", CALLED, [])
    assert "tools" not in here.requests[0].body


@pytest.mark.parametrize(
    "parts",
    [
        # Two calls at once, piece by piece.
        [
            {"index": 0, "id": "a", "function": {"name": "one", "arguments": ""}},
            {"index": 1, "id": "b", "function": {"name": "two", "arguments": ""}},
            {"index": 1, "function": {"arguments": '{"n": 2}'}},
            {"index": 0, "function": {"arguments": '{"n": '}},
            {"index": 0, "function": {"arguments": "1}"}},
        ],
        # One index for all, an id for each.
        [
            {"index": 0, "id": "a", "function": {"name": "one", "arguments": '{"n": 1}'}},
            {"index": 0, "id": "b", "function": {"name": "two", "arguments": '{"n": '}},
            {"index": 0, "id": "b", "function": {"arguments": "2}"}},
        ],
        # Neither index nor id.
        [
            {"function": {"name": "one", "arguments": '{"n": '}},
            {"function": {"arguments": "1}"}},
            {"function": {"name": "two", "arguments": {"n": 2}}},
        ],
    ],
    ids=["by index", "by id", "by name"],
)
async def test_pieces_of_calls_find_each_other(parts: list[dict[str, Any]]) -> None:
    async with endpoint(pieces(*parts)) as here:
        said = await reply(OPENAI.model(here))
    assert [(call.name, call.arguments) for call in said.calls] == [("one", {"n": 1}), ("two", {"n": 2})]
    assert len({call.id for call in said.calls}) == 2


async def test_a_refusal_in_its_own_field_is_not_an_answer_even_after_some_text() -> None:
    chunks = [OPENAI.chunk({"content": "Well"}), OPENAI.chunk({"refusal": "I will "}), OPENAI.chunk({"refusal": "not"})]
    async with endpoint(streamed(*chunks, OPENAI.chunk({}, "stop"), "[DONE]")) as here:
        error = await failure(OPENAI.model(here))
    assert (error.kind, error.attempts) == ("refused", 1)
    assert str(error).endswith("the model refused: I will not")


async def test_a_filtered_reply_says_that_it_was_filtered() -> None:
    async with endpoint(OPENAI.says("half", finish="content_filter")) as here:
        assert "content filter stopped the reply" in str(await failure(OPENAI.model(here)))


async def test_reasoning_is_never_taken_for_the_answer() -> None:
    chunks = [OPENAI.chunk({"reasoning": "rm", "reasoning_content": "rm"}), OPENAI.chunk({"content": "real"})]
    async with endpoint(streamed(*chunks, OPENAI.chunk({}, "stop"), "[DONE]")) as here:
        assert (await reply(OPENAI.model(here))).text == "real"


async def test_a_stream_that_says_why_it_ends_may_end_without_a_mark() -> None:
    events = [event for event in OPENAI.events("x") if event != "[DONE]"]
    async with endpoint(streamed(*events)) as here:
        assert (await reply(OPENAI.model(here))).text == "x"


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"choices": [{"delta": {}, "error": {"code": 429, "message": "slow"}}]}, "rate_limit"),
        ({"error": {"code": "rate_limit_exceeded", "type": "tokens", "message": "slow"}}, "rate_limit"),
        ({"error": "upstream"}, "server"),
    ],
)
async def test_an_error_in_a_chunk_is_what_its_code_says(event: dict[str, Any], kind: str) -> None:
    async with endpoint(streamed(event)) as here:
        assert (await failure(OPENAI.model(here))).kind == kind


async def test_an_event_that_is_named_an_error_is_one() -> None:
    body = b'event: error\ndata: {"message": "gone", "type": "server_error"}\n\n'
    async with endpoint(answer(body, Content_Type="text/event-stream")) as here:
        assert "failed (500): gone" in str(await failure(OPENAI.model(here)))


async def test_a_model_that_takes_tools_only_without_reasoning_is_asked_without_it_from_then_on() -> None:
    no = answer({"error": {"message": "not with tools", "param": "reasoning_effort"}}, 400)
    async with endpoint(no, OPENAI.says("x"), OPENAI.says("y")) as here:
        model = OPENAI.model(here)
        assert [(await reply(model)).text, (await reply(model)).text] == ["x", "y"]
    assert [request.body.get("reasoning_effort") for request in here.requests] == [None, "none", "none"]


async def test_a_model_that_takes_tools_in_no_way_is_refused_once_more_and_given_up() -> None:
    no = answer({"error": {"message": "not with tools", "param": "reasoning_effort"}}, 400)
    async with endpoint(no) as here:
        model = OPENAI.model(here)
        error = await failure(model)
        assert (error.kind, len(here.requests)) == ("refused", 2)
        await failure(model)
    assert len(here.requests) == 3


async def test_chunks_that_make_no_sense_do_no_harm() -> None:
    odd: list[Any] = [
        {},
        {"choices": None},
        {"choices": [5]},
        OPENAI.chunk({"content": 7, "tool_calls": "x"}),
        {"choices": [{"delta": [], "finish_reason": None}], "usage": "u"},
    ]
    async with endpoint(streamed(*odd, *OPENAI.events("real"))) as here:
        assert (await reply(OPENAI.model(here))).text == "real"


async def test_calls_of_a_stream_that_never_says_why_it_ends_are_not_made() -> None:
    part = {"index": 0, "id": "c", "function": {"name": "read_file", "arguments": ""}}
    torn = streamed(OPENAI.chunk({"tool_calls": [part]}), "[DONE]")
    async with endpoint(*[torn] * 8) as here:
        assert "does not say that it is complete" in str(await failure(OPENAI.model(here)))


async def test_a_name_that_stands_in_each_piece_is_said_once() -> None:
    first = {"index": 0, "id": "c", "function": {"name": "read_file", "arguments": '{"path": '}}
    second = {"index": 0, "function": {"name": "read_file", "arguments": '"a"}'}}
    async with endpoint(pieces(first, second)) as here:
        call = (await reply(OPENAI.model(here))).calls[0]
    assert (call.name, call.arguments) == ("read_file", {"path": "a"})
