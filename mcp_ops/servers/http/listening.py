"""A listening socket that only this machine reaches, and an HTTP server on it until a signal comes."""

import asyncio
import errno
import ipaddress
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server

from mcp_ops.servers.http.admission import Admission
from mcp_ops.servers.http.app import MCP_PATH, http_app
from mcp_ops.text import one_line

STOP_SECONDS = 1
"""How long calls may still run once the server was told to stop; then they are cancelled."""

_KEEP_ALIVE_SECONDS = 120
_BACKLOG = 128


class CannotListen(ValueError):
    """The address may not, or cannot, be listened on. The message is one sentence."""


def loopback_socket(host: str = "127.0.0.1", port: int = 0) -> socket.socket:
    """Return a listening socket on a loopback address; port 0 takes a free one.

    Raises:
        CannotListen: The address is not loopback, or the port cannot be had.
    """
    address = _loopback_address(host)
    # With the protocol spelled out, asyncio switches Nagle's algorithm off on the connections. Otherwise each answer
    # of two packets waits 40 ms for the client's delayed acknowledgement.
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((str(address), port))
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        raise CannotListen(_why(error, str(address), port)) from None
    return listener


def _loopback_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    name = host.strip().lower().removeprefix("[").removesuffix("]")
    try:
        address = ipaddress.ip_address("127.0.0.1" if name == "localhost" else name)
    except ValueError:
        address = None
    odd = getattr(address, "ipv4_mapped", None) or getattr(address, "scope_id", None)
    if address is None or not address.is_loopback or odd:
        raise CannotListen(
            f"the address {one_line(repr(host), 80)} is not allowed: whoever reaches this server uses what it may read "
            "and write, over a connection without encryption, so it listens on 127.0.0.1 or ::1 only; from another "
            "machine use a tunnel, such as ssh -L"
        )
    return address


def _why(error: OSError | OverflowError, address: str, port: int) -> str:
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.EADDRINUSE:
        return f"port {port} of {address} is in use; name another one, or 0 for a free one"
    if number in (errno.EACCES, errno.EPERM):
        return f"port {port} of {address} needs rights that this user does not have; name one above 1023"
    reason = os.strerror(number).lower() if number else "a port is a number from 0 to 65535"
    return f"port {port} of {address} cannot be listened on: {reason}"


def url_of(listener: socket.socket) -> str:
    """Return the URL that MCP clients are given."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{MCP_PATH}"


def serve_http(
    server: Server[Any], listener: socket.socket, *, token: str | None = None, ready: Callable[[], None]
) -> int:
    """Serve until SIGINT or SIGTERM comes, and return its number; calls that still run then are cancelled.

    Args:
        server: What is served.
        listener: A socket that listens; it is closed at the end.
        token: What callers have to send as a bearer token; None lets every program of this machine in.
        ready: Called once requests are answered.

    Raises:
        ValueError: The token is too short or no token.
    """
    host, port = listener.getsockname()[:2]
    app = http_app(server, Admission(port, host, token))
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    running = _Running(config, ready)
    asyncio.run(running.serve(sockets=[listener]))
    return running.stopped_by


class _Running(uvicorn.Server):
    """Tells when it is ready, and keeps the signal that stopped it instead of raising it once more at its end."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready
        self.stopped_by = 0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self._ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGINT, signal.SIGTERM)
        for number in numbers:
            loop.add_signal_handler(number, self._stop, number)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def _stop(self, number: int) -> None:
        self.stopped_by = self.stopped_by or number
        self.handle_exit(number, None)
