"""`read_file`: the first lines of a text file in the workspace."""

import codecs
import os
import shlex
from dataclasses import dataclass
from typing import BinaryIO

from pydantic import Field

from mcp_ops.gate import MAX_REPLY_BYTES, Arguments, Refuse, Result, Tool, ToolClass, executed, stopped
from mcp_ops.ops.context import OpsContext
from mcp_ops.ops.guards.paths import guard_file
from mcp_ops.ops.rules import PATH_BINARY
from mcp_ops.ops.walk import SNIFF_BYTES
from mcp_ops.text import clean, one_line

TEXT_BYTES = MAX_REPLY_BYTES - 512
"""Most bytes of the file in a reply; the rest is for the line that says what was left out."""
COUNT_BYTES = 64 * 1024 * 1024
"""A file over 64 MB is read in part only: its lines are not counted."""


class ReadFileArguments(Arguments):
    """Arguments of `read_file`."""

    path: str = Field(
        description="Path of a text file, relative to the workspace root.",
        examples=["runbooks/restart.md"],
        min_length=1,
        max_length=4096,
    )
    max_lines: int = Field(default=120, description="Most lines to return.", ge=1, le=2000)


@dataclass(frozen=True)
class ReadPlan:
    """What the guard allowed."""

    path: str
    max_lines: int


@dataclass(frozen=True)
class _Head:
    """The lines that are shown, cleaned."""

    lines: tuple[str, ...]
    whole: bool
    """Nothing of the file is missing."""
    cut_in_line: bool = False
    """The last line shown is not all there."""


def guard(arguments: ReadFileArguments, context: OpsContext, refuse: Refuse) -> ReadPlan:
    """Allow a path that may be opened."""
    return ReadPlan(guard_file(arguments.path, context.workspace, refuse), arguments.max_lines)


async def run(plan: ReadPlan, context: OpsContext, refuse: Refuse) -> Result:
    """Read the head of the file, and say what is not shown."""
    with context.workspace.open(plan.path, refuse) as stream:
        size = os.fstat(stream.fileno()).st_size
        data = stream.read(SNIFF_BYTES)
        why_not_text = _why_not_text(data)
        if why_not_text is not None:
            return stopped(PATH_BINARY, f"'{one_line(plan.path, 80)}' {why_not_text}, {size} bytes")
        head = _head(data.removeprefix(codecs.BOM_UTF8), plan.max_lines, more=len(data) < size)
        if head.whole:
            return executed("\n".join(head.lines) or "[the file is empty]", lines=len(head.lines), size=size)
        total = _count_lines(data, stream) if size <= COUNT_BYTES else None
    note = _what_is_missing(plan.path, head, total, size)
    return executed("\n".join([*head.lines, note]), cut_at_source=size, lines=total, size=size)


def _why_not_text(data: bytes) -> str | None:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "is UTF-16 and not UTF-8"
    return "is a binary file" if b"\0" in data else None


def _head(data: bytes, max_lines: int, *, more: bool) -> _Head:
    """Return as many whole lines as fit; lines end at LF only, and a CR before it is dropped."""
    lines = codecs.getincrementaldecoder("utf-8")("replace").decode(data, final=not more).split("\n")
    unfinished = lines.pop()
    if unfinished and not more:
        lines.append(unfinished)
    shown: list[str] = []
    room = TEXT_BYTES
    for line in lines[:max_lines]:
        cleaned = clean(line.removesuffix("\r"))
        room -= len(cleaned.encode()) + 1
        if room < 0:
            break
        shown.append(cleaned)
    if not shown and (lines or unfinished):
        start = clean((lines or [unfinished])[0]).encode()[:TEXT_BYTES].decode(errors="ignore")
        return _Head((start,), whole=False, cut_in_line=True)
    return _Head(tuple(shown), whole=len(shown) == len(lines) and not more)


def _count_lines(head: bytes, rest: BinaryIO) -> int:
    total, last = head.count(b"\n"), head
    while chunk := rest.read(1024 * 1024):
        total, last = total + chunk.count(b"\n"), chunk
    return total + (not last.endswith(b"\n"))


def _what_is_missing(path: str, head: _Head, total: int | None, size: int) -> str:
    shown = len(head.lines)
    of = f"of {total}" if total is not None else f"of a file of {size} bytes, too large to count its lines"
    if head.cut_in_line:
        return f"[the first {len(head.lines[0])} characters of line 1 {of}; search_files finds what is further on]"
    return f"[lines 1-{shown} {of}; go on with run_shell: tail -n +{shown + 1} {shlex.quote(one_line(path, 200))}]"


READ_FILE = Tool(
    name="read_file",
    description=(
        "Read a text file of the workspace: its first max_lines lines, at most 8 KB. "
        "Secret files, folders, links that lead outside and binary files are refused."
    ),
    arguments=ReadFileArguments,
    guard=guard,
    run=run,
    classification=ToolClass.READ_ONLY,
)
