"""Any of our MCP servers over streamable HTTP, for programs of this machine only."""

from mcp_ops.servers.http.admission import MIN_TOKEN, Admission
from mcp_ops.servers.http.app import MAX_BODY_BYTES, http_app
from mcp_ops.servers.http.listening import CannotListen, loopback_socket, serve_http, url_of

__all__ = [
    "MAX_BODY_BYTES",
    "MIN_TOKEN",
    "Admission",
    "CannotListen",
    "http_app",
    "loopback_socket",
    "serve_http",
    "url_of",
]
