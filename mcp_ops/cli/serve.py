"""`mcp-ops serve`."""

import argparse
import asyncio
import os
import signal
import sys
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from mcp_ops.cli import complain
from mcp_ops.cli.errors import CommandError
from mcp_ops.servers.ops import create_server, load_extension


def run(args: argparse.Namespace) -> int:
    """Serve until the client closes stdin. Stdout carries JSON-RPC only."""
    try:
        server = create_server(
            args.workspace,
            kubeconfig=args.kubeconfig,
            kube_context=args.kube_context,
            require_second_wall=args.require_second_wall,
            extension=None if args.guards is None else load_extension(args.guards),
        )
    except ValueError as error:
        raise CommandError(str(error)) from None
    if sys.stdin.isatty():
        complain(f"serving {args.server} for {args.workspace} on stdin and stdout; an MCP client starts this by itself")

    asyncio.run(_serve(server))
    return 0


async def _serve(server: Server[Any]) -> None:
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
