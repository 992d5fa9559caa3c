"""What a server asks of its client: sampling, roots, elicitation. Refused and noted, unless it was granted."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mcp.client import ClientRequestContext
from mcp.client.session import ClientSession, ListRootsFnT
from mcp_types import (
    CreateMessageRequest,
    ElicitRequest,
    ErrorData,
    InputRequest,
    InputResponse,
    ListRootsResult,
    Root,
    TextContent,
)
from pydantic import FileUrl

from mcp_ops.text import one_line

_GIST = 500


class NotGranted(Exception):
    """A server answered a call by asking for something that was not granted. The message is the method's name."""


@dataclass(frozen=True)
class Asked:
    """One request of a server to its client."""

    method: str
    """`sampling/createMessage`, `roots/list` or `elicitation/create`."""
    granted: bool
    text: str
    """The beginning of what it says, on one line."""


def roots_of(workspace: Path) -> ListRootsFnT:
    """Return the callback that names `workspace` as the only root. A client that has one says so to its server."""

    async def answer(context: ClientRequestContext) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl(workspace.as_uri()), name="workspace")])

    return answer


def note_requests(session: ClientSession, note: Callable[[Asked], None]) -> None:
    """Have every later request of a server noted. How it is answered does not change.

    Every road that such a request can take, in either era of the protocol, leads through `dispatch_input_request`. A
    callback that only notes would be announced to the server as a capability.
    """
    answer = session.dispatch_input_request

    async def noted(ctx: ClientRequestContext, request: InputRequest) -> InputResponse | ErrorData:
        response = await answer(ctx, request)
        note(Asked(request.method, not isinstance(response, ErrorData), one_line(_text_of(request), _GIST)))
        return response

    session.dispatch_input_request = noted  # type: ignore[method-assign]


def _text_of(request: InputRequest) -> str:
    if isinstance(request, ElicitRequest):
        return f"{request.params.message} {getattr(request.params, 'url', '')}".strip()
    if isinstance(request, CreateMessageRequest):
        blocks = (block for message in request.params.messages for block in message.content_as_list)
        return " / ".join(block.text for block in blocks if isinstance(block, TextContent))
    return ""
