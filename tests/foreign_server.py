"""A server that is not ours: in process by `make_server(workspace)`, or over stdio as a program.

It does what its tools' arguments say, good or bad, so that a test can show what the harness makes of it.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ListToolsResult,
    TextContent,
    TextResourceContents,
    Tool,
)

ANYTHING = {"type": "object"}
Handler = Callable[[Path, dict[str, Any]], CallToolResult | Awaitable[CallToolResult]]


def text(said: str, *, error: bool = False, structured: dict[str, Any] | None = None) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=said)], is_error=error, structured_content=structured)


def say(_: Path, args: dict[str, Any]) -> CallToolResult:
    """Say what it is told to, with or without the error flag."""
    return text(args.get("text", ""), error=args.get("error", False), structured=args.get("structured"))


def show(workspace: Path, args: dict[str, Any]) -> CallToolResult:
    return text((workspace / args["path"]).read_text("utf-8"))


def write(workspace: Path, args: dict[str, Any]) -> CallToolResult:
    """Change the workspace, and claim to have refused."""
    (workspace / args["path"]).write_text(args.get("text", ""), "utf-8")
    return text(args.get("claim", "done"), error="claim" in args)


def mixed(_: Path, __: dict[str, Any]) -> CallToolResult:
    return CallToolResult(
        content=[
            TextContent(text="first"),
            ImageContent(data="aGk=", mime_type="image/png"),
            EmbeddedResource(resource=TextResourceContents(uri="file:///x", text="inside")),
            EmbeddedResource(resource=BlobResourceContents(uri="file:///y", blob="aGk=")),
        ]
    )


def environment(_: Path, __: dict[str, Any]) -> CallToolResult:
    return text(" ".join(sorted(os.environ)))


def arguments(_: Path, __: dict[str, Any]) -> CallToolResult:
    return text(" ".join(sys.argv))


def die(_: Path, args: dict[str, Any]) -> CallToolResult:
    sys.stderr.write("out of memory\n")
    sys.stderr.flush()
    os._exit(args.get("code", 7))


def spawn(_: Path, args: dict[str, Any]) -> CallToolResult:
    """Leave a process behind that holds none of our pipes."""
    command = ["sleep", str(args.get("seconds", 321))]
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=args.get("new_session", False),
        env={"PATH": os.defpath},
    )
    child.returncode = 0  # nobody here waits for it
    return text(str(child.pid))


async def hang(_: Path, __: dict[str, Any]) -> CallToolResult:
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


def crash(_: Path, args: dict[str, Any]) -> CallToolResult:
    raise MCPError(-32000, args.get("text", "it broke"))


def leave(_: Path, args: dict[str, Any]) -> CallToolResult:
    sys.exit(args.get("code", 3))


def typed(_: Path, args: dict[str, Any]) -> CallToolResult:
    return text("typed", structured={"count": args["count"]})


TOOLS: dict[str, Handler] = {
    function.__name__: function
    for function in (say, show, write, mixed, environment, arguments, die, spawn, hang, crash, leave, typed)
}
TYPED = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}


def make_server(workspace: Path | str, *, further: dict[str, Handler] | None = None) -> Server[Any]:
    handlers = {**TOOLS, **(further or {})}
    tools = [
        Tool(
            name=name,
            description=(handler.__doc__ or name).splitlines()[0],
            input_schema=ANYTHING,
            output_schema=TYPED if name == "typed" else None,
        )
        for name, handler in handlers.items()
    ]

    async def on_list(_: Any, __: Any) -> ListToolsResult:
        return ListToolsResult(tools=tools)

    async def on_call(_: Any, params: Any) -> CallToolResult:
        result = handlers[params.name](Path(workspace), params.arguments or {})
        return result if isinstance(result, CallToolResult) else await result

    return Server("foreign", on_list_tools=on_list, on_call_tool=on_call)


async def serve(workspace: str) -> None:
    from mcp.server.stdio import stdio_server

    server = make_server(workspace)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1] if len(sys.argv) > 1 else "."))
