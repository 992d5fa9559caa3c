"""OpenAI's chat completions with native tool calls, over plain httpx. The reply comes as a stream."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mcp_ops.llm.api_key import ApiKey
from mcp_ops.llm.base import (
    ConversationTurn,
    ModelError,
    ModelTurn,
    NativeCall,
    NativeReply,
    ResultsTurn,
    ToolSpec,
    UserTurn,
)
from mcp_ops.llm.openai_stream import ChunkReader
from mcp_ops.llm.sending import Clocks, RetryPolicy, Sender
from mcp_ops.llm.tool_names import ToolNames
from mcp_ops.wire import base_address

BASE_URL = "https://api.openai.com/v1"


class OpenAILLM:
    """A model behind `POST {base_url}/chat/completions` that calls tools. No sampling parameter is sent."""

    def __init__(
        self,
        model: str,
        api_key: str | None,
        *,
        base_url: str = BASE_URL,
        retry: RetryPolicy | None = None,
        on_progress: Callable[[str], object] | None = None,
        clocks: Clocks | None = None,
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            model: Name of the model.
            api_key: Sent as a bearer token, if given.
            base_url: Another address than the provider's own, with its `/v1`.
            retry: How long to try.
            on_progress: Takes pieces of the reply's text as they come, as the model wrote them.
            clocks: What tells the time.

        Raises:
            ValueError: The URL or the key cannot be used. The message is one sentence without the key.
        """
        self._model = model
        self._progress = on_progress
        self._no_reasoning = False
        url = base_address(base_url, example=BASE_URL, secret="the key")  # noqa: S106 (a word for a sentence)
        self._sender = Sender(
            url.copy_with(path=url.path.rstrip("/") + "/chat/completions"),
            model,
            ApiKey(api_key),
            retry or RetryPolicy(),
            clocks or Clocks(),
        )

    def __repr__(self) -> str:
        return f"OpenAILLM({self._model!r} at {self._sender.url.host})"

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model

    async def converse(self, system: str, turns: Sequence[ConversationTurn], tools: Sequence[ToolSpec]) -> NativeReply:
        """Ask, and ask again where that may help.

        Raises:
            ModelError: No usable reply came back.
        """
        called = [call.name for turn in turns if isinstance(turn, ModelTurn) for call in turn.calls]
        names = ToolNames([*(tool.name for tool in tools), *called])
        messages = [message for turn in turns for message in _messages(turn, names)]
        body: dict[str, Any] = {
            "model": self._model,
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [{"role": "system", "content": system}, *messages],
        }
        if tools:
            body["tools"] = [_tool(tool, names) for tool in tools]
        try:
            return await self._ask(body, names)
        except ModelError as error:
            # Some reasoning models take tools here only if they do not reason, and say so.
            if error.field != "reasoning_effort" or self._no_reasoning:
                raise
            self._no_reasoning = True
        return await self._ask(body, names)

    async def _ask(self, body: dict[str, Any], names: ToolNames) -> NativeReply:
        quote, progress = self._sender.key.quote, self._progress
        sent = {**body, "reasoning_effort": "none"} if self._no_reasoning else body
        return await self._sender.ask(
            json.dumps(sent).encode("ascii"), lambda kind: ChunkReader(kind, quote, names, progress)
        )


def _tool(tool: ToolSpec, names: ToolNames) -> dict[str, Any]:
    function = {"name": names.sent(tool.name), "description": tool.description, "parameters": tool.input_schema}
    return {"type": "function", "function": function}


def _messages(turn: ConversationTurn, names: ToolNames) -> Iterator[dict[str, Any]]:
    match turn:
        case UserTurn(text):
            yield {"role": "user", "content": text}
        case ModelTurn(text, calls):
            message: dict[str, Any] = {"role": "assistant", "content": text or None}
            if calls:
                message["tool_calls"] = [_tool_call(call, names) for call in calls]
            yield message
        case ResultsTurn(results, note):
            for result in results:
                yield {"role": "tool", "tool_call_id": result.id, "content": result.text}
            if note:
                yield {"role": "user", "content": note}


def _tool_call(call: NativeCall, names: ToolNames) -> dict[str, Any]:
    function = {"name": names.sent(call.name), "arguments": json.dumps(call.arguments or {})}
    return {"id": call.id, "type": "function", "function": function}
