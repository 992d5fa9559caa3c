"""The github server in front of an in-memory GitHub, as an MCP client sees it."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult

from mcp_ops.gate import Audit, Refuse
from mcp_ops.github.memory.service import MemoryGitHub
from mcp_ops.github.memory.state import GitHubState
from mcp_ops.servers.github import Watchlist, create_server

TOKEN = "ghp_x7Kq2mVb9RtZ4wLp8NcY3hGf6JdS1aQe5uTo"
WEB, API, PRIVATE = ("acme", "web"), ("acme", "api"), ("acme", "private")

PULL: dict[str, Any] = {
    "title": "Reduce checkout latency",
    "author": "ada",
    "body": "One request for the basket.",
    "head_branch": "one-basket",
    "labels": ["performance"],
    "statuses": {"ci/build": "failure"},
    "check_runs": [{"name": "unit", "conclusion": "success"}],
    "requested_reviewers": ["lin"],
    "reviews": [{"author": "grace", "state": "APPROVED"}],
    "files": {"src/basket.ts": {"additions": 1, "deletions": 1, "patch": "@@ -1 +1 @@\n-each\n+all"}, "logo.png": {}},
    "workflow_runs": [
        {"conclusion": "failure", "jobs": [{"id": 7, "name": "build", "conclusion": "failure", "log": "Error: x\n"}]}
    ],
}


def state(**more: Any) -> dict[str, Any]:
    """Return three repositories, of which one is private; `more` is laid over acme/web."""
    web = {"description": "The shop", "next_number": 101, "pull_requests": {"17": PULL}, **more}
    web.setdefault("issues", {"3": {"title": "Checkout is slow", "author": "bob", "labels": ["bug"], "hours_ago": 2}})
    web.setdefault("commits", [{"message": "Add health check\n\nWhy", "author": "ada", "hours_ago": 5}])
    private = {"private": True, "description": "Payroll", "issues": {"1": {"title": "Salaries"}}}
    return {"repositories": {"acme/web": web, "acme/api": {}, "acme/private": private}}


@dataclass
class World:
    """A connected client, and the GitHub behind the server."""

    client: Client
    github: MemoryGitHub

    async def call(self, tool: str, repo: tuple[str, str] = WEB, **arguments: Any) -> CallToolResult:
        return await self.client.call_tool(tool, {"owner": repo[0], "repo": repo[1], **arguments})

    async def said(self, tool: str, repo: tuple[str, str] = WEB, **arguments: Any) -> tuple[str, dict[str, Any]]:
        """Return text and structured content of a call that has to succeed."""
        reply = await self.call(tool, repo, **arguments)
        assert reply.is_error is not True, text(reply)
        assert reply.structured_content is not None
        return text(reply), reply.structured_content

    async def rule(self, tool: str, repo: tuple[str, str] = WEB, **arguments: Any) -> str | None:
        """Return the rule in whose name a call was stopped; None when it ran."""
        reply = await self.call(tool, repo, **arguments)
        assert reply.structured_content is not None
        rule: str | None = reply.structured_content.get("rule")
        return rule

    async def refused(self, uri: str) -> MCPError:
        """Return the error of a read that has to fail."""
        try:
            await self.client.read_resource(uri)
        except MCPError as error:
            return error
        raise AssertionError(f"{uri} can be read")

    def asked(self) -> list[str]:
        """Return what GitHub was asked so far: `GET /repos/acme/web`."""
        return [f"{request.method} {request.path}" for request in self.github.requests]


@asynccontextmanager
async def world(
    given: dict[str, Any] | None = None,
    *,
    watch: Sequence[str] = ("acme/web", "acme/api", "acme/private"),
    write: Sequence[str] = ("acme/web", "acme/private"),
    extended: bool = False,
    refuse: Refuse | None = None,
    audit: Audit | None = None,
    mode: Any = "auto",
    around: Callable[[Any], Any] = lambda client: client,
) -> AsyncIterator[World]:
    github = MemoryGitHub(GitHubState.model_validate(given or state()), token=TOKEN)
    async with github.client() as rest:
        server = create_server(
            around(rest),
            Watchlist.of(watch),
            write_repos=Watchlist.of(write),
            extended=extended,
            refuse=refuse,
            audit=audit,
        )
        async with Client(server, mode=mode) as client:
            yield World(client, github)


def text(reply: CallToolResult) -> str:
    return reply.content[0].text  # type: ignore[union-attr]
