"""Copies a workspace without following a link, and plants files in the copy the same way."""

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from mcp_ops.evaluation.line.world_spec import Links, Unusual
from mcp_ops.text import one_line

MAX_FILES = 10_000
"""Most entries of a workspace, folders and links included."""
MAX_BYTES = 200 * 1024 * 1024
"""Most bytes in its files together."""
MAX_DEPTH = 40
"""Most folders inside each other."""

_LEFT_OUT = ".git"
_CHUNK = 1 << 20
_OPEN = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | _OPEN


class WorldError(ValueError):
    """The line's world cannot be made. The message is one sentence."""

    def __init__(self, message: str, path: str = "world.workspace") -> None:
        super().__init__(message)
        self.path = path
        """The key of the line that is to blame."""


def copy_workspace(source: Path, target: Path, *, names_outside: Path, leave_out: Path | None = None) -> int:
    """Copy the folder `source` to `target`, which is made, and return the bytes of its files.

    Links stay links; an absolute link into `source` is rewritten as a relative one. Hard links stay hard links: for a
    file that also has a name outside `source`, one is made in `names_outside`, so that guards see what they would see.
    FIFOs are made anew; devices, sockets and everything called `.git` are left out.

    Args:
        source: A resolved folder.
        target: A path that does not exist, in an existing folder.
        names_outside: A folder, made when it is needed.
        leave_out: A folder that is left out if it lies inside `source`.

    Raises:
        WorldError: A limit is exceeded, or something cannot be read.
    """
    copy = _Copy(source, target, names_outside, leave_out)
    try:
        copy.folder("", 0, None)
    except OSError as error:
        where = os.path.relpath(error.filename, target) if error.filename else copy.current
        why = (error.strerror or str(error)).lower()
        raise WorldError(f"{one_line(str(source))} cannot be copied: {one_line(str(where))}: {why}") from None
    copy.name_outside()
    return copy.bytes


@dataclass
class _Copy:
    source: Path
    target: Path
    names_outside: Path
    leave_out: Path | None
    entries: int = 0
    bytes: int = 0
    current: str = "."
    linked: dict[tuple[int, int], "_Linked"] = field(default_factory=dict)

    def folder(self, relative: str, depth: int, parent: int | None) -> None:
        if depth > MAX_DEPTH:
            raise self._too_much(f"more than {MAX_DEPTH} folders inside each other")
        target = self.target / relative
        target.mkdir(mode=0o700)
        with _opened(self.source if parent is None else target.name, _OPEN_FOLDER, parent) as handle:
            status = os.fstat(handle)
            with os.scandir(handle) as listing:
                names = sorted(entry.name for entry in listing)
            for name in names:
                if name.casefold() != _LEFT_OUT:
                    self.entry(handle, f"{relative}/{name}" if relative else name, name, depth)
        _dress(target, status)

    def entry(self, parent: int, relative: str, name: str, depth: int) -> None:
        if self.leave_out is not None and self.source / relative == self.leave_out:
            return
        self.entries += 1
        if self.entries > MAX_FILES:
            raise self._too_much(f"more than {MAX_FILES:,} files")
        self.current = relative
        status = os.lstat(name, dir_fd=parent)
        target = self.target / relative
        if stat.S_ISDIR(status.st_mode):
            self.folder(relative, depth + 1, parent)
        elif stat.S_ISLNK(status.st_mode):
            target.symlink_to(self._link_target(relative, os.readlink(name, dir_fd=parent)))
            os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns), follow_symlinks=False)
        elif stat.S_ISFIFO(status.st_mode):
            os.mkfifo(target)
            _dress(target, status)
        elif stat.S_ISREG(status.st_mode):
            self.file(parent, name, target)

    def file(self, parent: int, name: str, target: Path) -> None:
        with _opened(name, os.O_RDONLY | _OPEN, parent) as handle:
            status = os.fstat(handle)
            known = self.linked.get((status.st_dev, status.st_ino))
            if known is not None:
                os.link(known.copy, target)
                known.names += 1
                return
            if status.st_nlink > 1:
                self.linked[status.st_dev, status.st_ino] = _Linked(target, status.st_nlink)
            with _opened(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN) as copy:
                while chunk := os.read(handle, _CHUNK):
                    self.bytes += len(chunk)
                    if self.bytes > MAX_BYTES:
                        raise self._too_much(f"more than {MAX_BYTES // (1024 * 1024)} MB in its files")
                    _write_all(copy, chunk)
        _dress(target, status)

    def name_outside(self) -> None:
        for number, linked in enumerate(self.linked.values()):
            if linked.names < linked.wanted:
                self.names_outside.mkdir(exist_ok=True)
                os.link(linked.copy, self.names_outside / str(number))

    def _link_target(self, relative: str, target: str) -> str:
        if not target.startswith("/"):
            return target
        folder, name = os.path.split(target.rstrip("/"))
        resolved = Path(os.path.realpath(folder), name)
        if resolved != self.source and not resolved.is_relative_to(self.source):
            return target
        return os.path.relpath(resolved, (self.source / relative).parent)

    def _too_much(self, what: str) -> WorldError:
        return WorldError(f"{one_line(str(self.source))} is too big for a scenario: {what}; name a smaller folder")


