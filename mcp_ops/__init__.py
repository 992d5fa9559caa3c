"""Guarded MCP servers for operations work, an agent that uses them, and the evaluation of both."""

__version__ = "0.1.0"
