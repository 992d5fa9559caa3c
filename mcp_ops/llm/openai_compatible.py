"""Any endpoint that speaks OpenAI's chat completions, OpenRouter among them: one POST a question, over plain httpx."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import httpx

from mcp_ops.llm.api_key import ApiKey
from mcp_ops.llm.base import Message, Reply
from mcp_ops.llm.completion import read_completion
from mcp_ops.llm.sending import Clocks, RetryPolicy, Sender, WholeBody
from mcp_ops.wire import base_address

__all__ = ["OpenRouterLLM", "RetryPolicy"]


class OpenRouterLLM:
    """A model behind `POST {base_url}/chat/completions`, asked at temperature 0."""

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str | None = None,
        *,
        response_schema: bool = False,
        retry: RetryPolicy | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            base_url: `https://openrouter.ai/api/v1`, `http://127.0.0.1:8080/v1`, …
            model: Name of the model, as the endpoint knows it.
            api_key: Sent as a bearer token, if given.
            response_schema: Ask the endpoint to hold replies to the schema of the question.
            retry: How long to try.
            sleep: Waits between requests, in seconds.
            clock: Seconds that never go back.
            now: Current time, for a Retry-After that is a date.

        Raises:
            ValueError: The URL or the key cannot be used. The message is one sentence without the key.
        """
        key = ApiKey(api_key)
        self._model = model
        self._response_schema = response_schema
        self._sender = Sender(
            _endpoint(base_url, with_key=bool(key)), model, key, retry or RetryPolicy(), Clocks(sleep, clock, now)
        )

    def __repr__(self) -> str:
        return f"OpenRouterLLM({self._model!r} at {self._sender.url.host})"

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model

    async def complete(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> Reply:
        """Ask, and ask again where that may help.

        Raises:
            ModelError: No usable reply came back.
        """
        quote = self._sender.key.quote
        return await self._sender.ask(
            self._body(messages, schema), lambda _: WholeBody(lambda data: read_completion(data, quote))
        )

    def _body(self, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> bytes:
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": message.role, "content": message.content} for message in messages],
            "temperature": 0,
        }
        if schema is not None and self._response_schema:
            # Not strict: OpenAI's strict mode takes no free-form object, which a tool's arguments are.
            shape = {"name": "turn", "strict": False, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": shape}
        return json.dumps(body).encode("ascii")


def _endpoint(base_url: str, *, with_key: bool) -> httpx.URL:
    secret = "the key" if with_key else None
    url = base_address(base_url, example="https://openrouter.ai/api/v1", secret=secret)
    return url.copy_with(path=url.path.rstrip("/") + "/chat/completions")