@dataclass
class _Linked:
    """A file of the source that has several names."""

    copy: Path
    wanted: int
    """How many names the file has in all."""
    names: int = 1
    """How many of them were met."""


def plant(root: Path, files: Mapping[str, str | Unusual]) -> None:
    """Write files into a workspace, given as relative paths and texts; missing folders are made, no link is followed.

    In place of a text there may be what no text can be: a named pipe, a large file, a large folder.

    Raises:
        WorldError: A path leads outside, goes through a link, or cannot be written.
    """
    for given, content in files.items():
        shown = f"the path {one_line(given, 80)!r}"
        pure = PurePosixPath(given)
        if not pure.parts or pure.is_absolute() or ".." in pure.parts or "\0" in given:
            raise WorldError(f"{shown} is no relative path inside the workspace", "world.plant")
        try:
            _plant_one(root, pure, content)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise WorldError(f"{shown} cannot be planted: {why}", "world.plant") from None


def plant_links(root: Path, links: Links) -> None:
    """Make links in a workspace, in folders that are there.

    Raises:
        WorldError: A hard link's file is no regular file of the workspace, or a link cannot be made.
    """
    for path, target in (*links.symbolic.items(), *links.hard.items()):
        try:
            if path in links.symbolic:
                (root / path).symlink_to(target)
            else:
                _plant_hard_link(root, path, target)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            sentence = f"a link to {one_line(target, 80)!r} cannot be made: {why}"
            raise WorldError(f"{sentence}; name families in place of true, without this one", "variants") from None


def _plant_hard_link(root: Path, path: str, target: str) -> None:
    real = Path(os.path.realpath(root / target))
    if not (real.is_file() and real.is_relative_to(os.path.realpath(root))):
        raise OSError(errno.ENOENT, "it is no file of the workspace")
    os.link(real, root / path)


def _plant_one(root: Path, path: PurePosixPath, content: str | Unusual) -> None:
    folder = os.open(root, _OPEN_FOLDER)
    try:
        for name in path.parts[:-1]:
            try:
                inner = os.open(name, _OPEN_FOLDER, dir_fd=folder)
            except FileNotFoundError:
                os.mkdir(name, dir_fd=folder)
                inner = os.open(name, _OPEN_FOLDER, dir_fd=folder)
                os.fchmod(inner, 0o755)
            os.close(folder)
            folder = inner
        if _is_file_or_link(path.name, folder):
            os.unlink(path.name, dir_fd=folder)
        if isinstance(content, str) or content.zeros is not None:
            _make_file(path.name, content, folder)
        elif content.files is not None:
            _make_folder(path.name, content.files, folder)
        else:
            os.mkfifo(path.name, 0o644, dir_fd=folder)
    finally:
        os.close(folder)


def _make_file(name: str, content: str | Unusual, folder: int) -> None:
    with _opened(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN, folder) as handle:
        if isinstance(content, str):
            _write_all(handle, content.encode("utf-8"))
        else:
            os.ftruncate(handle, content.zeros or 0)
        os.fchmod(handle, 0o644)


def _make_folder(name: str, files: int, folder: int) -> None:
    os.mkdir(name, dir_fd=folder)
    with _opened(name, _OPEN_FOLDER, folder) as inner:
        os.fchmod(inner, 0o755)
        for number in range(files):
            os.close(os.open(f"file-{number:05}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN, 0o644, dir_fd=inner))


def _is_file_or_link(name: str, folder: int) -> bool:
    try:
        mode = os.lstat(name, dir_fd=folder).st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISDIR(mode)


@contextmanager
def _opened(path: Path | str, flags: int, folder: int | None = None) -> Iterator[int]:
    handle = os.open(path, flags, 0o600, dir_fd=folder)
    try:
        yield handle
    finally:
        os.close(handle)


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _dress(target: Path, status: os.stat_result) -> None:
    """Give a copy the permissions, without set-id bits, and the times of the original."""
    target.chmod(status.st_mode & 0o777)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
