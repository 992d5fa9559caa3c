"""Asking a model endpoint over plain httpx: one POST a question, again where that may help, within a deadline."""

import asyncio
import math
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Generic, Protocol, TypeVar

import httpx

from mcp_ops.llm.api_key import ApiKey
from mcp_ops.llm.base import ModelError, Reply
from mcp_ops.llm.failures import Unusable, status_fault
from mcp_ops.wire import is_loopback, retry_after

MAX_BODY_BYTES = 4 * 1024 * 1024
"""A longer answer is not read to its end."""

Answer = TypeVar("Answer", bound=Reply)
AnswerRead = TypeVar("AnswerRead", bound=Reply, covariant=True)


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
    silent_seconds: float = math.inf
    """Longest time without any byte of the answer."""

    @classmethod
    def within(cls, seconds: float) -> "RetryPolicy":
        """Return a policy that gives up before a run of so many seconds is over, so that the provider is blamed."""
        return cls(request_seconds=seconds * 2 / 3, total_seconds=seconds * 0.9)


class Reader(Protocol[AnswerRead]):
    """Takes the bytes of a good answer as they come."""

    def feed(self, data: bytes) -> bool:
        """Take the next bytes; True when the reply is complete and the rest is not needed.

        Raises:
            Unusable: The answer holds no reply.
        """
        ...

    def end(self) -> AnswerRead:
        """Return the reply.

        Raises:
            Unusable: The answer holds no reply.
        """
        ...


OpenReader = Callable[[str], Reader[Answer]]
"""Makes the reader of an answer, given its content type."""


class WholeBody(Generic[Answer]):
    """Reads an answer that is understood as a whole."""

    def __init__(self, read: Callable[[bytes], Answer]) -> None:
        self._read = read
        self._data = bytearray()

    def feed(self, data: bytes) -> bool:
        """Keep the next bytes."""
        self._data += data
        return False

    def end(self) -> Answer:
        """Read them."""
        return self._read(bytes(self._data))


@dataclass(frozen=True)
class Clocks:
    """What tells the time, so that tests can."""

    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    """Waits between requests, in seconds."""
    clock: Callable[[], float] = time.monotonic
    """Seconds that never go back."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    """Current time, for a Retry-After that is a date."""


@dataclass(frozen=True)
class Sender:
    """Sends questions to one address.

    The key goes to that address's host and to no other: redirects are not followed. Proxies of the environment are
    used, but never towards this machine itself.
    """

    url: httpx.URL
    model: str
    """How sentences name the model."""
    key: ApiKey
    retry: RetryPolicy
    clocks: Clocks = field(default_factory=Clocks)
    headers: Mapping[str, str] = field(default_factory=dict)

    async def ask(self, body: bytes, open_reader: OpenReader[Answer]) -> Answer:
        """Ask, and ask again where that may help.

        Raises:
            ModelError: No usable reply came back.
        """
        clock = self.clocks.clock
        begin, attempt = clock(), 0
        async with self._client() as client:
            while True:
                attempt += 1
                left = self.retry.total_seconds - (clock() - begin)
                try:
                    reply = await self._ask(client, body, min(left, self.retry.request_seconds), open_reader)
                    return replace(reply, attempts=attempt)
                except Unusable as fault:
                    wait = self._wait(fault, attempt)
                    if wait is None or clock() - begin + wait >= self.retry.total_seconds:
                        raise self._error(fault, attempt) from None
                await self.clocks.sleep(wait)

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            auth=self.key,
            # Without compression the bound on bytes read is a bound on memory.
            headers={"Content-Type": "application/json", "Accept-Encoding": "identity", **self.headers},
            timeout=min(self.retry.request_seconds, self.retry.silent_seconds),
            trust_env=not is_loopback(self.url.host),
            follow_redirects=False,
            verify=self._tls,
        )

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        # Loading the known authorities takes a while; a context without any trusts nobody, and plain http needs none.
        secure = self.url.scheme == "https"
        return httpx.create_ssl_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    async def _ask(
        self, client: httpx.AsyncClient, body: bytes, seconds: float, open_reader: OpenReader[Answer]
    ) -> Answer:
        """Send one request and read its answer within `seconds`."""
        try:
            async with asyncio.timeout(seconds), client.stream("POST", self.url, content=body) as response:
                return await self._read(response, open_reader)
        except TimeoutError:
            raise Unusable("timeout", f"no complete reply came within {seconds:.3g} s", again=True) from None
        except httpx.TimeoutException:
            quiet = min(seconds, self.retry.silent_seconds)
            raise Unusable("timeout", f"no complete reply came within {quiet:.3g} s", again=True) from None
        except httpx.HTTPError as error:
            words = self.key.quote(str(error)) or type(error).__name__
            raise Unusable("network", f"the connection failed: {words}", again=True) from None

    async def _read(self, response: httpx.Response, open_reader: OpenReader[Answer]) -> Answer:
        if not 200 <= response.status_code < 300:
            wait = retry_after(response.headers.get("retry-after"), self.clocks.now())
            raise status_fault(response.status_code, await _beginning(response), self.key.quote, wait=wait)
        if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise Unusable("server", "the answer is compressed, which was not asked for", again=False)
        reader, size = open_reader(response.headers.get("content-type", "")), 0
        async for chunk in response.aiter_raw():
            size += len(chunk)
            if size > MAX_BODY_BYTES:
                raise Unusable("server", f"the answer is longer than {MAX_BODY_BYTES} bytes", again=False)
            if reader.feed(chunk):
                break
        return reader.end()

    def _wait(self, fault: Unusable, attempt: int) -> float | None:
        """Return how long to wait before asking again; None for not at all."""
        if not fault.again or attempt >= self.retry.attempts:
            return None
        wait = fault.wait if fault.wait is not None else self.retry.first_wait * 2 ** (attempt - 1)
        return wait if wait <= self.retry.longest_wait else None

    def _error(self, fault: Unusable, attempt: int) -> ModelError:
        tried = f" ({attempt} attempts)" if attempt > 1 else ""
        asked = f"; it asks to wait {fault.wait:g} s" if fault.wait is not None else ""
        sentence = f"model {self.key.quote(self.model)} at {self.url.host}: {fault}{asked}{tried}"
        return ModelError(fault.kind, sentence, attempts=attempt, field=fault.field)


async def _beginning(response: httpx.Response) -> bytes:
    """Return the body, as much of it as is read at most."""
    data = bytearray()
    async for chunk in response.aiter_raw():
        data += chunk
        if len(data) > MAX_BODY_BYTES:
            break
    return bytes(data)
