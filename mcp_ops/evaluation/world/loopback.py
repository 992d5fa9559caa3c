"""An ASGI application on a port of this machine, in the running loop, for as long as a block runs."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn

_STOP_SECONDS = 1
"""How long requests may still run at the end."""


def loopback_socket() -> socket.socket:
    """Return a socket that is bound to a free port of 127.0.0.1 and does not listen yet."""
    # With the protocol spelled out, asyncio switches Nagle's algorithm off on the connections.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    return listener


@asynccontextmanager
async def served(app: Any, listener: socket.socket) -> AsyncIterator[None]:
    """Answer requests until the block ends; the socket is closed then.

    The parts of uvicorn that take signals and look at the clock are left out: the caller's loop does that.
    """
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    try:
        yield
    finally:
        async with asyncio.timeout(2 * _STOP_SECONDS):
            await server.shutdown(sockets=[listener])
