"""An ASGI application around a server: admission first, then `/mcp` by the SDK, and `/health`."""

import asyncio
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_ops.servers.http.admission import Admission, Refusal

MCP_PATH = "/mcp"
HEALTH_PATH = "/health"
MAX_BODY_BYTES = 1 << 20
"""Most bytes of a request; a longer one is answered with 413."""
MAX_SESSIONS = 1000
"""Most sessions of the older protocol at a time. Each ends by itself after 30 minutes without a request."""

_STOPPED = Refusal(503, "the server was stopped before this request was answered")


def http_app(server: Server[Any], admission: Admission) -> ASGIApp:
    """Return the application that serves `server` to those whom `admission` lets in.

    Both eras of the protocol are spoken: 2026-07-28 without a session, older ones with the SDK's `Mcp-Session-Id`. No
    other header says who somebody is. It has to be run with its lifespan, once.
    """

    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok", "name": server.name, "version": server.version})

    inner = server.streamable_http_app(
        streamable_http_path=MCP_PATH,
        max_request_body_size=MAX_BODY_BYTES,
        max_sessions=MAX_SESSIONS,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        custom_starlette_routes=[Route(HEALTH_PATH, health, methods=["GET"])],
    )
    return _Admitted(inner, admission)


class _Admitted:
    """Answers by itself what admission refuses, whatever the path."""

    def __init__(self, app: ASGIApp, admission: Admission) -> None:
        self._app = app
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refusal = self._admission.refuse(scope["headers"], needs_token=scope["path"] != HEALTH_PATH)
        if refusal is not None:
            await _response(refusal)(scope, receive, send)
            return
        begun = False

        async def noting(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except asyncio.CancelledError:
            # Nobody else cancels a request than a server that was told to stop.
            if not begun:
                await _response(_STOPPED)(scope, receive, send)


def _response(refusal: Refusal) -> Response:
    """A JSON-RPC error without an id: MCP clients show its sentence."""
    error = JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=INVALID_REQUEST, message=refusal.sentence))
    headers = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else None
    return JSONResponse(error.model_dump(mode="json", exclude_unset=True), refusal.status, headers)
