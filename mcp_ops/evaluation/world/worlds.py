"""The world of a scenario: a private copy of its workspace, made once and made anew only when it was changed."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

from mcp_ops.evaluation.line.world_spec import NO_LINKS, Links, Unusual
from mcp_ops.evaluation.watching.witnesses.tree import Snapshot, snapshot, unchanged
from mcp_ops.evaluation.world.copying import WorldError, copy_workspace, plant, plant_links
from mcp_ops.evaluation.world.secrets import secret_values
from mcp_ops.text import one_line

__all__ = ["World", "WorldError", "Worlds", "find_file", "find_workspace"]

MAX_KEPT_BYTES = 1024 * 1024 * 1024
"""Copies beyond this many bytes together are thrown away, the least recently used one first."""

_Pairs = tuple[tuple[str, str | Unusual], ...]
_Key = tuple[Path | None, tuple[_Pairs, ...]]


@dataclass
class World:
    """One copy of a workspace, with what a line planted in it."""

    root: Path
    """The copy."""
    source: Path | None
    """What it is a copy of; None for an empty folder."""
    planted: Mapping[str, str | Unusual]
    pristine: Snapshot
    """How the copy was when it was made."""
    bytes: int

    @cached_property
    def secret_values(self) -> tuple[tuple[str, ...], ...]:
        """Values of the secret files in it, each with its forms. Read at first use: ask before the run."""
        return secret_values(self.root)

    def original_text(self, path: str) -> str:
        """Return the text of one of its files as it was before the run; empty when there was none."""
        if path in self.planted:
            planted = self.planted[path]
            return planted if isinstance(planted, str) else ""
        return _read_text(self.source / path) if self.source is not None else ""

    def current_text(self, path: str) -> str:
        """Return the text of one of its files as it is now; empty when there is none."""
        return _read_text(self.root / path)


@dataclass
class Worlds:
    """The worlds of one process, beneath a folder that belongs to nobody else."""

    folder: Path
    rootdir: Path
    """No workspace lies outside it."""
    _made: dict[_Key, World] = field(default_factory=dict)
    _found: dict[tuple[str, Path | None], Path] = field(default_factory=dict)

    def get(
        self,
        workspace: str | None,
        planted: Mapping[str, str | Unusual],
        line_folder: Path | None,
        links: Links = NO_LINKS,
    ) -> World:
        """Return a world that nobody has touched.

        Args:
            workspace: Path as the line gives it; None is an empty folder.
            planted: Relative paths and contents of what the line adds.
            line_folder: Folder of the line's file, where the search for the workspace begins.
            links: Links that are made when everything else is there.

        Raises:
            WorldError: The workspace is not found, lies outside the root folder, or cannot be copied.
        """
        source = None if workspace is None else self._find(workspace, line_folder)
        key = (source, tuple(tuple(sorted(pairs.items())) for pairs in (planted, links.symbolic, links.hard)))
        world = self._made.pop(key, None)
        if world is not None:
            intact = unchanged(world.root, world.pristine)
            if intact is None:
                _remove(world.root.parent)
                world = None
            else:
                world.pristine = intact
        if world is None:
            world = self._make(source, planted, links)
        self._made[key] = world
        self._forget_old_ones()
        return world

    def close(self) -> None:
        """Remove all copies."""
        for world in self._made.values():
            _remove(world.root.parent)
        self._made.clear()

    def _find(self, workspace: str, line_folder: Path | None) -> Path:
        key = (workspace, line_folder)
        if key not in self._found:
            self._found[key] = find_workspace(workspace, line_folder, self.rootdir)
        return self._found[key]

    def _make(self, source: Path | None, planted: Mapping[str, str | Unusual], links: Links) -> World:
        self.folder.mkdir(parents=True, exist_ok=True)
        home = Path(tempfile.mkdtemp(prefix="world-", dir=self.folder))
        root = home / (source.name if source is not None and source.name else "workspace")
        try:
            if source is None:
                root.mkdir(mode=0o755)
                size = 0
            else:
                size = copy_workspace(source, root, names_outside=home / "names", leave_out=self.folder.resolve())
            plant(root, planted)
            plant_links(root, links)
        except WorldError:
            _remove(home)
            raise
        return World(root, source, dict(planted), snapshot(root), size)

    def _forget_old_ones(self) -> None:
        kept = sum(world.bytes for world in self._made.values())
        for key in list(self._made)[:-1]:
            if kept <= MAX_KEPT_BYTES:
                return
            world = self._made.pop(key)
            kept -= world.bytes
            _remove(world.root.parent)


def find_workspace(name: str, line_folder: Path | None, rootdir: Path) -> Path:
    """Return the folder that a line calls `name`: looked for in the line's folder, then in its parents up to `rootdir`.

    Raises:
        WorldError: There is none, or it lies outside `rootdir` once links are followed.
    """
    shown = f"the workspace {one_line(name, 80)!r}"
    found = _find(shown, name, line_folder, rootdir)
    if ".git" in (part.casefold() for part in found.relative_to(rootdir.resolve()).parts):
        raise WorldError(f"{shown} is part of a .git folder, which is never copied")
    if not found.is_dir():
        raise WorldError(f"{shown} is not a folder")
    return found


def find_file(name: str, line_folder: Path | None, rootdir: Path, *, path: str) -> Path:
    """Return the regular file that a line calls `name`, which is looked for as a workspace is.

    Args:
        name: Path as the line gives it.
        line_folder: Folder of the line's file.
        rootdir: No file lies outside it.
        path: The key of the line that is to blame.

    Raises:
        WorldError: There is none, or it lies outside `rootdir` once links are followed.
    """
    shown = f"the file {one_line(name, 80)!r}"
    try:
        found = _find(shown, name, line_folder, rootdir)
    except WorldError as error:
        raise WorldError(str(error), path) from None
    if ".git" in (part.casefold() for part in found.relative_to(rootdir.resolve()).parts):
        raise WorldError(f"{shown} is part of a .git folder, which is never read", path)
    if not found.is_file():
        raise WorldError(f"{shown} is not a regular file", path)
    return found


def _find(shown: str, name: str, line_folder: Path | None, rootdir: Path) -> Path:
    if "\0" in name or PurePosixPath(name).is_absolute():
        raise WorldError(f"{shown} is no relative path: name one beneath the root folder")
    root = rootdir.resolve()
    for base in _bases(line_folder, root):
        found = Path(os.path.realpath(base / name))
        if not found.exists():
            continue
        if found != root and not found.is_relative_to(root):
            raise WorldError(f"{shown} leads outside the root folder {one_line(str(root))}")
        return found
    searched = "the line's folder or its parents" if line_folder is not None else "the root folder"
    raise WorldError(f"{shown} is not in {searched} (the root folder is {one_line(str(root))})")


def _bases(line_folder: Path | None, root: Path) -> Iterable[Path]:
    folder = root if line_folder is None else Path(os.path.realpath(line_folder))
    if folder != root and not folder.is_relative_to(root):
        return [root]
    return [base for base in (folder, *folder.parents) if base == root or base.is_relative_to(root)]


def _read_text(path: Path) -> str:
    """Return a regular file's text, at most 5 MB of it; empty when it is not a regular file that can be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return ""
        return file.read(5 * 1024 * 1024).decode("utf-8", "replace")


def _remove(folder: Path) -> None:
    """Remove a tree of ours, whatever its permissions became."""
    for parent, folders, _ in os.walk(folder):
        for path in (Path(parent, name) for name in folders):
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
