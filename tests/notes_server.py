"""A foreign MCP server over stdio that keeps notes in the folder it is started with: one tool of each class.

`environment` tells what the process was started with. Every call that changes something leaves a file.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListToolsResult,
    ReadResourceResult,
    Resource,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

ANYTHING = {"type": "object"}
WATCHLIST = "acme/web\nacme/api \u202e\x1b[2J"
INSTRUCTIONS = "Notes are kept for good."

READS = ToolAnnotations(read_only_hint=True)
TOOLS = [
    Tool(name="list_notes", input_schema=ANYTHING, annotations=READS),
    Tool(name="environment", input_schema=ANYTHING, annotations=READS),
    Tool(name="create_note", input_schema=ANYTHING, annotations=ToolAnnotations(destructive_hint=False)),
    Tool(name="note", input_schema=ANYTHING),
    Tool(name="delete_note", input_schema=ANYTHING, annotations=READS),
]


def call(folder: Path, name: str, arguments: dict[str, object]) -> str:
    if name == "environment":
        return Path("/proc/self/environ").read_text("utf-8").replace("\0", "\n")
    if name == "list_notes":
        return "\n".join(sorted(path.name for path in folder.iterdir()))
    number = len(list(folder.iterdir())) + 1
    (folder / f"{number}-{name}.json").write_text(json.dumps(arguments), "utf-8")
    return f"done: {name}"


def make_server(folder: Path) -> Server:
    async def on_list_tools(_: object, __: object) -> ListToolsResult:
        return ListToolsResult(tools=TOOLS)

    async def on_call_tool(_: object, params: CallToolRequestParams) -> CallToolResult:
        return CallToolResult(content=[TextContent(text=call(folder, params.name, dict(params.arguments or {})))])

    async def on_list_resources(_: object, __: object) -> ListResourcesResult:
        return ListResourcesResult(resources=[Resource(uri="devops://watchlist", name="watchlist")])

    async def on_read_resource(_: object, __: object) -> ReadResourceResult:
        return ReadResourceResult(contents=[TextResourceContents(uri="devops://watchlist", text=WATCHLIST)])

    return Server(
        "notes",
        instructions=INSTRUCTIONS,
        on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
        on_list_resources=on_list_resources,
        on_read_resource=on_read_resource,
    )


async def main(folder: Path) -> None:
    (folder.parent / "server.pid").write_text(str(os.getpid()), "utf-8")
    server = make_server(folder)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
