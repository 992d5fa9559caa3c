"""What an operator adds to the guards' tables: a TOML file in which every addition proves itself by examples."""

from mcp_ops.ops.extension.loading import load_extension
from mcp_ops.ops.extension.model import BadExtension
from mcp_ops.ops.extension.tables import Extension

__all__ = ["BadExtension", "Extension", "load_extension"]
