"""What `grep -r` may read below a folder: the files, one by one.

grep's own --exclude cannot say what a secret name is (letter case, exceptions) and cannot see a hard link, so the tree
is walked here, with a bound, and grep gets files instead of a folder.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mcp_ops.gate import Refuse
from mcp_ops.ops.guards.globs import Glob, GlobError, compile_glob
from mcp_ops.ops.guards.shell.rules import SHELL_RECURSION
from mcp_ops.ops.rules import PATH_HARDLINK, PATH_SECRET
from mcp_ops.ops.walk import Found
from mcp_ops.ops.workspace import Workspace
from mcp_ops.text import one_line

MAX_ENTRIES = 20_000
MAX_DEPTH = 100
MAX_ARGUMENT_BYTES = 1_000_000
"""Bytes of names that one program is started with."""

_BRACES = re.compile("[{},]")


@dataclass
class Tree:
    """The files below a folder, and how many were left out."""

    names: list[str] = field(default_factory=list)
    secrets: int = 0
    """Secret files and folders that were left out."""
    hardlinks: int = 0


class TreeReader:
    """Lists what a recursion may read, over all folders of one command."""

    def __init__(self, workspace: Workspace, skipped_folders: Sequence[str], refuse: Refuse) -> None:
        self._workspace = workspace
        self._refuse = refuse
        self._skipped = tuple(_folder_globs(skipped_folders))
        self._entries = 0
        self._bytes = 0
        self._shows_secrets = PATH_SECRET.name in refuse.leaving_out.off
        self._shows_hardlinks = workspace.allow_hardlinks or PATH_HARDLINK.name in refuse.leaving_out.off

    def read(self, given: str, found: Found) -> Tree:
        """List the regular files below a folder that was looked at, named as grep would name them. Links stay unread.

        Args:
            given: The folder as it was written; empty for the working folder, whose files are shown without `./`.
            found: What it names.

        Raises:
            Denied: `shell.recursion`.
        """
        tree = Tree()
        prefix = given if not given or given.endswith("/") else f"{given}/"
        self._folder(os.fspath(self._workspace.root / found.resolved), prefix, tree, depth=0)
        return tree

    def _folder(self, path: str, prefix: str, tree: Tree, depth: int) -> None:
        if depth > MAX_DEPTH:
            self._refuse(SHELL_RECURSION, f"there are more than {MAX_DEPTH} levels below {one_line(prefix, 60)!r}")
            return
        try:
            with os.scandir(path) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError:
            return
        self._entries += len(entries)
        if self._entries > MAX_ENTRIES:
            self._refuse(SHELL_RECURSION, f"there are more than {MAX_ENTRIES} names below {one_line(prefix, 60)!r}")
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_folder and not entry.is_file(follow_symlinks=False):
                continue
            if is_folder and any(glob.fits(entry.name) for glob in self._skipped):
                continue
            if self._is_secret(entry):
                tree.secrets += 1
            elif self._is_hardlink(entry, is_folder):
                tree.hardlinks += 1
            elif is_folder:
                self._folder(entry.path, f"{prefix}{entry.name}/", tree, depth + 1)
            else:
                self._add(f"{prefix}{entry.name}", tree)

    def _is_secret(self, entry: "os.DirEntry[str]") -> bool:
        return not self._shows_secrets and self._workspace.secret_names.pattern_for_name(entry.name) is not None

    def _is_hardlink(self, entry: "os.DirEntry[str]", is_folder: bool) -> bool:
        if is_folder or self._shows_hardlinks:
            return False
        try:
            return entry.stat(follow_symlinks=False).st_nlink > 1
        except OSError:
            return True

    def _add(self, name: str, tree: Tree) -> None:
        tree.names.append(name)
        self._bytes += len(os.fsencode(name)) + 1
        if self._bytes > MAX_ARGUMENT_BYTES:
            self._refuse(SHELL_RECURSION, "the names of the files to search are longer than one program can take")


def _folder_globs(patterns: Sequence[str]) -> Iterator[Glob]:
    """Yield what --exclude-dir means to grep: a glob of one name, without braces; slashes behind it do not count."""
    for pattern in patterns:
        name = pattern.rstrip("/")
        if "/" in name or name in ("", ".", ".."):
            continue
        try:
            yield compile_glob(_BRACES.sub(r"\\\g<0>", name))
        except GlobError:
            continue
