"""A bounded part of a diff, and what of it is not shown."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from mcp_ops.github.api import ChangedFile
from mcp_ops.text import clean

Shown = Literal["whole", "cut", "omitted", "no_text"]
"""omitted: there was no room left. no_text: a binary file, or one that GitHub does not show."""


@dataclass(frozen=True)
class Patch:
    """One file and as much of its patch as is shown."""

    file: ChangedFile
    text: str
    shown: Shown


def bounded(files: Sequence[ChangedFile], room: int) -> list[Patch]:
    """Return the patches of files in order, `room` characters of them in all, cut at the end of a line."""
    patches = []
    for file in files:
        patch = _patch(file, room)
        room -= len(patch.text)
        patches.append(patch)
    return patches


def _patch(file: ChangedFile, room: int) -> Patch:
    if file.patch is None:
        return Patch(file, "", "no_text")
    text = clean(file.patch)
    if len(text) <= room:
        return Patch(file, text, "whole")
    # A patch of one endless line is cut inside it.
    part = text[:room].rpartition("\n")[0] or text[:room]
    return Patch(file, part, "cut" if part else "omitted")


def what_is_missing(patches: Sequence[Patch], room: int, *, more_files: bool) -> Iterator[str]:
    """Yield a note for each part of the diff that is not there."""
    binary = sum(patch.shown == "no_text" for patch in patches)
    if any(patch.shown in ("cut", "omitted") for patch in patches):
        whole = sum(patch.shown == "whole" for patch in patches)
        yield (
            f"the diff is cut at {room} characters: {whole} of {len(patches)} files are shown whole; "
            "this is not a full review"
        )
    if binary:
        yield f"{binary} files have no text to show: they are binary or too large"
    if more_files:
        yield f"only the first {len(patches)} files are listed"
