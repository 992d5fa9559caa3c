"""The two providers with native tool calls, on loopback: what they stream, and the models that ask them."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from endpoint import KEY, NOW, Endpoint, FakeTime, answer

from mcp_ops.llm import ConversationTurn, ModelError, NativeModel, NativeReply, ToolSpec, UserTurn
from mcp_ops.llm.anthropic import AnthropicLLM
from mcp_ops.llm.openai import OpenAILLM
from mcp_ops.llm.sending import Clocks

ASKED: Sequence[ConversationTurn] = [UserTurn("Task: x")]
READ = ToolSpec("read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})


def streamed(*events: dict[str, Any] | str, named: bool = False) -> bytes:
    """Return a whole HTTP answer with these events; a text is a data line as it is."""
    lines: list[str] = []
    for event in events:
        if named and isinstance(event, dict):
            lines.append(f"event: {event['type']}")
        lines += [f"data: {event if isinstance(event, str) else json.dumps(event)}", ""]
    return answer("\n".join([*lines, ""]).encode(), Content_Type="text/event-stream; charset=utf-8")


class Anthropic:
    """What Anthropic streams."""

    path = "/v1/messages"
    ends = "tool_use", "end_turn", "max_tokens", "refusal"

    def model(self, here: Endpoint, time: FakeTime | None = None, **options: Any) -> NativeModel:
        given: dict[str, Any] = {"clocks": _clocks(time), "base_url": here.url, **options}
        return AnthropicLLM("m", given.pop("api_key", KEY), **given)

    def events(self, *parts: str | tuple[str, str], finish: str = "end_turn") -> list[dict[str, Any]]:
        """Return the events of a reply: a text is a block of text, a pair a call with its arguments as written."""
        usage = {"input_tokens": 10, "cache_read_input_tokens": 2, "output_tokens": 1}
        start = {"type": "message_start", "message": {"model": "m-1", "content": [], "usage": usage}}
        events: list[dict[str, Any]] = [start, {"type": "ping"}]
        for index, part in enumerate(parts):
            events += _block(index, part)
        end = {"type": "message_delta", "delta": {"stop_reason": finish}, "usage": {"output_tokens": 7}}
        return [*events, end, {"type": "message_stop"}]

    def says(self, *parts: str | tuple[str, str], finish: str = "end_turn") -> bytes:
        return streamed(*self.events(*parts, finish=finish), named=True)

    def error(self, kind: str, message: str) -> dict[str, Any]:
        return {"type": "error", "error": {"type": kind, "message": message}}


def _block(index: int, part: str | tuple[str, str]) -> list[dict[str, Any]]:
    if isinstance(part, str):
        start: dict[str, Any] = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in _halves(part)]
    else:
        start = {"type": "tool_use", "id": f"toolu_{index}", "name": part[0], "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in _halves(part[1])]
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


class OpenAI:
    """What OpenAI streams."""

    path = "/v1/chat/completions"
    ends = "tool_calls", "stop", "length", "content_filter"

    def model(self, here: Endpoint, time: FakeTime | None = None, **options: Any) -> NativeModel:
        given: dict[str, Any] = {"clocks": _clocks(time), "base_url": here.url, **options}
        return OpenAILLM("m", given.pop("api_key", KEY), **given)

    def events(self, *parts: str | tuple[str, str], finish: str = "stop") -> list[dict[str, Any] | str]:
        """Return the events of a reply: a text is content, a pair a call with its arguments as written."""
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None}]
        calls = 0
        for part in parts:
            if isinstance(part, str):
                deltas += [{"content": piece} for piece in _halves(part)]
                continue
            function = {"name": part[0], "arguments": ""}
            deltas.append({"tool_calls": [{"index": calls, "id": f"call-{calls}", "function": function}]})
            deltas += [{"tool_calls": [{"index": calls, "function": {"arguments": x}}]} for x in _halves(part[1])]
            calls += 1
        chunks: list[dict[str, Any] | str] = [self.chunk(delta) for delta in deltas]
        usage = {"prompt_tokens": 12, "completion_tokens": 7}
        return [*chunks, self.chunk({}, finish), {"model": "m-1", "choices": [], "usage": usage}, "[DONE]"]

    def chunk(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"object": "chat.completion.chunk", "model": "m-1", "choices": [choice], "usage": None}

    def says(self, *parts: str | tuple[str, str], finish: str = "stop") -> bytes:
        return streamed(*self.events(*parts, finish=finish))

    def error(self, kind: str, message: str) -> dict[str, Any]:
        return {"error": {"type": kind, "message": message}}


Provider = Anthropic | OpenAI
PROVIDERS = [Anthropic(), OpenAI()]


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [text[:middle], text[middle:]]


def _clocks(time: FakeTime | None) -> Clocks:
    time = time or FakeTime()
    return Clocks(time.sleep, time.clock, lambda: NOW)


async def reply(model: NativeModel, turns: Sequence[ConversationTurn] = ASKED) -> NativeReply:
    return await model.converse("the system", turns, [READ])


async def failure(model: NativeModel) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await reply(model)
    return caught.value
