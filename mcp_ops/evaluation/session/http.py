"""A connection over HTTP on loopback to one of our servers that runs as a child process.

The protocol is spoken by the SDK's client. It ends with the first exception that a connection raises, and reads an
answer of any size; so beneath it, what goes wrong with a connection becomes the error of the request that met it.
"""

import asyncio
import json
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import anyio
import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CONNECTION_CLOSED, PARSE_ERROR, ErrorData, JSONRPCError, RequestId, jsonrpc_message_adapter

from mcp_ops.evaluation.session.process import (
    CHUNK,
    EXIT_SECONDS,
    LAST_WORDS_SECONDS,
    ChildServer,
    Process,
    ended,
    read_pipe,
)
from mcp_ops.evaluation.session.stdio import MAX_MESSAGE_BYTES, TOO_LARGE
from mcp_ops.text import one_line

TOKEN_VARIABLE = "MCP_HTTP_TOKEN"  # noqa: S105 - a name

_LISTENING = re.compile(rb"listening on (http://127\.0\.0\.1:[0-9]{1,5}/mcp)\n")
_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_MAX_HEAD_BYTES = 1 << 16
_HEADERS = ("content-type", "location", "mcp-session-id")
"""What the SDK reads of an answer that is not streamed."""
_CLOSED = ErrorData(code=CONNECTION_CLOSED, message="Connection closed")
_TOO_LARGE = ErrorData(code=TOO_LARGE, message=f"it sent a message of more than {MAX_MESSAGE_BYTES} bytes")


@dataclass
class HttpServer(ChildServer):
    """A server that is started as a child process and says on its standard error where it listens.

    Its environment holds a bearer token of this run besides `env`: other users of the machine cannot call it.
    """

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[TransportStreams]:
        """Start the server; when the block ends, end it. A block that raises has it killed at once.

        Raises:
            OSError: The program cannot be started.
            anyio.EndOfStream: It ended, or closed its standard error, before it listened.
        """
        token = secrets.token_urlsafe(32)
        async with self._running(talks=False, more_env={TOKEN_VARIABLE: token}) as process:
            errors, pipe = await read_pipe(process.stderr)
            reading: asyncio.Task[None] | None = None
            try:
                url = await self._wait_for_url(errors)
                reading = asyncio.create_task(self._read_errors(errors))
                async with _client(token) as client, streamable_http_client(url, http_client=client) as streams:
                    yield streams
                process.terminate()
                await ended(process, EXIT_SECONDS)
            finally:
                await self._hear_out(process, reading)
                pipe.close()

    async def _wait_for_url(self, errors: asyncio.StreamReader) -> str:
        head = b""
        while (found := _LISTENING.search(head)) is None:
            chunk = await errors.read(CHUNK)
            self._keep_error(chunk)
            head += chunk
            if not chunk or len(head) > _MAX_HEAD_BYTES:
                raise anyio.EndOfStream
        return found[1].decode("ascii")

    async def _read_errors(self, errors: asyncio.StreamReader) -> None:
        while chunk := await errors.read(CHUNK):
            self._keep_error(chunk)

    async def _hear_out(self, process: Process, reading: "asyncio.Task[None] | None") -> None:
        """Wait for what a server that has ended said last."""
        if process.poll() is None:
            process.kill()
        if reading is not None:
            await asyncio.wait([reading], timeout=LAST_WORDS_SECONDS)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


def _client(token: str) -> httpx2.AsyncClient:
    headers = {"Authorization": f"Bearer {token}", "Accept-Encoding": "identity"}
    return httpx2.AsyncClient(transport=_Wire(), headers=headers, timeout=None, trust_env=False)


class _Wire(httpx2.AsyncBaseTransport):
    """Sends requests, and answers by itself where no usable answer comes."""

    def __init__(self) -> None:
        self._inner = httpx2.AsyncHTTPTransport(trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        number = _number_of(request)
        try:
            response = await self._inner.handle_async_request(request)
            if _kind(response) != "text/event-stream":
                return await _whole(response, number)
        except httpx2.TransportError:
            return _instead(number, _CLOSED)
        assert isinstance(response.stream, httpx2.AsyncByteStream)  # noqa: S101 - it comes from an async transport
        stream = _Events(response.stream, number)
        return httpx2.Response(response.status_code, headers=response.headers, stream=stream)

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _whole(response: httpx2.Response, number: RequestId | None) -> httpx2.Response:
    """Read an answer that is one message, up to the limit."""
    body = bytearray()
    try:
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > MAX_MESSAGE_BYTES:
                return _instead(number, _TOO_LARGE)
    finally:
        await response.aclose()
    if number is not None and response.status_code == 200 and not _is_message(response, body):
        shown = one_line(body[:200].decode("utf-8", "replace"), 80)
        return _instead(number, ErrorData(code=PARSE_ERROR, message=f"it sent what is no message: {shown!r}"))
    kept = {name: value for name, value in response.headers.items() if name in _HEADERS}
    return httpx2.Response(response.status_code, headers=kept, content=bytes(body))


def _is_message(response: httpx2.Response, body: bytes | bytearray) -> bool:
    with suppress(ValueError):
        jsonrpc_message_adapter.validate_json(bytes(body), by_name=False)
        return _kind(response) == "application/json"
    return False


class _Events(httpx2.AsyncByteStream):
    """A stream of server-sent events: whole events only, none too long, and at its end an error for its request."""

    def __init__(self, stream: httpx2.AsyncByteStream, number: RequestId | None) -> None:
        self._stream = stream
        self._number = number

    async def __aiter__(self) -> AsyncIterator[bytes]:
        begun = bytearray()
        error = _CLOSED
        with suppress(httpx2.TransportError):
            async for chunk in self._stream:
                begun += chunk
                end = max((each.end() for each in _EVENT_END.finditer(begun)), default=0)
                if end:
                    yield bytes(begun[:end])
                    del begun[:end]
                if len(begun) > MAX_MESSAGE_BYTES:
                    error = _TOO_LARGE
                    break
        if self._number is not None:
            yield b"event: message\ndata: " + _error(self._number, error) + b"\n\n"

    async def aclose(self) -> None:
        await self._stream.aclose()


def _kind(response: httpx2.Response) -> str:
    kind: str = response.headers.get("content-type", "")
    return kind.partition(";")[0].strip().lower()


def _number_of(request: httpx2.Request) -> RequestId | None:
    """Return the id of the JSON-RPC request in a POST; a notification and a GET have none."""
    number = json.loads(request.content or b"{}").get("id")
    return number if isinstance(number, int | str) else None


def _instead(number: RequestId | None, error: ErrorData) -> httpx2.Response:
    """Return the answer to a request that got none. Nobody waits for one without a number."""
    if number is None:
        return httpx2.Response(405)
    return httpx2.Response(200, headers={"content-type": "application/json"}, content=_error(number, error))


def _error(number: RequestId, error: ErrorData) -> bytes:
    return JSONRPCError(jsonrpc="2.0", id=number, error=error).model_dump_json(exclude_unset=True).encode()
