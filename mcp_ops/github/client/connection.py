"""One request, one answer: connections, and what goes wrong on them."""

import http.cookiejar
import ssl
from dataclasses import dataclass
from functools import cached_property

import httpx

from mcp_ops.github.api import FailureKind
from mcp_ops.github.client.answer import Answer, read_answer
from mcp_ops.github.client.auth import Credentials
from mcp_ops.github.client.logs import unlogged
from mcp_ops.wire import is_loopback


@dataclass(frozen=True)
class Limits:
    """How much of GitHub is waited for and read. Times are in seconds."""

    request_seconds: float = 20.0
    """One request with all that belongs to it: a fresh token, one retry, redirects, the last byte."""
    log_seconds: float = 45.0
    """The same for a job's log."""
    max_body: int = 8 * 1024 * 1024
    """Bytes of an answer."""
    max_log: int = 32 * 1024 * 1024
    """Bytes of a log that are read to get to its end."""
    max_redirects: int = 3


class Lost(Exception):
    """There is no answer that could be read.

    Args:
        kind: `network` or `unreadable`.
        words: Why, without a secret.
        sent: Whether the request may have arrived.
    """

    def __init__(self, kind: FailureKind, words: str, *, sent: bool) -> None:
        super().__init__(words)
        self.kind, self.sent = kind, sent


class Connection:
    """Sends what it is given, and adds no credential of its own."""

    def __init__(self, base: httpx.URL, credentials: Credentials, transport: httpx.AsyncBaseTransport | None) -> None:
        """Prepare; nothing is opened yet.

        Args:
            base: Decides about TLS and proxies: none of the environment's proxies is used towards this machine.
            credentials: What no sentence may repeat.
            transport: Something else than the network.
        """
        self._base, self._quote, self._transport = base, credentials.quote, transport
        self._opened: httpx.AsyncClient | None = None

    async def aclose(self) -> None:
        """Close what was opened."""
        if self._opened is not None:
            await self._opened.aclose()

    async def once(
        self,
        method: str,
        url: httpx.URL,
        headers: httpx.Headers,
        *,
        max_bytes: int,
        content: bytes | None = None,
        keep: int | None = None,
    ) -> Answer:
        """Send one request and read its answer, at most `max_bytes` of it; `keep` is for `read_answer`.

        Raises:
            Lost: There is no answer, or it is compressed, which was not asked for.
        """
        asked = self._client.stream(method, url, headers=headers, content=content, auth=None)
        try:
            with unlogged():
                async with asked as response:
                    answer = await read_answer(response, max_bytes=max_bytes, keep=keep)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol) as error:
            raise Lost("network", self._words(error), sent=False) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Lost("network", self._words(error), sent=True) from None
        if answer.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise Lost("unreadable", "the answer is compressed, which was not asked for", sent=True)
        return answer

    def _words(self, error: Exception) -> str:
        return f"the connection failed: {self._quote(str(error)) or type(error).__name__}"

    @property
    def _client(self) -> httpx.AsyncClient:
        if self._opened is None:
            self._opened = httpx.AsyncClient(
                transport=self._transport,
                # Without compression the bound on bytes read is a bound on memory.
                headers={"User-Agent": "mcp-ops", "Accept-Encoding": "identity"},
                cookies=http.cookiejar.CookieJar(http.cookiejar.DefaultCookiePolicy(allowed_domains=[])),
                timeout=None,  # noqa: S113  # whoever calls has a deadline for the whole
                trust_env=not is_loopback(self._base.host),
                follow_redirects=False,
                verify=self._tls,
            )
        return self._opened

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        # Loading the known authorities takes a while; a context without any trusts nobody, and plain http needs none.
        secure = self._base.scheme == "https" and self._transport is None
        return httpx.create_ssl_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
