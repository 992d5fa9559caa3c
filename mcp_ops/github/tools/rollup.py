"""What all checks of a commit come to: statuses and check runs are two systems of GitHub, and count alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mcp_ops.github.api import CheckRun, CommitStatus, GitHub, GitHubError, RepoName
from mcp_ops.github.tools.asking import DENIED_ACCESS

Verdict = Literal["failure", "pending", "success", "unknown"]
"""Failure wins over pending, which wins over success. Unknown: no check at all, or none that can be read."""

_FAILURE = frozenset({"failure", "error", "cancelled", "timed_out", "action_required", "startup_failure"})
_SETTLED = _FAILURE | {"success", "skipped", "neutral"}
MOST = 100
"""So many statuses, and so many check runs, are read of a commit."""


@dataclass(frozen=True)
class Rollup:
    """What the checks of one commit come to."""

    verdict: Verdict
    failing: tuple[str, ...] = ()
    """Names of failing checks, each with its own word: `build (timed_out)`."""
    pending: tuple[str, ...] = ()
    checks: int = 0
    """How many statuses and check runs there are."""
    notes: tuple[str, ...] = ()
    """What could not be read."""


def rolled_up(statuses: Sequence[CommitStatus], runs: Sequence[CheckRun], notes: tuple[str, ...] = ()) -> Rollup:
    """Return what statuses and check runs come to.

    Skipped and neutral ones count for nothing, and as success when every check is one of them. A word that GitHub did
    not have when this was written is pending: it is never a pass.
    """
    words = [(status.context, status.state) for status in statuses]
    words += [(run.name, _word(run)) for run in runs]
    failing = tuple(f"{name} ({word})" for name, word in words if word in _FAILURE)
    pending = tuple(f"{name} ({word})" for name, word in words if word not in _SETTLED)
    verdict: Verdict = "failure" if failing else "pending" if pending else "success" if words else "unknown"
    full = [kind for kind, found in (("statuses", statuses), ("check runs", runs)) if len(found) >= MOST]
    notes += tuple(f"only the first {MOST} {kind} of a commit are counted" for kind in full)
    return Rollup(verdict, failing, pending, len(words), notes)


def _word(run: CheckRun) -> str:
    return run.status if run.status != "completed" else run.conclusion or "no conclusion"


async def checks_of(client: GitHub, repo: RepoName, sha: str) -> Rollup:
    """Read the checks of a commit. What the credential may not see is left out, and a note says so.

    Raises:
        GitHubError: There is no answer for another reason.
    """
    notes: list[str] = []
    statuses: Sequence[CommitStatus] = ()
    runs: Sequence[CheckRun] = ()
    try:
        statuses = await client.statuses(repo, sha)
    except GitHubError as error:
        notes.append(unseen("commit statuses", error))
    try:
        runs = await client.check_runs(repo, sha)
    except GitHubError as error:
        notes.append(unseen("check runs", error))
    return rolled_up(statuses, runs, tuple(notes))


def unseen(what: str, error: GitHubError) -> str:
    """Return the note about a part that the credential may not see.

    Raises:
        GitHubError: It is missing for another reason.
    """
    if error.kind not in DENIED_ACCESS:
        raise error
    return f"the credential cannot read {what} ({error.kind}): they are not counted"
