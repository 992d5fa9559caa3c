"""The GitHub of one attempt: in the memory of the harness, whatever the transport of the servers is."""

import secrets
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_ops.evaluation.line.github_spec import GitHubSpec
from mcp_ops.evaluation.world.copying import WorldError
from mcp_ops.evaluation.world.github_state import github_state
from mcp_ops.github.memory.service import IssueSeen, MemoryGitHub
from mcp_ops.github.watchlist import Watchlist

if TYPE_CHECKING:
    from mcp_ops.github.client import RestGitHub

TOKEN_BEGINNING = "ghp_MadeUpByTheHarness"  # noqa: S105 - it opens nothing
"""What everybody knows of the token: a line can try to send this much of it away."""
MAX_NAMED = 10
"""Most repositories that a trace names."""


def made_up_token() -> str:
    """Return a token of the form that GitHub's have. It opens in-memory GitHubs of this process and nothing else."""
    return TOKEN_BEGINNING + secrets.token_hex(9)


@dataclass
class GitHubWorld:
    """An in-memory GitHub with what a server is told of it."""

    memory: MemoryGitHub
    watch: tuple[str, ...]
    """The repositories that the server may read."""
    write: tuple[str, ...]
    """The repositories in which it may open issues."""
    token: str = field(repr=False)
    listener: socket.socket | None = None
    """Where it answers a server that is a child process; None where the server is in this process."""

    def __post_init__(self) -> None:
        self._before = self.memory.snapshot()

    def __str__(self) -> str:
        names = self.memory.names
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        return f"in memory: {', '.join(names[:MAX_NAMED]) or 'no repository'}{more}"

    @cached_property
    def client(self) -> "RestGitHub":
        """The client of a server in this process."""
        return self.memory.client()

    @property
    def environment(self) -> dict[str, str]:
        """What a server that is a child process is given beside its PATH."""
        if self.listener is None:
            return {}
        return {
            "GITHUB_API_URL": f"http://127.0.0.1:{self.listener.getsockname()[1]}",
            "GITHUB_TOKEN": self.token,
            "GITHUB_REPOS": ",".join(self.watch),
            "GITHUB_WRITE_REPOS": ",".join(self.write),
        }

    @asynccontextmanager
    async def answering(self) -> AsyncIterator[None]:
        """Answer the server until the block ends."""
        if self.listener is not None:
            from mcp_ops.evaluation.world.loopback import served

            async with served(self.memory.asgi, self.listener):
                yield
            return
        try:
            yield
        finally:
            await self.client.aclose()

    def text_now(self, issue: str) -> str:
        """Return everything that an issue says, called `acme/web#101`; empty when there is none."""
        return _text(self.memory.snapshot().get(issue))

    def text_before(self, issue: str) -> str:
        """Return what it said when this GitHub was made."""
        return _text(self._before.get(issue))

    def close(self) -> None:
        """Give the port back."""
        if self.listener is not None:
            self.listener.close()


def github_world(
    spec: GitHubSpec, *, token: str, line_folder: Path | None, rootdir: Path, on_loopback: bool
) -> GitHubWorld:
    """Make the GitHub of a line anew.

    Args:
        spec: `world.github` of the line.
        token: The one that it accepts.
        line_folder: Folder of the line's file.
        rootdir: No file that the line names lies outside it.
        on_loopback: Whether it is reached over a port of this machine.

    Raises:
        WorldError: What is in it cannot be had, or a list is none that a server takes.
    """
    state = github_state(spec, line_folder=line_folder, rootdir=rootdir)
    memory = MemoryGitHub(state, token=token)
    watch = _listed(memory.names if spec.watch is None else spec.watch, "watch")
    write = _listed(spec.write, "write")
    listener = None
    if on_loopback:
        from mcp_ops.evaluation.world.loopback import loopback_socket

        listener = loopback_socket()
    return GitHubWorld(memory, watch, write, token, listener)


def _listed(names: Iterable[str], key: str) -> tuple[str, ...]:
    try:
        return tuple(str(name) for name in Watchlist.of(names))
    except ValueError as error:
        path = f"world.github.{key}"
        raise WorldError(f"{path} does not hold what a server takes: {error}", path) from None


def _text(issue: IssueSeen | None) -> str:
    return "" if issue is None else "\n".join((issue.title, issue.body or "", *issue.labels))
