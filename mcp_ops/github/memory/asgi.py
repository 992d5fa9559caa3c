"""The in-memory GitHub as an ASGI application."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    from mcp_ops.github.memory.service import MemoryGitHub

_MAX_BODY = 2 * 1024 * 1024

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def application(memory: "MemoryGitHub") -> Callable[..., Awaitable[None]]:
    """Return an ASGI application that serves an in-memory GitHub."""

    # A plain function: servers take a bound method for one of an older interface.
    async def serve(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        await _serve(memory, scope, receive, send)

    return serve


async def _serve(memory: "MemoryGitHub", scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Answer one request; a server's `lifespan` is acknowledged."""
    if scope["type"] == "lifespan":
        await _lifespan(receive, send)
        return
    if scope["type"] != "http":
        return
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    raw = scope.get("raw_path") or scope["path"].encode()
    reply = memory.respond(
        scope["method"],
        raw.decode("latin-1").partition("?")[0],
        dict(query),
        headers,
        await _body(receive),
        origin=f"{scope.get('scheme', 'http')}://{headers.get('host', '127.0.0.1')}",
    )
    # Some of these headers are made by a script, and a header ends at a line end.
    sent = [(name.lower(), " ".join(value.split())) for name, value in reply.headers.items()]
    raw_headers = [(name.encode("latin-1", "replace"), value.encode("latin-1", "replace")) for name, value in sent]
    length = (b"content-length", str(len(reply.body)).encode())
    await send({"type": "http.response.start", "status": reply.status, "headers": [*raw_headers, length]})
    await send({"type": "http.response.body", "body": reply.body})


async def _body(receive: Receive) -> bytes:
    data = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return bytes(data)
        data += message.get("body", b"")[: max(0, _MAX_BODY - len(data))]
        if not message.get("more_body"):
            return bytes(data)


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
