"""The road of every read behind its guard: present name, what is private, failures, and a deadline."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from mcp_ops.gate import TIME_LIMIT, Refuse, Result, stopped
from mcp_ops.github.api import GitHub, GitHubError, RepoName, Repository
from mcp_ops.github.context import GitHubContext
from mcp_ops.github.guards.reading import guard_present_name
from mcp_ops.github.rules import NO_TOKEN, OF_KIND, OUTCOME_UNKNOWN

AT_ONCE = 5
"""Most requests of one call under way at a time: GitHub slows down bursts."""
DENIED_ACCESS = ("forbidden", "not_found", "sso_required")
"""Kinds that mean: this credential does not see that part."""

T = TypeVar("T")
R = TypeVar("R")


async def read(
    repo: RepoName,
    context: GitHubContext,
    refuse: Refuse,
    ask: Callable[[GitHub, Repository], Awaitable[Result]],
) -> Result:
    """Look the repository up, and have `ask` read it.

    A private repository counts as read from here on, before anything of it is returned.

    Raises:
        Denied: `github.watchlist`.
    """
    if context.client is None:
        return no_token()
    try:
        async with asyncio.timeout(context.seconds):
            repository = await context.client.repository(repo)
            guard_present_name(repo, repository, context, refuse)
            context.private_reads.note(repository)
            return await ask(context.client, repository)
    except GitHubError as error:
        return failed(error)
    except TimeoutError:
        return stopped(TIME_LIMIT, f"GitHub's answers took more than {context.seconds:g} s")


def no_token() -> Result:
    """Return the result of a call that needs a credential when there is none."""
    return stopped(NO_TOKEN, "the server was started without GITHUB_TOKEN")


def failed(error: GitHubError) -> Result:
    """Return what GitHub did as a result."""
    return stopped(OUTCOME_UNKNOWN if error.may_be_done else OF_KIND[error.kind], str(error))


async def each(items: Iterable[T], ask: Callable[[T], Awaitable[R]]) -> Sequence[R]:
    """Return the answers of all items, in their order; a few are asked for at a time.

    Raises:
        GitHubError: One failed; the others are given up.
    """
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(item: T) -> R:
        async with turns:
            return await ask(item)

    tasks = [asyncio.ensure_future(one(item)) for item in items]
    try:
        return await asyncio.gather(*tasks)
    finally:
        # No TaskGroup: when one fails it leaves its parent half cancelled on Python 3.11, which ends the session.
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
