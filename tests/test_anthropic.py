"""What is Anthropic's own: headers, blocks, signed reasoning, results, and a last turn without tools."""

from typing import Any

import pytest
from endpoint import KEY, answer, endpoint
from providers import ASKED, READ, Anthropic, failure, reply, streamed

from mcp_ops.llm import ConversationTurn, ModelTurn, NativeCall, ResultsTurn
from mcp_ops.llm.base import CallResult

pytestmark = pytest.mark.covers("D9")

ANTHROPIC = Anthropic()
CALLED: list[ConversationTurn] = [
    *ASKED,
    ModelTurn("I look.", (NativeCall("toolu_1", "read_file", {"path": "a"}),)),
    ResultsTurn((CallResult("toolu_1", "read_file", "the text", is_error=True),), note="That was all."),
]


async def test_the_key_goes_into_its_header_beside_the_version() -> None:
    async with endpoint(ANTHROPIC.says("x")) as here:
        await reply(ANTHROPIC.model(here))
    headers = here.requests[0].headers
    assert (headers["x-api-key"], headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in headers


async def test_the_conversation_is_sent_as_blocks_and_results_stand_before_the_note() -> None:
    async with endpoint(ANTHROPIC.says("x")) as here:
        await reply(ANTHROPIC.model(here), CALLED)
    body = here.requests[0].body
    assert body["system"] == "the system"
    assert body["max_tokens"] > 0
    assert body["tools"] == [
        {"name": "read_file", "description": "Read a file.", "input_schema": READ.input_schema},
    ]
    assert "tool_choice" not in body
    use = {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "a"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "the text", "is_error": True}
    assert body["messages"] == [
        {"role": "user", "content": "Task: x"},
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, use]},
        {"role": "user", "content": [result, {"type": "text", "text": "That was all."}]},
    ]


async def test_a_reply_without_text_is_sent_back_without_an_empty_block() -> None:
    said = ModelTurn("", (NativeCall("toolu_1", "read_file", {}),))
    async with endpoint(ANTHROPIC.says("x")) as here:
        await reply(ANTHROPIC.model(here), [*ASKED, said, CALLED[2]])
    assert [block["type"] for block in here.requests[0].body["messages"][1]["content"]] == ["tool_use"]


async def test_without_tools_earlier_calls_stay_declared_and_none_may_be_called() -> None:
    async with endpoint(ANTHROPIC.says("x")) as here:
        await ANTHROPIC.model(here).converse("s", CALLED, [])
        await ANTHROPIC.model(here).converse("s", ASKED, [])
    after_calls, from_the_start = (request.body for request in here.requests)
    assert after_calls["tool_choice"] == {"type": "none"}
    assert [tool["name"] for tool in after_calls["tools"]] == ["read_file"]
    assert after_calls["tools"][0]["input_schema"] == {"type": "object"}
    assert not {"tools", "tool_choice"} & set(from_the_start)


async def test_signed_reasoning_is_no_text_and_goes_back_where_it_stood() -> None:
    thinking: list[dict[str, Any]] = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "draft: "}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "rm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 4, "content_block": {"type": "redacted_thinking", "data": "x"}},
        {"type": "content_block_stop", "index": 4},
    ]
    events = ANTHROPIC.events("unused", "I look.", ("read_file", "{}"), ("ping", "{}"), finish="tool_use")
    start, rest = events[:2], [event for event in events[2:] if event.get("index") != 0]
    async with endpoint(streamed(*start, *thinking, *rest)) as here:
        said = await reply(ANTHROPIC.model(here))
        assert (said.text, len(said.calls)) == ("I look.", 2)
        again = ModelTurn("I look.", said.calls, said.kept)
        results = ResultsTurn(tuple(CallResult(call.id, call.name, "r") for call in said.calls))
        await reply(ANTHROPIC.model(here), [*ASKED, again, results])
    blocks = here.requests[1].body["messages"][1]["content"]
    assert blocks[0] == {"type": "thinking", "thinking": "draft: rm", "signature": "c2ln"}
    assert [block["type"] for block in blocks[1:]] == ["text", "tool_use", "tool_use", "redacted_thinking"]
    assert blocks[-1]["data"] == "x"


