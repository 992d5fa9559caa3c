"""The in-memory GitHub as a transport of the HTTP library: a client's requests reach it without a network."""

from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from mcp_ops.github.memory.service import MemoryGitHub


class MemoryTransport(httpx.AsyncBaseTransport):
    """Hands requests over."""

    def __init__(self, memory: "MemoryGitHub") -> None:
        """Take where to."""
        self._memory = memory

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the answer to a request."""
        url = request.url
        reply = self._memory.respond(
            request.method,
            url.raw_path.decode("ascii").partition("?")[0],
            dict(url.params),
            dict(request.headers),
            await request.aread(),
            origin=str(url.copy_with(raw_path=b"")).rstrip("/"),
        )
        return httpx.Response(reply.status, headers=dict(reply.headers), stream=httpx.ByteStream(reply.body))
