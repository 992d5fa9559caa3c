"""The in-memory GitHub: requests in, replies out, and what a witness compares."""

import hashlib
import re
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlencode

from mcp_ops.github.memory.answers import NOT_FOUND, Reply, Request, failed, said
from mcp_ops.github.memory.routes import STORAGE, at_repository, stored_log
from mcp_ops.github.memory.scripted import Script
from mcp_ops.github.memory.state import GitHubState
from mcp_ops.github.memory.store import Store

if TYPE_CHECKING:
    from mcp_ops.github.client import RestGitHub

MADE_UP_TOKEN = "ghp_MadeUp0000ForTheInMemoryGitHub000001"  # noqa: S105  # it opens nothing
ADDRESS = "https://api.github.invalid"
"""Where the in-memory GitHub seems to be when nothing listens anywhere."""
_HOURLY = 5000
_MAX_BODY = 1024 * 1024
_BY_NAME = re.compile(r"/repos/([^/]{1,300})/([^/]{1,300})(/.*)?", re.ASCII)
_BY_ID = re.compile(r"/repositories/([0-9]{1,15})(/.*)?", re.ASCII)
_STORED = re.compile(re.escape(STORAGE) + r"/([0-9]{1,15})/([0-9]{1,15})", re.ASCII)


@dataclass(frozen=True)
class IssueSeen:
    """An issue as a witness sees it."""

    title: str
    body: str | None
    labels: tuple[str, ...]
    state: str


class MemoryGitHub:
    """A GitHub that lives in this process. It may be asked from several threads."""

    def __init__(
        self,
        state: GitHubState,
        *,
        token: str = MADE_UP_TOKEN,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Begin with a state, whose ages count from now.

        Args:
            state: What stands in it.
            token: The one that it accepts.
            now: Current time.
        """
        self._token, self._now = token, now
        self._store, self._script = Store(state, now()), Script(state.answers)
        self._lock = threading.Lock()
        self.requests: list[Request] = []
        """What it was asked, in order."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all repositories, those that the token may not see too."""
        return tuple(each.name for each in self._store.repositories)

    def client(self) -> "RestGitHub":
        """Return a client that reaches it without any network."""
        # The client loads an HTTP library, which a run without GitHub has no use for.
        from mcp_ops.github.client import RestGitHub, Token
        from mcp_ops.github.memory.transport import MemoryTransport

        return RestGitHub(ADDRESS, Token(self._token), transport=MemoryTransport(self), now=self._now)

    def snapshot(self) -> Mapping[str, IssueSeen]:
        """Return all issues by `owner/name#number`."""
        with self._lock:
            return {
                f"{repo.name}#{number}": IssueSeen(issue.title, issue.body, issue.labels, issue.state)
                for repo in self._store.repositories
                for number, issue in sorted(repo.issues())
            }

    def respond(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        origin: str = ADDRESS,
    ) -> Reply:
        """Answer one request as GitHub does.

        Args:
            method: In upper case.
            path: Percent-encoded; a leading `/api/v3`, as Enterprise has it, is kept in links.
            query: Parameters, decoded.
            headers: By name, in any letter case.
            body: As it came.
            origin: Scheme, host and port under which it was reached, for links.
        """
        prefix = "/api/v3" if path.startswith("/api/v3/") else ""
        named = {name.lower(): value for name, value in (headers or {}).items()}
        request = Request(method, path.removeprefix(prefix), dict(query or {}), named, body, origin + prefix)
        with self._lock:
            self.requests.append(request)
            reply = self._script.reply(request, self._now()) or self._answer(request)
            return self._finished(request, reply)

    @property
    def asgi(self) -> Callable[..., Awaitable[None]]:
        """It as an ASGI application, for who serves it over HTTP."""
        # Only who serves it needs this.
        from mcp_ops.github.memory.asgi import application

        return application(self)

    def _answer(self, request: Request) -> Reply:
        stored = _STORED.fullmatch(request.path)
        if stored is not None:
            return self._from_storage(request, int(stored[1]), int(stored[2]))
        if request.token != self._token:
            return failed(401, "Bad credentials" if request.token else "Requires authentication")
        if len(request.body) > _MAX_BODY:
            return failed(413, "Payload too large")
        by_name, by_id = _BY_NAME.fullmatch(request.path), _BY_ID.fullmatch(request.path)
        repo, below = None, ""
        if by_name is not None:
            name, below = f"{unquote(by_name[1])}/{unquote(by_name[2])}", by_name[3] or ""
            repo, former = self._store.by_name(name), self._store.renamed(name)
            if repo is None and former is not None and former.state.visible:
                return _moved(request, former.id, below)
        elif by_id is not None:
            repo, below = self._store.by_id(int(by_id[1])), by_id[2] or ""
        if repo is None or not repo.state.visible:
            return NOT_FOUND
        return at_repository(repo, below, request, self._now())

    def _from_storage(self, request: Request, repo: int, job: int) -> Reply:
        if "authorization" in request.headers:
            # A storage takes the signature in the address and no other credentials beside it.
            return Reply(400, {"Content-Type": "text/plain"}, b"InvalidAuthenticationInfo")
        text = stored_log(self._store.by_id(repo), job)
        if text is None or request.query.get("sig") != "made-up":
            return Reply(404, {"Content-Type": "text/plain"}, b"BlobNotFound")
        return Reply(200, {"Content-Type": "text/plain; charset=utf-8"}, text.encode("utf-8", "replace"))

    def _finished(self, request: Request, reply: Reply) -> Reply:
        usual = {
            "X-RateLimit-Limit": str(_HOURLY),
            "X-RateLimit-Remaining": str(max(1, _HOURLY - len(self.requests))),
            "X-RateLimit-Reset": str(int(self._now().timestamp()) + 3600),
        }
        headers = {**usual, **reply.headers}
        if reply.status != 200 or request.method != "GET":
            return Reply(reply.status, headers, reply.body)
        link = reply.headers.get("Link", "").encode()
        etag = f'W/"{hashlib.sha256(reply.body + link).hexdigest()}"'
        headers["ETag"] = etag
        if request.headers.get("if-none-match") == etag:
            return Reply(304, headers)
        return Reply(200, headers, reply.body)


def _moved(request: Request, repo: int, below: str) -> Reply:
    query = f"?{urlencode(request.query)}" if request.query else ""
    url = f"{request.base}/repositories/{repo}{below}{query}"
    status = 301 if request.method == "GET" else 307
    return said(status, {"message": "Moved Permanently", "url": url}, Location=url)
