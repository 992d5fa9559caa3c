"""What became of a call, read from a server's reply or from the exception that came instead."""

from dataclasses import dataclass
from typing import Any

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    REQUEST_TIMEOUT,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    TextContent,
    TextResourceContents,
)

from mcp_ops.evaluation.session.asked import NotGranted
from mcp_ops.evaluation.session.blocking import LoopBlocked
from mcp_ops.evaluation.session.rules import CLAIMED, SERVER_ASKED, SERVER_DIED, SERVER_ERROR, SERVER_TOO_LARGE
from mcp_ops.evaluation.session.stdio import TOO_LARGE
from mcp_ops.gate import MAX_REPLY_BYTES, TIME_LIMIT, Rule, read_reply, stopped, to_mcp
from mcp_ops.text import one_line
from mcp_ops.trace.events import FaultName, StateName


@dataclass(frozen=True)
class Answer:
    """What became of a call, raw."""

    state: StateName
    text: str
    rule: str | None = None
    reason: str = ""
    hint: str = ""
    structured: Any = None
    exit_code: int | None = None
    claimed: bool = False
    truncated: bool = False
    full_length: int | None = None
    fault: FaultName | None = None
    """The fault that the line put into the call."""


def answer_of_ours(reply: CallToolResult) -> Answer | None:
    """Read the reply of one of our servers by its structured content; None when it is no such reply."""
    reading = read_reply(reply)
    if reading is None:
        return None
    return Answer(
        reading.state.value,
        text_of(reply.content),
        rule=reading.rule,
        reason=reading.reason,
        hint=reading.hint,
        structured=reply.structured_content,
        exit_code=reading.exit_code,
        truncated=reading.truncated,
        full_length=reading.full_length,
    )


def answer_of_foreign(reply: CallToolResult, denied_pattern: Any) -> Answer:
    """Read the reply of a server that is not ours: only its error flag and, with the flag, its text mean something.

    Args:
        reply: The reply.
        denied_pattern: Compiled RE2 pattern that finds a denial in the text of an error; None when there is none.
    """
    text, structured = text_of(reply.content), reply.structured_content
    if not reply.is_error:
        exit_code = structured.get("exit_code") if isinstance(structured, dict) else None
        return Answer("executed", text, structured=structured, exit_code=exit_code if type(exit_code) is int else None)
    if denied_pattern is not None and denied_pattern.search(text.encode("utf-8", "replace")):
        return Answer("denied", text, CLAIMED.name, reason=text, structured=structured, claimed=True)
    return Answer("failed", text, SERVER_ERROR.name, reason=text, structured=structured)


def answer_of_error(error: BaseException, server: str) -> Answer:
    """Read the exception that came instead of a reply."""
    if isinstance(error, TimeoutError) or (isinstance(error, MCPError) and error.code == REQUEST_TIMEOUT):
        return failed(TIME_LIMIT, f"server {server!r} did not answer in time")
    if is_closed(error):
        return failed(SERVER_DIED, f"server {server!r} ended before it answered")
    if isinstance(error, MCPError) and error.code == TOO_LARGE:
        return failed(SERVER_TOO_LARGE, f"server {server!r}: {one_line(error.message, 200)}")
    if isinstance(error, NotGranted):
        return failed(SERVER_ASKED, f"server {server!r} asked for {error} in place of a result, which is not granted")
    if isinstance(error, LoopBlocked):
        return failed(TIME_LIMIT, f"server {server!r} did not answer in time: {error}")
    words = f"it called sys.exit({error})" if isinstance(error, SystemExit) else one_line(str(error), 500)
    words = words or type(error).__name__
    return failed(SERVER_ERROR, f"server {server!r} sent no usable reply: {words}")


def is_closed(error: BaseException) -> bool:
    """Return whether an exception says that the connection to the server ended."""
    if isinstance(error, anyio.BrokenResourceError | anyio.ClosedResourceError | anyio.EndOfStream):
        return True
    # The code alone does not tell: it is the first one that servers may use as they like.
    return isinstance(error, MCPError) and error.code == CONNECTION_CLOSED and error.message == "Connection closed"


def answer_without_form(server: str) -> Answer:
    """Return what is made of a reply of one of our servers that `answer_of_ours` cannot read."""
    return failed(SERVER_ERROR, f"server {server!r} sent a reply that is not in its own form")


def failed(rule: Rule, reason: str) -> Answer:
    """Return the answer to a call that could not finish."""
    return Answer("failed", reason, rule.name, reason=reason)


def refused(rule: Rule, reason: str) -> Answer:
    """Return the answer of the harness itself to a call that no server may see, in the form of our servers."""
    answer = answer_of_ours(to_mcp(stopped(rule, reason), MAX_REPLY_BYTES))
    assert answer is not None  # noqa: S101 - to_mcp and read_reply are two halves of one format
    return answer


def text_of(content: list[ContentBlock]) -> str:
    """Return the text of a reply; what is no text is named."""
    return "\n".join(_text_of_block(block) for block in content)


def _text_of_block(block: ContentBlock) -> str:
    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, EmbeddedResource) and isinstance(block.resource, TextResourceContents):
        return block.resource.text
    kind = getattr(block, "mime_type", None) or getattr(block, "uri", None) or ""
    return f"[{block.type} {kind}]".replace(" ]", "]")
