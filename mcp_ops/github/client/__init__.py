"""GitHub's REST API over plain httpx: typed answers, typed failures, and a token that is never said."""

from mcp_ops.github.client.auth import AppInstallation, Credentials, Token
from mcp_ops.github.client.connection import Limits
from mcp_ops.github.client.rest import RestGitHub

__all__ = ["AppInstallation", "Credentials", "Limits", "RestGitHub", "Token"]
