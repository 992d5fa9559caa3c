"""The foreign server over HTTP, as a program. The argument `wire` of a call says how its answer goes wrong."""

import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import foreign_server
import uvicorn

from mcp_ops.servers.http import Admission, http_app, loopback_socket, url_of

Send = Callable[[dict[str, Any]], Awaitable[None]]
ENDLESS = 200


async def answer(
    send: Send, body: bytes, *, status: int = 200, kind: str = "application/json", length: int = 0
) -> None:
    headers = [(b"content-type", kind.encode())]
    if length:
        headers.append((b"content-length", str(length).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def flood(send: Send, kind: str, beginning: bytes) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind.encode())]})
    for _ in range(ENDLESS):
        await send({"type": "http.response.body", "body": beginning + b"x" * 65536, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def send_elsewhere(send: Send) -> None:
    await send({"type": "http.response.start", "status": 307, "headers": [(b"location", b"http://203.0.113.7/mcp")]})
    await send({"type": "http.response.body", "body": b""})


FAULTS: dict[str, Callable[[Send], Awaitable[None]]] = {
    "garbage": lambda send: answer(send, b"\x1b[31m{ no JSON"),
    "no message": lambda send: answer(send, b'{"hello": "world"}'),
    "page": lambda send: answer(send, b"<h1>Login</h1>", kind="text/html"),
    "error page": lambda send: answer(send, b"<h1>Oops</h1>", status=500, kind="text/html"),
    "not found": lambda send: answer(send, b"", status=404),
    "accepted": lambda send: answer(send, b"", status=202),
    "cut": lambda send: answer(send, b'{"jsonrpc": "2.0"', length=1000),
    "flood": lambda send: flood(send, "application/json", b""),
    "event without end": lambda send: flood(send, "text/event-stream", b"data: "),
    "no event": lambda send: answer(send, b": nothing\n\n", kind="text/event-stream"),
    "event of garbage": lambda send: answer(send, b"event: message\ndata: {\n\n", kind="text/event-stream"),
    "elsewhere": send_elsewhere,
}


class Faulty:
    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        first = await receive()
        message = json.loads(first["body"])
        arguments = (message.get("params") or {}).get("arguments") or {}
        fault = FAULTS.get(arguments.get("wire", ""))
        if fault is not None:
            await fault(send)
            return
        parts = [first]

        async def again() -> Any:
            return parts.pop() if parts else await receive()

        await self.app(scope, again, send)


def serve() -> None:
    listener = loopback_socket()
    host, port = listener.getsockname()
    app = http_app(foreign_server.make_server("."), Admission(port, host, os.environ["MCP_HTTP_TOKEN"]))
    sys.stderr.write(f"mcp-ops: listening on {url_of(listener)}\n")
    sys.stderr.flush()
    uvicorn.Server(uvicorn.Config(Faulty(app), log_config=None, lifespan="on")).run(sockets=[listener])


if __name__ == "__main__":
    serve()
