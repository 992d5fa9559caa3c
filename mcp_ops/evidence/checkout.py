"""The commit of a git checkout, read from its files: no git is started, and nothing in the checkout decides what runs.

The layout is that of gitrepository-layout(5): `.git` is a folder, or a file that names one; `HEAD` holds a commit or
the name of a branch; a branch is a file, or a line of `packed-refs`.
"""

import re
from pathlib import Path

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF = re.compile(r"refs/[A-Za-z0-9][\w./+@-]{0,200}")
_LARGEST = 16 * 1024 * 1024


def commit_of(folder: Path) -> str | None:
    """Return the commit that is checked out where `folder` lies, or None when it lies in no checkout.

    Changes that are not committed are not seen.
    """
    for place in (folder, *folder.parents):
        if (place / ".git").exists():
            try:
                return _head(_git_folder(place))
            except (OSError, ValueError):
                return None
    return None


def _git_folder(place: Path) -> Path:
    """Return the folder behind `.git`: that of a worktree or submodule is named in a file."""
    git = place / ".git"
    return git if git.is_dir() else place / _text(git).removeprefix("gitdir:").strip()


def _head(git: Path) -> str | None:
    head = _text(git / "HEAD").strip()
    name = head.removeprefix("ref:").strip()
    if _COMMIT.fullmatch(head):
        return head
    if not _REF.fullmatch(name) or ".." in name:
        return None
    shared = git / _text(git / "commondir").strip() if (git / "commondir").is_file() else git
    for folder in (git, shared):
        if (folder / name).is_file():
            commit = _text(folder / name).strip()
            return commit if _COMMIT.fullmatch(commit) else None
    return _packed(shared / "packed-refs", name)


def _packed(file: Path, name: str) -> str | None:
    for line in _text(file).splitlines():
        commit, _, ref = line.partition(" ")
        if ref == name and _COMMIT.fullmatch(commit):
            return commit
    return None


def _text(file: Path) -> str:
    if file.stat().st_size > _LARGEST:
        raise ValueError(file)
    return file.read_text("utf-8")
