"""Anthropic's Messages API with native tool calls, over plain httpx. The reply comes as a stream."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from mcp_ops.llm.anthropic_stream import MessageReader
from mcp_ops.llm.api_key import ApiKey
from mcp_ops.llm.base import ConversationTurn, ModelTurn, NativeCall, NativeReply, ResultsTurn, ToolSpec, UserTurn
from mcp_ops.llm.sending import Clocks, RetryPolicy, Sender
from mcp_ops.llm.tool_names import ToolNames
from mcp_ops.wire import base_address

BASE_URL = "https://api.anthropic.com"
VERSION = "2023-06-01"
"""Version of the API, sent as `anthropic-version`."""
MAX_TOKENS = 16_384
"""Most tokens of one reply, its reasoning included. The API wants a number."""


class AnthropicLLM:
    """A model behind `POST {base_url}/v1/messages`. No sampling parameter is sent."""

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
            api_key: Sent as `x-api-key`, if given.
            base_url: Another address than the provider's own, with or without `/v1` at its end.
            retry: How long to try.
            on_progress: Takes pieces of the reply's text as they come, as the model wrote them.
            clocks: What tells the time.

        Raises:
            ValueError: The URL or the key cannot be used. The message is one sentence without the key.
        """
        self._model = model
        self._progress = on_progress
        url = base_address(base_url, example=BASE_URL, secret="the key")  # noqa: S106 (a word for a sentence)
        self._sender = Sender(
            url.copy_with(path=url.path.rstrip("/").removesuffix("/v1") + "/v1/messages"),
            model,
            ApiKey(api_key, header="x-api-key", scheme=""),
            retry or RetryPolicy(),
            clocks or Clocks(),
            {"anthropic-version": VERSION},
        )

    def __repr__(self) -> str:
        return f"AnthropicLLM({self._model!r} at {self._sender.url.host})"

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
        body = {
            "model": self._model,
            "max_tokens": MAX_TOKENS,
            "stream": True,
            "system": system,
            "messages": [_message(turn, names) for turn in turns],
            **_tools(tools, called, names),
        }
        quote, progress = self._sender.key.quote, self._progress
        return await self._sender.ask(
            json.dumps(body).encode("ascii"), lambda kind: MessageReader(kind, quote, names, progress)
        )


def _tools(tools: Sequence[ToolSpec], called: Sequence[str], names: ToolNames) -> dict[str, Any]:
    if tools:
        shown = [(tool.name, tool.description, tool.input_schema) for tool in tools]
        return {"tools": [_tool(names.sent(name), words, schema) for name, words, schema in shown]}
    if not called:
        return {}
    # Calls of tools that are not declared make some models answer with nothing at all.
    declared = [_tool(names.sent(name), "No longer there.", {"type": "object"}) for name in sorted(set(called))]
    return {"tools": declared, "tool_choice": {"type": "none"}}


def _tool(name: str, description: str, schema: object) -> dict[str, Any]:
    return {"name": name, "description": description, "input_schema": schema}


def _message(turn: ConversationTurn, names: ToolNames) -> dict[str, Any]:
    match turn:
        case UserTurn(text):
            return {"role": "user", "content": text}
        case ModelTurn():
            return {"role": "assistant", "content": _said(turn, names)}
        case ResultsTurn(results, note):
            blocks: list[dict[str, Any]] = [
                {
                    "type": "tool_result",
                    "tool_use_id": result.id,
                    "content": result.text,
                    **({"is_error": True} if result.is_error else {}),
                }
                for result in results
            ]
            return {"role": "user", "content": [*blocks, *([{"type": "text", "text": note}] if note else [])]}


def _said(turn: ModelTurn, names: ToolNames) -> list[dict[str, Any]]:
    """Return an earlier reply: signed reasoning where it stood, the text in one piece, and the calls."""
    text = [{"type": "text", "text": turn.text}] if turn.text.strip() else []
    calls = {call.id: _tool_use(call, names) for call in turn.calls}
    if not turn.kept:
        return [*text, *calls.values()]
    blocks: list[dict[str, Any]] = []
    for part in turn.kept:
        if part.get("type") == "text":
            blocks += text
            text = []
        elif part.get("type") == "tool_use":
            blocks += [calls.pop(part["id"])] if part["id"] in calls else []
        else:
            blocks.append(dict(part))
    return [*blocks, *text, *calls.values()]


def _tool_use(call: NativeCall, names: ToolNames) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": names.sent(call.name), "input": call.arguments or {}}
