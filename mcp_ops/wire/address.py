"""Addresses that a credential may be sent to."""

import ipaddress

import httpx


def base_address(base_url: str, *, example: str, secret: str | None) -> httpx.URL:
    """Read a base URL.

    Args:
        base_url: An `http` or `https` address; white space around it is not part of it.
        example: What a good one looks like.
        secret: What would be sent there, such as "the key"; None for nothing. It goes in clear text to this
            machine only.

    Raises:
        ValueError: It cannot be used. The message is one sentence and repeats the host at most.
    """
    try:
        url = httpx.URL(base_url.strip())
    except httpx.InvalidURL:
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError(f"the base URL is no address: write it like {example}")
    if url.userinfo:
        raise ValueError("the base URL holds a user name or password: give the key by itself, not in the URL")
    if secret and url.scheme == "http" and not is_loopback(url.host):
        raise ValueError(f"{secret} would go to {url.host} in clear text: write the base URL with https://")
    return url.copy_with(path=url.path.rstrip("/"), fragment=None)


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine itself, by its name alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
