"""`mcp-ops serve`."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from mcp_ops.cli import complain
from mcp_ops.cli.arguments import HTTP_PORT
from mcp_ops.cli.errors import CommandError
from mcp_ops.cli.served import Served, make_server

PORT_VARIABLE = "MCP_HTTP_PORT"
TOKEN_VARIABLE = "MCP_HTTP_TOKEN"  # noqa: S105 - a name


def run(args: argparse.Namespace) -> int:
    """Serve until the client closes stdin, or over HTTP until a signal comes. Stdout carries JSON-RPC only."""
    if not args.http and (args.port is not None or args.host is not None):
        raise CommandError("--port and --host are for --http; add it, or leave them out")
    port = _port(args.port, os.environ) if args.http else 0
    served = make_server(args, os.environ)
    if args.http:
        return _over_http(served, args.host or "127.0.0.1", port, os.environ.get(TOKEN_VARIABLE))
    if sys.stdin.isatty():
        complain(f"serving {args.server} for {served.about} on stdin and stdout; an MCP client starts this by itself")
    asyncio.run(_over_stdio(served.server))
    return 0


def _port(flag: str | None, environ: Mapping[str, str]) -> int:
    """Return the port to listen on.

    Raises:
        CommandError: It is no port.
    """
    name, text = ("--port", flag) if flag is not None else (PORT_VARIABLE, environ.get(PORT_VARIABLE, str(HTTP_PORT)))
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535):
        raise CommandError(f"{name} is {text!r}, which is no port; write a number from 1 to 65535, or 0 for a free one")
    return int(text)


def _over_http(served: Served, host: str, port: int, token: str | None) -> int:
    from mcp_ops.servers.http import CannotListen, loopback_socket, serve_http, url_of

    try:
        listener = loopback_socket(host, port)
    except CannotListen as error:
        raise CommandError(str(error)) from None
    url = url_of(listener)

    def ready() -> None:
        complain(f"listening on {url}")
        if token is None:
            complain(_open_to_all(served))

    try:
        with listener:
            number = serve_http(served.server, listener, token=token, ready=ready)
    except ValueError as error:
        raise CommandError(f"{TOKEN_VARIABLE}: {error}") from None
    return 128 + number if number else 1


def _open_to_all(served: Served) -> str:
    reach = "this server does not ask its callers who they are: every user and program of this machine may call it"
    reach += f" and so use {served.credentials}" if served.credentials else ""
    return f"{reach}; to ask for a bearer token, set {TOKEN_VARIABLE}"


async def _over_stdio(server: Server[Any]) -> None:
    signals: list[int] = []
    loop, serving = asyncio.get_running_loop(), asyncio.current_task()

    def stop(number: int) -> None:
        signals.append(number)
        if serving is not None:
            serving.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    async with stdio_server() as (read, write):
        try:
            await server.run(read, write, server.create_initialization_options())
        except asyncio.CancelledError:
            # The tools' children are gone by now. A thread of the SDK waits for a line on stdin, and everything else
            # would wait for that thread.
            os._exit(128 + signals[0] if signals else 1)
