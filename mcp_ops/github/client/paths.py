"""Paths of requests, built from parts that were checked and are percent-encoded one by one."""

import re
from urllib.parse import quote

from mcp_ops.github.api import GitHubError, RepoName

_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}", re.ASCII)
_SHA = re.compile(r"[0-9a-fA-F]{7,64}", re.ASCII)


def repo_path(repo: RepoName, *parts: str | int) -> str:
    """Return `/repos/{owner}/{name}/…`.

    Raises:
        GitHubError: `invalid`; the owner or the name is none that GitHub gives out.
    """
    if not _OWNER.fullmatch(repo.owner):
        raise GitHubError("invalid", "the owner of a repository is letters, digits and hyphens: write it like acme/web")
    if not _NAME.fullmatch(repo.name) or repo.name in (".", ".."):
        raise GitHubError(
            "invalid", "the name of a repository is letters, digits, '.', '-' and '_': write it like acme/web"
        )
    return joined("repos", repo.owner, repo.name, *parts)


def joined(*parts: str | int) -> str:
    """Return a path of these parts. None of them can leave its place."""
    return "".join("/" + quote(str(part), safe="") for part in parts)


def commit_sha(sha: str) -> str:
    """Return a commit's hash, checked.

    Raises:
        GitHubError: `invalid`; it is no hash.
    """
    if not _SHA.fullmatch(sha):
        raise GitHubError("invalid", "a commit is named by 7 to 64 hexadecimal digits")
    return sha


def positive(number: int) -> int:
    """Return a number of an issue, a pull request or a job, checked.

    Raises:
        GitHubError: `invalid`; it is not positive.
    """
    if number < 1:
        raise GitHubError("invalid", "issues, pull requests and jobs are numbered from 1")
    return number
