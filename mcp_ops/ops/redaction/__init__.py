"""Hiding credentials in what a cluster says: in text, in objects, and in the layout of `kubectl describe`."""

from mcp_ops.ops.redaction.described import redact_described
from mcp_ops.ops.redaction.objects import redact_object
from mcp_ops.ops.redaction.words import REDACTED, names_credential, redact_text

__all__ = ["REDACTED", "names_credential", "redact_described", "redact_object", "redact_text"]
