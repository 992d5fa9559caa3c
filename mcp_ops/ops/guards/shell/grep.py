"""The arguments of grep: a pattern, files, and what a recursion stands for."""

from collections.abc import Sequence

from mcp_ops.gate import Refuse
from mcp_ops.ops.guards.shell.files import FileGuard, Files
from mcp_ops.ops.guards.shell.getopt import Given, Parsed
from mcp_ops.ops.guards.shell.regex import BASIC, EXTENDED, MAX_STATES_OF_GREP, check_regex
from mcp_ops.ops.guards.shell.rules import SHELL_OPERAND, SHELL_STDIN
from mcp_ops.ops.guards.shell.tables.grep import GREP
from mcp_ops.ops.guards.shell.tree import TreeReader
from mcp_ops.ops.guards.shell.words import Word
from mcp_ops.ops.rules import PATH_HARDLINK, PATH_SECRET
from mcp_ops.ops.walk import Found
from mcp_ops.text import one_line

_DIALECTS = {"extended-regexp": EXTENDED, "basic-regexp": BASIC, "fixed-strings": None, "perl-regexp": None}
"""None: no counts to fear. Fixed strings have none, and PCRE gives up by itself."""

_ON_FOLDERS = ("recursive", "dereference-recursive", "directories")
"""Options that say what becomes of a folder; the last one counts."""


def guard_grep(parsed: Parsed, files: FileGuard, refuse: Refuse) -> Files:
    """Judge pattern and files, and return the arguments behind the options; a recursion becomes the files it covers.

    Raises:
        Denied: `shell.operand`, `shell.stdin`, `shell.regex`, `shell.recursion`, `shell.glob`, `path.*`.
    """
    operands = list(parsed.operands)
    patterns = [given.value or "" for given in parsed.options if given.option.key == "regexp"]
    first: list[Word] = []
    if not patterns:
        first = operands[:1]
        del operands[:1]
        patterns = [word.text for word in first]
    if parsed.has("help", "version"):
        return Files(tuple(word.text for word in (*first, *operands)))
    if not patterns:
        refuse(SHELL_OPERAND, "grep needs a pattern and a file", "Write grep PATTERN FILE.")
    _check_patterns(parsed, patterns, refuse)
    found = _files(parsed, operands, files, refuse)
    return Files((*(word.text for word in first), *found.names), found.left_out)


def _check_patterns(parsed: Parsed, patterns: Sequence[str], refuse: Refuse) -> None:
    chosen = {given.option.key for given in parsed.options} & _DIALECTS.keys()
    for key in chosen or {"basic-regexp"}:
        dialect = _DIALECTS[key]
        if dialect is not None:
            check_regex("\n".join(patterns), dialect, MAX_STATES_OF_GREP, refuse)


def _files(parsed: Parsed, operands: Sequence[Word], files: FileGuard, refuse: Refuse) -> Files:
    on_folders = [given for given in parsed.options if given.option.key in _ON_FOLDERS]
    recursive = bool(on_folders) and _recurses(on_folders[-1])
    if any(word.text == "-" for word in operands) or not (operands or recursive):
        refuse(SHELL_STDIN, "grep would read standard input, and there is none", "Write grep PATTERN FILE.")
    expanded = files.expand(operands)
    if not recursive or parsed.has("dereference-recursive"):
        return expanded
    trees = _Trees(parsed, files, refuse)
    for operand, found in zip(expanded.names, expanded.found, strict=True):
        trees.read(operand, found)
    if not expanded.names:
        trees.read("", files.check("."))
    if not trees.folders:
        return expanded
    folders = expanded.names or (".",)
    if not trees.names and (trees.secrets or trees.hardlinks):
        shown = one_line(" ".join(folders), 60)
        rule = PATH_SECRET if trees.secrets else PATH_HARDLINK
        refuse(rule, f"below {shown!r} are only files that may not be read ({trees.secrets + trees.hardlinks})")
    # grep itself never walks: where there is no file to name, it gets the folders and skips them.
    instead = Given(GREP.by_letter["H"], "-H") if trees.names else Given(GREP.by_letter["d"], "--directories", "skip")
    parsed.options = [instead, *(given for given in parsed.options if given not in on_folders)]
    return Files(tuple(trees.names) or folders, expanded.left_out + trees.secrets + trees.hardlinks)


class _Trees:
    """What a recursion covers, over all operands."""

    def __init__(self, parsed: Parsed, files: FileGuard, refuse: Refuse) -> None:
        skipped = [given.value or "" for given in parsed.options if given.option.key == "exclude-dir"]
        self._reader = TreeReader(files.workspace, skipped, refuse)
        self.names: list[str] = []
        self.folders = self.secrets = self.hardlinks = 0

    def read(self, operand: str, found: Found) -> None:
        if found.kind != "directory":
            self.names.append(operand)
            return
        tree = self._reader.read(operand, found)
        self.folders += 1
        self.names += tree.names
        self.secrets += tree.secrets
        self.hardlinks += tree.hardlinks


def _recurses(given: Given) -> bool:
    value = given.value or ""
    return given.option.key != "directories" or (value != "" and "recurse".startswith(value))
