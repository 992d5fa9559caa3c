"""Any endpoint that speaks OpenAI's chat completions, OpenRouter among them: one POST a question, over plain httpx."""

import asyncio
import ipaddress
import json
import re
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any, NamedTuple

import httpx

from mcp_ops.llm.api_key import ApiKey
from mcp_ops.llm.base import Message, ModelError, Reply
from mcp_ops.llm.completion import Unusable, read_completion, status_fault

MAX_BODY_BYTES = 4 * 1024 * 1024
"""A longer answer is not read to its end."""

_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


@dataclass(frozen=True)
class RetryPolicy:
    """How long to try. All times are in seconds."""

    attempts: int = 4
    """Most requests for one question."""
    request_seconds: float = 80.0
    """One request, from its first byte to the last byte of the answer."""
    total_seconds: float = 110.0
    """All requests for one question and the waits between them."""
    first_wait: float = 1.0
    """Before the second request; doubled each time, unless the endpoint says how long to wait."""
    longest_wait: float = 30.0
    """Who asks for a longer wait is not asked again."""

    @classmethod
    def within(cls, seconds: float) -> "RetryPolicy":
        """Return a policy that gives up before a run of so many seconds is over, so that the provider is blamed."""
        return cls(request_seconds=seconds * 2 / 3, total_seconds=seconds * 0.9)


class _Answer(NamedTuple):
    status: int
    headers: httpx.Headers
    body: bytes
    complete: bool


class OpenRouterLLM:
    """A model behind `POST {base_url}/chat/completions`, asked at temperature 0.

    The key goes to the base URL's host and to no other: redirects are not followed. Proxies of the environment are
    used, but never towards this machine itself.
    """

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
        self._key = ApiKey(api_key)
        self._url = _endpoint(base_url, with_key=bool(self._key))
        self._model = model
        self._response_schema = response_schema
        self._retry = retry or RetryPolicy()
        self._sleep, self._clock, self._now = sleep, clock, now

    def __repr__(self) -> str:
        return f"OpenRouterLLM({self._model!r} at {self._url.host})"

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model

    async def complete(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> Reply:
        """Ask, and ask again where that may help.

        Raises:
            ModelError: No usable reply came back.
        """
        body = self._body(messages, schema)
        begin, attempt = self._clock(), 0
        async with self._client() as client:
            while True:
                attempt += 1
                left = self._retry.total_seconds - (self._clock() - begin)
                try:
                    reply = await self._ask(client, body, min(left, self._retry.request_seconds))
                    return replace(reply, attempts=attempt)
                except Unusable as fault:
                    wait = self._wait(fault, attempt)
                    if wait is None or self._clock() - begin + wait >= self._retry.total_seconds:
                        raise self._error(fault, attempt) from None
                await self._sleep(wait)

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

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            auth=self._key,
            # Without compression the bound on bytes read is a bound on memory.
            headers={"Content-Type": "application/json", "Accept-Encoding": "identity"},
            timeout=self._retry.request_seconds,
            trust_env=not _is_loopback(self._url.host),
            follow_redirects=False,
            verify=self._tls,
        )

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        # Loading the known authorities takes a while; a context without any trusts nobody, and plain http needs none.
        secure = self._url.scheme == "https"
        return httpx.create_ssl_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    async def _ask(self, client: httpx.AsyncClient, body: bytes, seconds: float) -> Reply:
        """Send one request and read its answer within `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                answer = await self._send(client, body)
        except (TimeoutError, httpx.TimeoutException):
            raise Unusable("timeout", f"no complete reply came within {seconds:.3g} s", again=True) from None
        except httpx.HTTPError as error:
            words = self._key.quote(str(error)) or type(error).__name__
            raise Unusable("network", f"the connection failed: {words}", again=True) from None
        if not 200 <= answer.status < 300:
            wait = _retry_after(answer.headers.get("retry-after"), self._now())
            raise status_fault(answer.status, answer.body, self._key.quote, wait=wait)
        if not answer.complete:
            raise Unusable("server", f"the answer is longer than {MAX_BODY_BYTES} bytes", again=False)
        if answer.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise Unusable("server", "the answer is compressed, which was not asked for", again=False)
        return read_completion(answer.body, self._key.quote)

    async def _send(self, client: httpx.AsyncClient, body: bytes) -> _Answer:
        async with client.stream("POST", self._url, content=body) as response:
            data = bytearray()
            async for chunk in response.aiter_raw():
                data += chunk
                if len(data) > MAX_BODY_BYTES:
                    return _Answer(response.status_code, response.headers, bytes(data), complete=False)
        return _Answer(response.status_code, response.headers, bytes(data), complete=True)

    def _wait(self, fault: Unusable, attempt: int) -> float | None:
        """Return how long to wait before asking again; None for not at all."""
        if not fault.again or attempt >= self._retry.attempts:
            return None
        wait = fault.wait if fault.wait is not None else self._retry.first_wait * 2 ** (attempt - 1)
        return wait if wait <= self._retry.longest_wait else None

    def _error(self, fault: Unusable, attempt: int) -> ModelError:
        tried = f" ({attempt} attempts)" if attempt > 1 else ""
        asked = f"; it asks to wait {fault.wait:g} s" if fault.wait is not None else ""
        sentence = f"model {self._key.quote(self._model)} at {self._url.host}: {fault}{asked}{tried}"
        return ModelError(fault.kind, sentence, attempts=attempt)


def _endpoint(base_url: str, *, with_key: bool) -> httpx.URL:
    try:
        url = httpx.URL(base_url.strip())
    except httpx.InvalidURL:
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("the base URL is no address: write it like https://openrouter.ai/api/v1")
    if url.userinfo:
        raise ValueError("the base URL holds a user name or password: give the key by itself, not in the URL")
    if with_key and url.scheme == "http" and not _is_loopback(url.host):
        raise ValueError(f"the key would go to {url.host} in clear text: write the base URL with https://")
    return url.copy_with(path=url.path.rstrip("/") + "/chat/completions", fragment=None)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _retry_after(value: str | None, now: datetime) -> float | None:
    """Read a Retry-After header: seconds, or a date. None when it says neither."""
    if value is None:
        return None
    if _SECONDS.fullmatch(value.strip()):
        return float(value)
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    aware = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (aware - now).total_seconds())
