"""A folder at one moment, and how two moments differ: content, type, permissions, owner, links, times, attributes.

Reading is no difference: access times are not looked at.
"""

import hashlib
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from mcp_ops.text import one_line

MAX_ENTRIES = 100_000
"""A tree that grew beyond this is looked at no further."""

Stamp = tuple[int, int, int, int, int, int, int, int]
"""Mode, owner, group, size, mtime, ctime, inode, number of names. Nothing can be written without changing the ctime."""

Kind = Literal["file", "folder", "link", "fifo", "socket", "device"]

_CHUNK = 1 << 20
_RACY_NS = 20_000_000
"""A write this soon after another one may get the same ctime: kernels before 6.13 count in ticks of up to 10 ms."""


@dataclass(frozen=True)
class Entry:
    """One entry of a folder, as far as it may not change."""

    kind: Kind
    stamp: Stamp
    digest: bytes | None = None
    """Of a file's content, or None when it cannot be read."""
    target: str | None = None
    """Where a link points."""
    attributes: tuple[tuple[str, bytes], ...] = ()
    """Extended attributes."""


@dataclass(frozen=True)
class Snapshot:
    """A folder with everything in it, by relative path; the folder itself is `.`."""

    entries: Mapping[str, Entry]
    stamps: Mapping[str, Stamp]
    racy: frozenset[str]
    """Files that may have been written after the snapshot without a new ctime: compare their content."""
    complete: bool = True
    """Whether the tree was within `MAX_ENTRIES`."""


@dataclass(frozen=True)
class Difference:
    """One entry that differs."""

    kind: Literal["created", "changed", "removed"]
    path: str
    detail: str


def walk(root: Path) -> dict[str, Stamp]:
    """Return the stamp of every entry, without following a link, until there are more than `MAX_ENTRIES`.

    Nothing is said about what is inside a folder that cannot be listed; its own stamp is there.
    """
    try:
        stamps = {".": _stamp(root.lstat())}
    except FileNotFoundError:
        return {}
    folders = [""]
    while folders and len(stamps) <= MAX_ENTRIES:
        prefix = folders.pop()
        with suppress(OSError), os.scandir(root / prefix) as listing:
            for entry in listing:
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    stamps[prefix + entry.name] = _stamp(status)
                    if stat.S_ISDIR(status.st_mode):
                        folders.append(f"{prefix}{entry.name}/")
    return stamps


def snapshot(root: Path) -> Snapshot:
    """Return everything that there is to know about a folder."""
    taken = time.time_ns()
    stamps = walk(root)
    entries = {path: _entry(root / path, stamp) for path, stamp in stamps.items()}
    return Snapshot(entries, stamps, _racy(stamps, taken), len(stamps) <= MAX_ENTRIES)


def unchanged(root: Path, known: Snapshot) -> Snapshot | None:
    """Return `known`, or a copy of it with fewer racy files, if the folder is still exactly as it was; else None."""
    taken = time.time_ns()
    stamps = walk(root)
    if stamps != known.stamps:
        return None
    if not known.racy:
        return known
    if any(_digest(root / path) != known.entries[path].digest for path in known.racy):
        return None
    return replace(known, racy=_racy({path: stamps[path] for path in known.racy}, taken))


def compare(root: Path, known: Snapshot) -> list[Difference]:
    """Return how the folder differs from `known`, by path."""
    stamps = walk(root)
    if stamps == known.stamps and not known.racy:
        return []
    found = list(_differences(root, known, stamps))
    if len(stamps) > MAX_ENTRIES:
        found.append(Difference("created", ".", f"more than {MAX_ENTRIES:,} entries, the rest was not looked at"))
    return sorted(found, key=lambda difference: difference.path)


