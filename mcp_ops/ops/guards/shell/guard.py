"""The guard of `run_shell`: from a command line to the one program and the arguments that may run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mcp_ops.gate import Refuse
from mcp_ops.ops.guards.shell.files import FileGuard, Files
from mcp_ops.ops.guards.shell.find import guard_find
from mcp_ops.ops.guards.shell.getopt import Given, Parsed, parse
from mcp_ops.ops.guards.shell.grep import guard_grep
from mcp_ops.ops.guards.shell.options import Operands, Program, Value
from mcp_ops.ops.guards.shell.programs import choose_program
from mcp_ops.ops.guards.shell.rules import SHELL_OPERAND, SHELL_STDIN
from mcp_ops.ops.guards.shell.tables import PROGRAMS
from mcp_ops.ops.guards.shell.values import check_date, check_format
from mcp_ops.ops.guards.shell.words import Word, split_words
from mcp_ops.ops.walk import Found
from mcp_ops.ops.workspace import Workspace
from mcp_ops.text import one_line


@dataclass(frozen=True)
class ShellPlan:
    """What the guard allowed: this program with exactly these arguments."""

    program: str
    """Bare name."""
    arguments: tuple[str, ...]
    left_out: int = 0
    """Files that a glob or a recursion covers and that may not be read or shown."""


def guard_command(
    command: str, workspace: Workspace, refuse: Refuse, programs: Mapping[str, Program] = PROGRAMS
) -> ShellPlan:
    """Judge a command line. Reads names and types of files, opens none, runs nothing.

    Args:
        command: As the model wrote it.
        workspace: Where it would run.
        refuse: How rules say no.
        programs: Those that may run, by name.

    Raises:
        Denied: `shell.*` or `path.*`.
    """
    words = split_words(command, refuse)
    program = choose_program(words, programs, refuse)
    if program is None:
        return ShellPlan(words[0].text if words else "", tuple(word.text for word in words[1:]))
    files = FileGuard(workspace, program.access, refuse)
    if program.operands is Operands.EXPRESSION:
        found = guard_find(words[1:], files, refuse)
        return ShellPlan(program.name, found.names, found.left_out)
    parsed = parse(program, words[1:], refuse)
    parsed.options = [_check_value(given, program, files, refuse) for given in parsed.options]
    operands = _judge_operands(program, parsed, files, refuse)
    options = [word for given in parsed.options for word in given.words]
    behind = ("--", *operands.names) if operands.names else ()
    return ShellPlan(program.name, (*program.always, *options, *behind), operands.left_out)


def _check_value(given: Given, program: Program, files: FileGuard, refuse: Refuse) -> Given:
    """Judge the value of an option, and return the option as the program is to get it."""
    value = given.value or ""
    kind = given.option.value
    if kind is Value.FORMAT or (kind is Value.TIME_STYLE and "+" in value):
        check_format(value, refuse)
    elif kind is Value.DATE:
        check_date(value, refuse)
    elif kind is Value.FILE:
        _refuse_folder(program, value, files.check(value, variable=given.variable), refuse)
        return replace(given, value=_as_path(program, value))
    return given


def _judge_operands(program: Program, parsed: Parsed, files: FileGuard, refuse: Refuse) -> Files:
    if program.operands is Operands.DATE_FORMAT:
        return _date_format(parsed, refuse)
    if program.operands is Operands.PATTERN_AND_FILES:
        return guard_grep(parsed, files, refuse)
    if program.operands in (Operands.TEXTS, Operands.NONE):
        return _texts(program, parsed.operands, refuse)
    texts = 1 if program.operands is Operands.TEXT_AND_FILES else 0
    named = parsed.operands[texts:]
    reads_stdin = not named or any(word.text == "-" for word in named)
    if program.reads_stdin and reads_stdin and not parsed.has("help", "version"):
        example = f"Name the file: {program.name}{' TEXT' * texts} FILE."
        refuse(SHELL_STDIN, f"{program.name} would read standard input, and there is none", example)
    found = files.expand(named)
    for name, what in zip(found.names, found.found, strict=True):
        _refuse_folder(program, name, what, refuse)
    if program.operands is Operands.ONE_FILE and len(found.names) > 1:
        second = one_line(found.names[1], 60)
        hint = f"Name one file: {program.name} FILE."
        refuse(SHELL_OPERAND, f"{program.name} would write its result to the second file {second!r}", hint)
    names = (_as_path(program, name) for name in found.names)
    return Files((*(word.text for word in parsed.operands[:texts]), *names), found.left_out)


def _as_path(program: Program, name: str) -> str:
    """Return a name of a file so that the program can take it for nothing else."""
    return f"./{name}" if program.dotted and not name.startswith((".", "/")) else name


def _refuse_folder(program: Program, name: str, found: Found, refuse: Refuse) -> None:
    if found.kind == "directory" and not program.takes_folders:
        shown = one_line(name, 60)
        refuse(SHELL_OPERAND, f"{shown!r} is a folder, and {program.name} reads files only", "Name the files in it.")


def _texts(program: Program, words: Sequence[Word], refuse: Refuse) -> Files:
    if program.operands is Operands.NONE and words:
        shown = one_line(words[0].text, 60)
        refuse(SHELL_OPERAND, f"{program.name} takes no operand, and {shown!r} is one", f"Write {program.name} alone.")
    return Files(tuple(word.text for word in words))


def _date_format(parsed: Parsed, refuse: Refuse) -> Files:
    for word in parsed.operands:
        if word.text.startswith("+"):
            check_format(word.text, refuse)
        else:
            hint = "Show a time with -d: date -d '2026-01-01 12:00' +%s; a format begins with +."
            refuse(SHELL_OPERAND, f"date would set the clock to {one_line(word.text, 40)!r}", hint)
    return Files(tuple(word.text for word in parsed.operands))
