"""A stdio connection to an MCP server.

The SDK's own client adds variables to the server's environment, hides the exit code, and leaves the server's children
alive when it closes.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import IO

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    ErrorData,
    JSONRPCError,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)

from mcp_ops.evaluation.session.process import (
    CHUNK,
    EXIT_SECONDS,
    LAST_WORDS_SECONDS,
    ChildServer,
    Process,
    ended,
    read_pipe,
)
from mcp_ops.text import one_line

log = logging.getLogger(__name__)

MAX_MESSAGE_BYTES = 1 << 20
"""Of a longer line nothing is kept, and every request that waits for an answer gets `TOO_LARGE` as its error."""
MAX_SKIPPED_BYTES = 64 << 20
"""A server that sends more than this without a line end, after that, is cut off."""
TOO_LARGE = -32050
"""Code of the error that stands for a message which was too long to be read."""

_GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError)

_Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
_ToClient = MemoryObjectSendStream[SessionMessage | Exception]
_Outgoing = MemoryObjectSendStream[SessionMessage]
_FromClient = MemoryObjectReceiveStream[SessionMessage]


@dataclass
class StdioServer(ChildServer):
    """A server that is started as a child process and speaks JSON-RPC, one message a line."""

    stray: list[str] = field(default_factory=list)
    """The first lines on its standard output that were no messages."""
    _closed_output: bool = False
    _unanswered: set[RequestId] = field(default_factory=set)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[tuple[_Incoming, _Outgoing]]:
        """Start the server; when the block ends, end it. A block that raises has it killed at once.

        Raises:
            OSError: The program cannot be started.
        """
        async with self._running(talks=True) as process, self._attached(process) as streams:
            yield streams

    @asynccontextmanager
    async def _attached(self, process: Process) -> AsyncIterator[tuple[_Incoming, _Outgoing]]:
        to_client, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, from_client = anyio.create_memory_object_stream[SessionMessage](0)
        pipes = [await read_pipe(process.stdout), await read_pipe(process.stderr)]
        feed = await _WritePipe.on(process.stdin)
        tasks = [
            asyncio.create_task(self._read_errors(pipes[1][0])),
            asyncio.create_task(self._read_messages(pipes[0][0], to_client)),
            asyncio.create_task(self._write_messages(feed, from_client, to_client)),
        ]
        try:
            yield incoming, outgoing
            incoming.close()
            outgoing.close()
            await self._ask_to_end(process)
        except Exception:
            if self._closed_output:
                await ended(process, LAST_WORDS_SECONDS)
            raise
        finally:
            if process.poll() is None:
                process.kill()
            await asyncio.wait(tasks[:1], timeout=LAST_WORDS_SECONDS)
            for stream in (incoming, outgoing, to_client, from_client):
                stream.close()
            for task in tasks:
                task.cancel()
            for _, transport in pipes:
                transport.close()
            feed.abort()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask_to_end(self, process: Process) -> None:
        if not await ended(process, EXIT_SECONDS):
            process.terminate()
            await ended(process, EXIT_SECONDS)

    async def _read_messages(self, output: asyncio.StreamReader, to_client: _ToClient) -> None:
        lines = _Lines()
        async with to_client:
            while chunk := await output.read(CHUNK):
                with suppress(*_GONE):
                    for line in lines.ended_in(chunk):
                        for message in self._messages(line):
                            await to_client.send(message)
                if lines.skipped > MAX_SKIPPED_BYTES:
                    self._errors += b"\n[it sent a line without end]"
                    return
            self._closed_output = True

    def _messages(self, line: bytes | None) -> Sequence[SessionMessage]:
        """Return what a line says; a line that was too long answers every open request, as nobody knows whose it is."""
        if line is not None:
            message = self._message(line)
            return [] if message is None else [message]
        said = f"it sent a message of more than {MAX_MESSAGE_BYTES} bytes"
        waiting, self._unanswered = self._unanswered, set()
        error = ErrorData(code=TOO_LARGE, message=said)
        return [SessionMessage(JSONRPCError(jsonrpc="2.0", id=each, error=error)) for each in waiting]

    def _message(self, line: bytes) -> SessionMessage | None:
        if not line.strip():
            return None
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
                self._unanswered.discard(message.id)
            return SessionMessage(message)
        except ValueError:
            if not self.stray:
                log.warning("%s writes to standard output what is no message", self.command[0])
            if len(self.stray) < 5:
                self.stray.append(one_line(line.decode("utf-8", "replace"), 80))
            return None

    async def _read_errors(self, errors: asyncio.StreamReader) -> None:
        while chunk := await errors.read(CHUNK):
            self._keep_error(chunk)

    async def _write_messages(self, feed: "_WritePipe", from_client: _FromClient, to_client: _ToClient) -> None:
        try:
            async with from_client:
                async for message in from_client:
                    if isinstance(message.message, JSONRPCRequest):
                        self._unanswered.add(message.message.id)
                    data = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await feed.write(data.encode("utf-8") + b"\n")
        except (OSError, ValueError):
            # What cannot be sent will never be answered: the session must see the end.
            to_client.close()
        finally:
            feed.close()


class _Lines:
    """Puts lines together from chunks. Of a line that is too long nothing is kept."""

    def __init__(self) -> None:
        self._begun = bytearray()
        self._too_long = False
        self.skipped = 0
        """Bytes of the line that was too long, since it was."""

    def ended_in(self, chunk: bytes) -> Iterator[bytes | None]:
        """Yield each line that ends in a chunk, and None as soon as one is too long."""
        for number, part in enumerate(chunk.split(b"\n")):
            if number:
                if not self._too_long:
                    yield bytes(self._begun)
                self._begun.clear()
                self._too_long, self.skipped = False, 0
            if self._too_long:
                self.skipped += len(part)
                continue
            self._begun += part
            if len(self._begun) > MAX_MESSAGE_BYTES:
                self._begun.clear()
                self._too_long = True
                yield None


class _WritePipe(asyncio.BaseProtocol):
    """A pipe to write to, which waits when the other side does not read."""

    _transport: asyncio.WriteTransport

    def __init__(self) -> None:
        self._lost = False
        self._ready = asyncio.Event()
        self._ready.set()

    @classmethod
    async def on(cls, pipe: IO[bytes] | None) -> "_WritePipe":
        transport, protocol = await asyncio.get_running_loop().connect_write_pipe(cls, pipe)
        protocol._transport = transport
        return protocol

    async def write(self, data: bytes) -> None:
        if self._transport.is_closing():
            raise BrokenPipeError
        self._transport.write(data)
        await self._ready.wait()

    def close(self) -> None:
        self._transport.close()

    def abort(self) -> None:
        if not self._lost:
            self._transport.abort()

    def pause_writing(self) -> None:
        self._ready.clear()

    def resume_writing(self) -> None:
        self._ready.set()

    def connection_lost(self, _: Exception | None) -> None:
        self._lost = True
        self._ready.set()
