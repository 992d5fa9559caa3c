"""Requests on their way to GitHub: who may get the token, how long, how much, how often."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

import httpx

from mcp_ops.github.api import GitHubError
from mcp_ops.github.client.answer import Answer
from mcp_ops.github.client.auth import Credentials, Minted
from mcp_ops.github.client.cache import AnswerCache
from mcp_ops.github.client.connection import Connection, Limits, Lost
from mcp_ops.github.client.failures import Reader
from mcp_ops.github.client.models import InstallationToken, parsed
from mcp_ops.github.client.paths import joined
from mcp_ops.github.client.redirects import is_api, is_storage, target_of
from mcp_ops.text import Secret

_ASKED_AGAIN = frozenset({502, 503})
_INSTALLATION = "a token of the App's installation"


@dataclass(frozen=True)
class Request:
    """What is asked for."""

    method: str
    url: httpx.URL
    what: str
    """In words, such as `pull request #17 of acme/web`."""
    content: bytes | None = None
    cached: bool = False
    """Whether an earlier answer may be kept and asked about."""


@dataclass
class Progress:
    """How far a request got."""

    sent: bool = False
    """Whether it may have arrived."""


class Sender:
    """Sends requests to one base URL, and to no other host with the token."""

    def __init__(
        self,
        base: httpx.URL,
        credentials: Credentials,
        *,
        transport: httpx.AsyncBaseTransport | None,
        limits: Limits,
        now: Callable[[], datetime],
    ) -> None:
        """Prepare; nothing is opened yet."""
        self.base = base
        self._credentials, self._limits, self._now = credentials, limits, now
        self._connection = Connection(base, credentials, transport)
        self._reader = Reader(credentials.quote, now)
        self._cache = AnswerCache()
        self._pause: GitHubError | None = None

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()

    def failure(self, answer: Answer, what: str) -> GitHubError:
        """Return what an answer means whose status is not the one that was hoped for."""
        return self._reader.failure(answer, what)

    async def get(self, path: str, params: Mapping[str, str], what: str) -> Answer:
        """Return the answer to a GET, after redirects within GitHub, whatever its status.

        Raises:
            GitHubError: There is none, or a limit is in force.
        """
        async with _within(self._limits.request_seconds, what):
            answer = await self._followed(Request("GET", self._url(path, params), what, cached=True))
        return self._whole(answer, what)

    async def post(self, path: str, content: bytes, what: str, progress: Progress) -> Answer:
        """Return the answer to a POST, which is sent once. `progress` says afterwards whether it may have arrived.

        Raises:
            GitHubError: There is none, or a limit is in force.
        """
        async with _within(self._limits.request_seconds, what):
            answer = await self._authorized(Request("POST", self._url(path, {}), what, content), progress)
        return self._whole(answer, what)

    async def download(self, path: str, what: str, *, keep: int) -> Answer:
        """Return the end of what a GET is redirected to: that other place gets no credentials.

        Raises:
            GitHubError: There is none, or it is a place that is not asked.
        """
        async with _within(self._limits.log_seconds, what):
            answer = await self._followed(Request("GET", self._url(path, {}), what))
            target = target_of(answer, self.base)
            if target is None:
                return self._whole(answer, what)
            if not is_storage(target, self.base):
                raise GitHubError("redirected", f"{what}: GitHub redirects to an address that is not https, or is here")
            return await self._tried(Request("GET", target, what), httpx.Headers(), self._limits.max_log, keep)

    def _url(self, path: str, params: Mapping[str, str]) -> httpx.URL:
        query = f"?{httpx.QueryParams(dict(params))}" if params else ""
        return self.base.copy_with(raw_path=self.base.raw_path.rstrip(b"/") + f"{path}{query}".encode("ascii"))

    def _whole(self, answer: Answer, what: str) -> Answer:
        if not answer.complete:
            raise GitHubError("unreadable", f"{what}: GitHub's answer is longer than {self._limits.max_body} bytes")
        return answer

    async def _followed(self, request: Request) -> Answer:
        """Ask, and follow redirects to other repositories' addresses of this API."""
        for _ in range(self._limits.max_redirects + 1):
            answer = await self._authorized(request)
            target = target_of(answer, request.url)
            if target is None or not is_api(target, self.base):
                return answer
            request = Request(request.method, target, request.what, cached=request.cached)
        raise GitHubError(
            "redirected", f"{request.what}: GitHub redirects more than {self._limits.max_redirects} times"
        )

    async def _authorized(self, request: Request, progress: Progress | None = None) -> Answer:
        """Send with the token; once more with another one when GitHub refuses it and another one can be had."""
        again = True
        while True:
            self._check_pause()
            token = await self._credentials.token(self._mint)
            answer = await self._with_token(request, token, progress)
            if answer.status != 401 or not self._credentials.refused(token) or not again:
                break
            again = False
        self._note_limit(answer, request.what)
        return answer

    async def _with_token(self, request: Request, token: Secret, progress: Progress | None) -> Answer:
        address, credential = str(request.url), token.digest
        kept = self._cache.get(address, credential) if request.cached else None
        headers = _headers(token, json=request.content is not None)
        if kept is not None:
            headers["If-None-Match"] = kept.etag
        if progress is None:
            answer = await self._tried(request, headers, self._limits.max_body)
        else:
            answer = await self._sent_once(request, headers, progress)
        if answer.status == 304 and kept is not None:
            return Answer(200, httpx.Headers({"link": kept.link}), kept.body, len(kept.body), complete=True)
        if answer.status == 200 and request.cached and answer.complete:
            etag = answer.headers.get("etag", "")
            self._cache.put(address, credential, etag=etag, link=answer.link, body=answer.body)
        return answer

    async def _tried(self, request: Request, headers: httpx.Headers, max_bytes: int, keep: int | None = None) -> Answer:
        """Send a GET; once more when the connection failed, or GitHub says that it is not there for a moment."""
        left = 2
        while True:
            left, lost = left - 1, None
            try:
                answer = await self._connection.once("GET", request.url, headers, max_bytes=max_bytes, keep=keep)
                if not left or answer.status not in _ASKED_AGAIN or "retry-after" in answer.headers:
                    return answer
            except Lost as failed:
                lost = failed
            if lost is not None and (not left or lost.kind != "network"):
                raise GitHubError(lost.kind, f"{request.what}: {lost}")

    async def _sent_once(self, request: Request, headers: httpx.Headers, progress: Progress) -> Answer:
        progress.sent, lost = True, None
        try:
            return await self._connection.once(
                request.method, request.url, headers, content=request.content, max_bytes=self._limits.max_body
            )
        except Lost as failed:
            progress.sent, lost = failed.sent, failed
        raise GitHubError(lost.kind, f"{request.what}: {lost}")

    async def _mint(self, installation: int, statement: Secret) -> Minted:
        url = self._url(joined("app", "installations", installation, "access_tokens"), {})
        request = Request("POST", url, _INSTALLATION, b"{}")
        answer = await self._sent_once(request, _headers(statement, json=True), Progress())
        self._note_limit(answer, _INSTALLATION)
        if answer.status == 404:
            raise GitHubError("unauthorized", "the App has no installation with this id, or it was removed")
        if answer.status != 201:
            raise self.failure(answer, _INSTALLATION)
        given: InstallationToken = parsed(InstallationToken, self._whole(answer, _INSTALLATION), _INSTALLATION)
        return given.minted()

    def _check_pause(self) -> None:
        pause = self._pause
        if pause is not None and pause.retry_at is not None and self._now() < pause.retry_at:
            raise GitHubError(pause.kind, f"not asked: {pause}", retry_at=pause.retry_at)

    def _note_limit(self, answer: Answer, what: str) -> None:
        if answer.status in (403, 429):
            failure = self.failure(answer, what)
            self._pause = failure if failure.retry_at is not None else self._pause


def _headers(token: Secret, *, json: bool) -> httpx.Headers:
    headers = httpx.Headers({"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"})
    headers["Authorization"] = f"Bearer {token.reveal()}"
    if json:
        headers["Content-Type"] = "application/json"
    return headers


@asynccontextmanager
async def _within(seconds: float, what: str) -> AsyncIterator[None]:
    late = False
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        late = True
    if late:
        raise GitHubError("timeout", f"{what}: GitHub gave no complete answer within {seconds:.3g} s")
