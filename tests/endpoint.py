"""A model endpoint on loopback that answers, byte for byte, what a test tells it to."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from mcp_ops.llm import Message, ModelError, OpenRouterLLM

Behaviour = Callable[[asyncio.StreamWriter, asyncio.Event], Awaitable[None]]
"""Answers one request in a way of its own; the event is set when the test is over."""


@dataclass
class Request:
    """One request as it arrived."""

    line: str
    headers: dict[str, str]
    body: Any


@dataclass
class Endpoint:
    """Where it listens, and what it was asked."""

    url: str
    requests: list[Request] = field(default_factory=list)


def answer(body: Any, status: int = 200, **headers: str) -> bytes:
    """Return a whole HTTP answer. `body` is bytes as they are, or a JSON value."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(data)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def says(content: Any, finish_reason: str = "stop", **more: Any) -> bytes:
    """Return a good answer whose message has this content."""
    message = {"role": "assistant", "content": content}
    return answer({"model": "m-1", "choices": [{"message": message, "finish_reason": finish_reason}], **more})


@asynccontextmanager
async def endpoint(*answers: bytes | Behaviour, tls: ssl.SSLContext | None = None) -> AsyncIterator[Endpoint]:
    """Listen, and give one answer a connection, in order; the last one again and again."""
    over = asyncio.Event()
    open_connections: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_connections.add(task)
        try:
            here.requests.append(await _request(reader))
            say = answers[min(len(here.requests), len(answers)) - 1]
            if isinstance(say, bytes):
                writer.write(say)
                await writer.drain()
            else:
                await say(writer, over)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client went away first, which is what some tests are about
        finally:
            writer.close()
            open_connections.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    host, port = server.sockets[0].getsockname()[:2]
    here = Endpoint(f"{'https' if tls else 'http'}://{host}:{port}/v1")
    try:
        yield here
    finally:
        over.set()
        server.close()
        await asyncio.gather(*open_connections)
        await server.wait_closed()


async def _request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(head[0], headers, json.loads(body) if body else None)


def stall_after(begin: bytes) -> Behaviour:
    """Send the first bytes of an answer and no more."""

    async def behave(writer: asyncio.StreamWriter, over: asyncio.Event) -> None:
        writer.write(begin)
        await writer.drain()
        await over.wait()

    return behave


def drip(begin: bytes, piece: bytes, every: float) -> Behaviour:
    """Send the first bytes of an answer, then a piece again and again: no single read ever waits long."""

    async def behave(writer: asyncio.StreamWriter, over: asyncio.Event) -> None:
        writer.write(begin)
        while not over.is_set():
            writer.write(piece)
            await writer.drain()
            try:
                await asyncio.wait_for(over.wait(), every)
            except TimeoutError:
                continue

    return behave


def flood(begin: bytes, piece: bytes) -> Behaviour:
    """Send pieces as fast as they are taken, without an end."""

    async def behave(writer: asyncio.StreamWriter, over: asyncio.Event) -> None:
        writer.write(begin)
        while not over.is_set():
            writer.write(piece)
            await writer.drain()

    return behave


@dataclass
class FakeTime:
    """A clock that only waits move."""

    seconds: float = 1000.0
    waits: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.seconds += seconds

    def clock(self) -> float:
        return self.seconds


KEY = "sk-or-v1-93b7c1e5f02a4d68b1"
ASKED = [Message("system", "protocol"), Message("user", "Task: x")]
GOOD = says('{"finish":"ok"}')
NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


def model(here: Endpoint, time: FakeTime | None = None, **options: Any) -> OpenRouterLLM:
    time = time or FakeTime()
    given: dict[str, Any] = {"sleep": time.sleep, "clock": time.clock, "now": lambda: NOW, "api_key": KEY}
    return OpenRouterLLM(here.url, "acme/m-1", **{**given, **options})


async def failure(here: Endpoint, time: FakeTime | None = None, **options: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await model(here, time, **options).complete(ASKED)
    return caught.value
