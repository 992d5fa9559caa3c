"""Where a redirect may lead: within the API with the token, to a log's storage without it, and nowhere else."""

import httpx

from mcp_ops.github.client.answer import Answer
from mcp_ops.github.client.pages import same_origin
from mcp_ops.wire import is_loopback

REDIRECTS = frozenset({301, 302, 307, 308})


def target_of(answer: Answer, url: httpx.URL) -> httpx.URL | None:
    """Return where an answer redirects to; None when it does not. One that cannot be read names no host."""
    if answer.status not in REDIRECTS:
        return None
    location = answer.headers.get("location", "").strip()
    try:
        target = url.join(location) if location else httpx.URL()
        # What a list is narrowed by must not get lost on the way.
        return target if target.query or not url.query else target.copy_with(query=url.query)
    except (httpx.InvalidURL, ValueError):
        return httpx.URL()


def is_api(target: httpx.URL, base: httpx.URL) -> bool:
    """Tell whether an address is one of repositories at the same API: GitHub redirects there when one was renamed."""
    prefix = base.path.rstrip("/")
    if ".." in target.path.split("/"):
        return False
    return same_origin(target, base) and target.path.startswith((f"{prefix}/repos/", f"{prefix}/repositories/"))


def is_storage(target: httpx.URL, base: httpx.URL) -> bool:
    """Tell whether a log may be fetched there: by https; from this machine itself only if the API is there too."""
    here, there = is_loopback(base.host), is_loopback(target.host)
    if target.userinfo or not target.host or (there and not here):
        return False
    return target.scheme == "https" or (there and target.scheme == "http")
