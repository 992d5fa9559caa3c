"""The guard of `search_files`: RE2 patterns within limits, globs that stay inside."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import re2

from mcp_ops.gate import Refuse
from mcp_ops.ops.guards.globs import Glob, GlobError, compile_glob, leads_outside, split_folder
from mcp_ops.ops.rules import SEARCH_GLOB, SEARCH_PATTERN
from mcp_ops.ops.workspace import Workspace
from mcp_ops.text import one_line

MAX_PATTERN_CHARACTERS = 2000
MAX_PROGRAM = 5000
"""Most RE2 instructions of a pattern: time is at worst text length times program length."""


@dataclass(frozen=True)
class SearchPlan:
    """What the guard allowed."""

    regexp: Any
    glob: Glob
    folder: Path
    """Where the search begins: the workspace root."""
    prefix: str
    """What stands in front of the paths that are shown; empty for the root."""
    glob_text: str
    """The glob as given."""

    def shown(self, path: str) -> str:
        """Return a path below `folder` as the model would write it."""
        return f"{self.prefix.rstrip('/')}/{path}" if self.prefix else path


def guard_search(pattern: str, glob: str, workspace: Workspace, refuse: Refuse) -> SearchPlan:
    """Compile both arguments.

    Raises:
        Denied: `search.pattern`, `search.glob`.
    """
    regexp = _compile_pattern(pattern, refuse)
    folder, prefix = workspace.root, ""
    inside = glob
    outside = leads_outside(glob)
    if outside is not None:
        refuse(SEARCH_GLOB, f"the glob '{one_line(glob, 80)}' {outside}")
        prefix, inside = split_folder(glob.replace("\0", ""))
        folder = Path(os.path.realpath(workspace.root / prefix))
    try:
        compiled = compile_glob(inside)
    except GlobError as error:
        refuse(SEARCH_GLOB, f"the glob '{one_line(glob, 80)}' {error}")
        compiled = compile_glob("**")
    return SearchPlan(regexp, compiled, folder, prefix, glob)


def _compile_pattern(pattern: str, refuse: Refuse) -> Any:
    options = re2.Options()
    options.log_errors, options.never_capture = False, True
    encoded = pattern.encode("utf-8", "replace")
    try:
        if len(pattern) > MAX_PATTERN_CHARACTERS:
            raise re2.error(f"pattern too large: {len(pattern)} characters, {MAX_PATTERN_CHARACTERS} at most".encode())
        regexp = re2.compile(encoded, options)
        if regexp.programsize > MAX_PROGRAM:
            raise re2.error(f"pattern too large: {regexp.programsize} RE2 instructions, {MAX_PROGRAM} at most".encode())
    except re2.error as error:
        message = error.args[0].decode("utf-8", "replace")
        refuse(SEARCH_PATTERN, f"the pattern '{one_line(pattern, 80)}' cannot be used: {one_line(message)}")
        regexp = re2.compile(re2.escape(encoded), options)
    return regexp
