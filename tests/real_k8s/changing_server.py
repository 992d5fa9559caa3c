"""A server that runs kubectl as it is told, on the cluster that its command names: `KUBECTL KUBECONFIG CONTEXT`."""

import asyncio
import sys
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

KUBECTL = Tool(name="kubectl", description="Run kubectl.", input_schema={"type": "object"})


async def on_list(_: Any, __: Any) -> ListToolsResult:
    return ListToolsResult(tools=[KUBECTL])


async def on_call(_: Any, params: Any) -> CallToolResult:
    kubectl, kubeconfig, context = sys.argv[1:]
    words = [kubectl, f"--kubeconfig={kubeconfig}", f"--context={context}", "--cache-dir=/dev/null"]
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*words, *params.arguments["words"], stdout=pipe, stderr=pipe)
    said = b"".join(await child.communicate()).decode("utf-8")
    return CallToolResult(content=[TextContent(text=said)], is_error=child.returncode != 0)


async def serve() -> None:
    server: Server[Any] = Server("changing", on_list_tools=on_list, on_call_tool=on_call)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(serve())