def _differences(root: Path, known: Snapshot, stamps: Mapping[str, Stamp]) -> Iterator[Difference]:
    created = stamps.keys() - known.stamps.keys()
    removed = known.stamps.keys() - stamps.keys()
    for path in _without_full_folders(created):
        yield Difference("created", path, _kind(stamps[path]))
    for path in _without_full_folders(removed):
        yield Difference("removed", path, known.entries[path].kind)
    # What was replaced may have got the same inode again.
    replaced = {
        path
        for path in stamps.keys() & known.stamps.keys()
        if stamps[path] != known.stamps[path] and _kind(stamps[path]) != "folder"
    }
    stirred = {_parent(path) for path in created | removed | replaced}
    for path, stamp in stamps.items():
        before = known.entries.get(path)
        if before is None or (stamp == before.stamp and path not in known.racy):
            continue
        details = _details(before, _entry(root / path, stamp))
        if not details and path not in stirred:
            details = [_time_detail(before, stamp)] if stamp != before.stamp else []
        if details:
            yield Difference("changed", path, ", ".join(details))


def _details(before: Entry, after: Entry) -> list[str]:
    if before.kind != after.kind:
        return [f"a {before.kind} became a {after.kind}"]
    old, new = before.stamp, after.stamp
    details = []
    if before.digest != after.digest:
        details.append("content")
    if before.target != after.target:
        details.append(f"link target {_shown(before.target)} to {_shown(after.target)}")
    if old[0] != new[0]:
        details.append(f"mode {stat.S_IMODE(old[0]):04o} to {stat.S_IMODE(new[0]):04o}")
    if old[1:3] != new[1:3]:
        details.append(f"owner {old[1]}:{old[2]} to {new[1]}:{new[2]}")
    details += _attribute_details(dict(before.attributes), dict(after.attributes))
    if before.kind != "folder" and old[7] != new[7]:
        details.append(f"{old[7]} to {new[7]} names")
    written = before.digest != after.digest or before.target != after.target
    if before.kind != "folder" and old[4] != new[4] and not written:
        details.append("modification time")
    return details


def _attribute_details(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Iterator[str]:
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            done = "set" if name not in before else "removed" if name not in after else "changed"
            yield f"extended attribute {_shown(name)} {done}"


def _time_detail(before: Entry, stamp: Stamp) -> str:
    """Say what only the times of an entry give away. Nothing sets a ctime: it is the time of the latest change."""
    if stamp[4] == before.stamp[4]:
        return "a change that was undone, or of its flags"
    if before.kind == "folder" and stamp[4] == stamp[5]:
        return "an entry came and went"
    return "modification time"


def _shown(name: str | None) -> str:
    return "unknown" if name is None else one_line(name, 60)


def _without_full_folders(paths: set[str]) -> set[str]:
    """Leave out folders of which something inside is listed too."""
    return paths - {_parent(path) for path in paths if path != "."}


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "."


def _entry(path: Path, stamp: Stamp) -> Entry:
    kind = _kind(stamp)
    return Entry(
        kind,
        stamp,
        digest=_digest(path) if kind == "file" else None,
        target=_target(path) if kind == "link" else None,
        attributes=_attributes(path),
    )


def _digest(path: Path) -> bytes | None:
    digest = hashlib.blake2b(digest_size=16)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        while chunk := os.read(handle, _CHUNK):
            digest.update(chunk)
    except OSError:
        return None
    finally:
        os.close(handle)
    return digest.digest()


def _target(path: Path) -> str | None:
    try:
        return str(path.readlink())
    except OSError:
        return None


def _attributes(path: Path) -> tuple[tuple[str, bytes], ...]:
    # macOS has extended attributes, but Python does not read them there.
    listing: Any = getattr(os, "listxattr", None)
    if listing is None:
        return ()
    try:
        names = listing(path, follow_symlinks=False)
        return tuple((name, os.getxattr(path, name, follow_symlinks=False)) for name in sorted(names))
    except OSError:
        return ()


_KINDS: Mapping[int, Kind] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
}


def _kind(stamp: Stamp) -> Kind:
    mode = stamp[0]
    return _KINDS.get(stat.S_IFMT(mode), "device")


def _racy(stamps: Mapping[str, Stamp], taken: int) -> frozenset[str]:
    return frozenset(path for path, stamp in stamps.items() if stat.S_ISREG(stamp[0]) and stamp[5] > taken - _RACY_NS)


def _stamp(status: os.stat_result) -> Stamp:
    return (
        status.st_mode,
        status.st_uid,
        status.st_gid,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_ino,
        status.st_nlink,
    )