async def test_a_refusal_says_why_if_the_provider_does() -> None:
    events = ANTHROPIC.events("I b", finish="refusal")
    events[-2]["delta"]["stop_details"] = {"explanation": "not this"}
    async with endpoint(streamed(*events)) as here:
        assert str(await failure(ANTHROPIC.model(here))).endswith("the model refused: not this")
    async with endpoint(ANTHROPIC.says(finish="refusal")) as here:
        assert str(await failure(ANTHROPIC.model(here))).endswith("the model refused")


async def test_a_full_context_is_a_cut() -> None:
    async with endpoint(ANTHROPIC.says("half", finish="model_context_window_exceeded")) as here:
        assert (await reply(ANTHROPIC.model(here))).cut


async def test_the_last_word_of_several_updates_counts_and_null_takes_nothing_back() -> None:
    events = ANTHROPIC.events("x")
    events.insert(-1, {"type": "message_delta", "delta": {"stop_reason": None}, "usage": {"output_tokens": None}})
    events.insert(-1, {"type": "message_delta", "delta": {}, "usage": {"input_tokens": 20}})
    async with endpoint(streamed(*events)) as here:
        said = await reply(ANTHROPIC.model(here))
    assert (said.finish_reason, said.prompt_tokens, said.completion_tokens) == ("end_turn", 22, 7)


@pytest.mark.parametrize("usage", [None, [], {"input_tokens": "1", "output_tokens": -1}, {"output_tokens": True}])
async def test_usage_that_makes_no_sense_is_unknown_not_zero(usage: Any) -> None:
    body = {"content": [{"type": "text", "text": "x"}], "stop_reason": "end_turn", "usage": usage}
    async with endpoint(answer(body)) as here:
        said = await reply(ANTHROPIC.model(here))
    assert (said.prompt_tokens, said.completion_tokens) == (None, None)


async def test_events_that_make_no_sense_do_no_harm() -> None:
    odd: list[dict[str, Any]] = [
        {"type": "content_block_start", "index": "x", "content_block": 5},
        {"type": "content_block_delta", "index": 9, "delta": {"type": "text_delta", "text": "stray"}},
        {"type": "content_block_delta", "delta": None},
        {"type": "content_block_stop", "index": 77},
        {"type": "message_delta", "delta": "x", "usage": "y"},
    ]
    events = ANTHROPIC.events("", "said ")
    async with endpoint(streamed(*events[:-2], *odd, *events[-2:])) as here:
        assert (await reply(ANTHROPIC.model(here))).text == "said stray"


async def test_arguments_that_come_with_the_beginning_of_a_block_are_taken() -> None:
    block = {"type": "tool_use", "id": "t", "name": "read_file", "input": {"path": "a"}}
    events = ANTHROPIC.events(("read_file", ""), finish="tool_use")
    whole = [{**event, "content_block": block} if "content_block" in event else event for event in events]
    async with endpoint(streamed(*whole)) as here:
        assert (await reply(ANTHROPIC.model(here))).calls[0].arguments == {"path": "a"}


@pytest.mark.parametrize("finish", ["max_tokens", "model_context_window_exceeded"])
async def test_a_call_of_which_no_arguments_came_before_the_cut_is_not_one_without_arguments(finish: str) -> None:
    async with endpoint(streamed(*ANTHROPIC.events(("read_file", ""), finish=finish))) as here:
        call = (await reply(ANTHROPIC.model(here))).calls[0]
    assert call.arguments is None
    assert "cut off" in call.unreadable
    async with endpoint(streamed(*ANTHROPIC.events(("read_file", ""), finish="tool_use"))) as here:
        assert (await reply(ANTHROPIC.model(here))).calls[0].arguments == {}
