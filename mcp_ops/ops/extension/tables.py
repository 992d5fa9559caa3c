"""From the entries of an operator's file to the tables that the guards use."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_ops.ops.extension.model import ExtensionFile, KindEntry, ProgramEntry, SecretNameEntry, Wrong
from mcp_ops.ops.extension.never import refuse_kind, refuse_program
from mcp_ops.ops.guards.allowed import SHIPPED, Allowed
from mcp_ops.ops.guards.kubectl import SHIPPED_SPELLINGS
from mcp_ops.ops.guards.secret_names import DEFAULT, SecretName, SecretNames
from mcp_ops.ops.guards.shell.options import (
    Access,
    Operands,
    Option,
    Program,
    Value,
    flag,
    forbidden,
    may_take,
    takes,
)
from mcp_ops.ops.trusted import trusted_program

_OPERANDS = {
    "files": Operands.FILES,
    "one_file": Operands.ONE_FILE,
    "text_and_files": Operands.TEXT_AND_FILES,
    "texts": Operands.TEXTS,
    "none": Operands.NONE,
}
_READS = {"names": Access.NAMES, "part": Access.CONTENT, "all": Access.WHOLE}
_HINT = "Leave the option out."


@dataclass(frozen=True)
class Example:
    """A call by which an addition proves itself."""

    id: str
    """`cut-attack-1`."""
    tool: str
    arguments: Mapping[str, Any]
    rule: str | None
    """The rule that denies it; None when it is harmless."""
    line: int
    """Where it stands in the file."""


@dataclass(frozen=True)
class Extension:
    """What an operator added. Every example was judged: the attacks are denied and the harmless ones allowed."""

    path: Path
    allowed: Allowed
    """The shipped tables and the additions."""
    secret_names: SecretNames
    programs: tuple[str, ...]
    """Names of the programs that were added."""
    kinds: tuple[str, ...]
    """Names of the kinds that were added."""
    files: Mapping[str, str]
    """The workspace of the examples: text by path."""
    examples: tuple[Example, ...] = ()


def program_of(entry: ProgramEntry) -> Program:
    """Return the option table of an entry.

    Raises:
        Wrong: The program can never be added, or an option stands in the table twice.
    """
    refuse_program(entry.name, trusted_program(entry.name))
    options = tuple(_options(entry))
    spelled = [name for option in options for name in (*option.letters, *option.names)]
    twice = next((name for name in spelled if spelled.count(name) > 1), None)
    if twice is not None:
        raise Wrong(f"the option {twice!r} of {entry.name} stands in the table twice")
    by_file = entry.operands in ("files", "one_file", "text_and_files")
    return Program(
        entry.name,
        entry.package,
        options,
        _OPERANDS[entry.operands],
        _READS[entry.reads],
        reads_stdin=entry.stdin and by_file,
        takes_folders=entry.reads == "names",
        dotted=True,
    )


def _options(entry: ProgramEntry) -> Iterator[Option]:
    yield from map(flag, entry.flags)
    yield from map(takes, entry.values)
    yield from map(may_take, entry.glued)
    for names in entry.paths:
        yield takes(names, Value.FILE)
    for names, why in entry.refused.items():
        yield forbidden(names, why, _HINT)


def spellings_of(entry: KindEntry) -> tuple[str, tuple[str, ...]]:
    """Return the name under which kubectl is asked for a kind, and its other spellings.

    Raises:
        Wrong: The kind can never be added, or a spelling is known already.
    """
    plain = (entry.plural, entry.singular, *entry.short)
    for spelling in plain:
        refuse_kind(spelling)
        if spelling in SHIPPED_SPELLINGS:
            raise Wrong(f"{spelling} is a kind already; leave it out")
    if not entry.group:
        return entry.plural, plain[1:]
    return f"{entry.plural}.{entry.group}", (*plain, f"{entry.singular}.{entry.group}")


def extended(file: ExtensionFile, path: Path) -> Extension:
    """Return the shipped tables with all entries added; their examples are not judged yet.

    Raises:
        Wrong: Two entries have one name. What `program_of` and `spellings_of` raise.
    """
    programs: dict[str, Program] = {}
    kinds: dict[str, tuple[str, ...]] = {}
    for entry in file.program:
        if entry.name in programs:
            raise Wrong(f"{entry.name} stands in two tables [[program]]; write one")
        programs[entry.name] = program_of(entry)
    known: set[str] = set()
    for kind in file.kind:
        plural, others = spellings_of(kind)
        both = known & {plural, *others}
        if both:
            raise Wrong(f"{min(both)} stands in two tables [[kind]]; write one")
        known |= {plural, *others}
        kinds[plural] = others
    allowed = Allowed({**SHIPPED.programs, **programs}, {**SHIPPED.kinds, **kinds})
    return Extension(path, allowed, with_names(file.secret_name), tuple(programs), tuple(kinds), file.files)


def with_names(entries: list[SecretNameEntry]) -> SecretNames:
    """Return the shipped secret names and those of the entries."""
    added = (SecretName(entry.pattern, tuple(entry.but_not)) for entry in entries)
    return SecretNames((*DEFAULT.names, *added), DEFAULT.copy_suffixes)
