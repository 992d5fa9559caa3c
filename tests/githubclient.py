"""A GitHub client towards a server on loopback that answers, byte for byte, what a test tells it to."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from endpoint import Behaviour, Endpoint, answer

from mcp_ops.github.api import RepoName
from mcp_ops.github.client import Credentials, Limits, RestGitHub, Token

TOKEN = "ghp_x7Kq2mVb9RtZ4wLp8NcY3hGf6JdS1aQe5uTo"
WEB = RepoName("acme", "web")
NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
SHA = "6dcb09b5b57875f334f61aebed695e2e4193db5e"
EPOCH = int(NOW.timestamp())


class Clock:
    """A time that only a test moves."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def client(
    here: Endpoint, credentials: Credentials | None = None, clock: Clock | None = None, **limits: Any
) -> RestGitHub:
    return RestGitHub(here.url, credentials or Token(TOKEN), limits=Limits(**limits), now=clock or Clock())


def repository(**more: Any) -> dict[str, Any]:
    said = {"full_name": "acme/web", "private": False, "default_branch": "main", "description": "The shop"}
    return {**said, "open_issues_count": 3, "archived": False, "visibility": "public", **more}


def pull(number: int = 17, **more: Any) -> dict[str, Any]:
    branches = {"head": {"ref": "cache", "sha": SHA, "repo": None}, "base": {"ref": "main", "sha": SHA}}
    said = {"number": number, "title": "Reduce latency", "state": "open", "user": {"login": "ada"}, "body": "Text"}
    about = {"updated_at": "2026-11-30T10:00:00Z", "html_url": f"https://github.com/acme/web/pull/{number}"}
    return {**said, **branches, **about, "draft": False, "labels": [{"name": "ci"}], **more}


def issue(number: int = 3, **more: Any) -> dict[str, Any]:
    said = {"number": number, "title": "Checkout is slow", "state": "open", "user": {"login": "ada"}, "body": "Text"}
    about = {"updated_at": "2026-11-30T10:00:00Z", "html_url": f"https://github.com/acme/web/issues/{number}"}
    return {**said, **about, "labels": [{"name": "bug"}], "comments": 2, **more}


def says(body: Any, status: int = 200, **headers: str) -> bytes:
    return answer(body, status, Content_Type="application/json", **headers)


def fails(status: int, message: str = "No", **headers: str) -> bytes:
    return says({"message": message, "documentation_url": "https://docs.github.com/rest"}, status, **headers)


def target(here: Endpoint, index: int = -1) -> str:
    """Return what a request asked for, as it stood in its first line, without the base URL's path."""
    return here.requests[index].line.split(" ")[1].removeprefix("/v1")


def late(make: Callable[[], bytes]) -> Behaviour:
    """Answer with what is known only once the server listens."""

    async def behave(writer: asyncio.StreamWriter, over: asyncio.Event) -> None:
        writer.write(make())
        await writer.drain()

    return behave
