"""Text from outside, made safe to show and to store.

Everything that a file, a cluster, a model or a foreign server says is hostile until it went through `clean`.
This package knows no other part of the project.
"""

from mcp_ops.text.cleaning import (
    MARKER_BYTES,
    Capped,
    cap,
    clean,
    clean_value,
    inert,
    is_plain,
    one_line,
    quoted_block,
)
from mcp_ops.text.redaction import Redactor, SearchedText, find_value, searched
from mcp_ops.text.secret import Secret
from mcp_ops.text.spellings import Encoding, needles

__all__ = [
    "MARKER_BYTES",
    "Capped",
    "Encoding",
    "Redactor",
    "SearchedText",
    "Secret",
    "cap",
    "clean",
    "clean_value",
    "find_value",
    "inert",
    "is_plain",
    "needles",
    "one_line",
    "quoted_block",
    "searched",
]
