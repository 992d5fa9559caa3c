"""The guard of a path argument: what may be opened, decided on names and types alone."""

from mcp_ops.gate import ARGS_INVALID, Refuse
from mcp_ops.ops.workspace import Workspace
from mcp_ops.text import one_line

MAX_NAME_BYTES = 255
"""Longest name of one file or folder on any file system that matters here."""


def guard_file(given: str, workspace: Workspace, refuse: Refuse) -> str:
    """Return the path when it names a file, or nothing, that may be opened.

    A missing path passes: only opening it can tell, and the answer is then a failure and no denial.

    Raises:
        Denied: `args.invalid`, `path.outside`, `path.secret`, `path.special`, `path.hardlink`.
    """
    for component in given.split("/"):
        if len(component.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
            reason = f"the name '{one_line(component, 40)}' in 'path' is longer than {MAX_NAME_BYTES} bytes"
            refuse(ARGS_INVALID, reason)
    found = workspace.look(given, refuse)
    workspace.refuse_unreadable(given, found, refuse)
    return given
