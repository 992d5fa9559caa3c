"""Text from outside, made unable to speak to whoever reads a log, a page or a summary."""

import html
import re

from mcp_ops.text import clean, inert, one_line

__all__ = ["block", "html_text", "inert", "inert_line", "markdown_text"]

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9 ]")

MARGIN = "  | "
"""Stands before every line of a block, so that no line begins with text from outside."""


def inert_line(text: str, limit: int = 300) -> str:
    """Return `text` inert, on one line, in at most about `limit` characters."""
    return inert(one_line(text, limit))


def block(lines: "list[str] | tuple[str, ...]", limit: int = 300) -> list[str]:
    """Return `lines` inert, each behind the margin."""
    return [MARGIN + inert_line(line, limit) for line in lines]


def html_text(text: str) -> str:
    """Return `text` cleaned and escaped for HTML."""
    return html.escape(clean(text))


def markdown_text(text: str, limit: int = 300) -> str:
    """Return `text` for Markdown with every character that could be markup as a numeric reference.

    A reference never opens a link, a picture, a fence, a table cell or a tag, and names nobody.
    """
    return _NOT_PLAIN.sub(lambda found: f"&#{ord(found[0])};", one_line(text, limit))
