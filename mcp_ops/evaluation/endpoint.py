"""Which key belongs to which model endpoint: the provider's own key goes to the provider and to nobody else."""

from collections.abc import Mapping

import httpx

from mcp_ops.evaluation.config import DEFAULT_BASE_URL

PROVIDER_KEY = "OPENROUTER_API_KEY"
"""Environment variable with the key of the default endpoint."""
OTHER_KEY = "MCP_OPS_API_KEY"
"""Environment variable with the key of any other endpoint."""


def is_default_host(base_url: str) -> bool:
    """Return whether a base URL leads to the host of the default one; a text that is no URL does not."""
    try:
        return httpx.URL(base_url.strip()).host == httpx.URL(DEFAULT_BASE_URL).host
    except httpx.InvalidURL:
        return False


def key_for(base_url: str, environ: Mapping[str, str]) -> str | None:
    """Return the key that may be sent to a base URL, or None when the environment holds none for it."""
    return environ.get(PROVIDER_KEY if is_default_host(base_url) else OTHER_KEY) or None
