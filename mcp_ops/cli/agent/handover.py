"""Keeps GitHub's credentials out of the process that talks to a model.

A process cannot take a variable out of the environment that it was started with: `/proc/self/environ` keeps it. So it
puts those variables into a file in memory that has no name, and starts itself anew without them. Only the server that
needs them is given the file; then it is closed.
"""

import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from mcp_ops.cli import with_env

PREFIX = "GITHUB_"
"""Variables that begin so are the GitHub server's and nobody else's."""
DROPPED = ("GH_TOKEN", "GH_ENTERPRISE_TOKEN")
"""Tokens of GitHub's own command line. They are handed to nobody."""
DESCRIPTOR = "MCP_OPS_AGENT_SERVER_VARIABLES"
"""Variable that names the descriptor of the file, in the process that was started anew."""


def hand_over(words: Sequence[str], environ: Mapping[str, str]) -> None:
    """Start this process anew without GitHub's variables, if it has some; it then has their file.

    Args:
        words: The arguments of `mcp-ops`.
        environ: The environment of this process.
    """
    rest = {name: value for name, value in environ.items() if not name.startswith(PREFIX) and name not in DROPPED}
    if len(rest) == len(environ):
        return
    descriptor = _nameless_file()
    variables = {name: value for name, value in environ.items() if name.startswith(PREFIX)}
    os.write(descriptor, json.dumps(variables).encode("utf-8"))
    os.set_inheritable(descriptor, True)
    rest[DESCRIPTOR] = str(descriptor)
    sys.stdout.flush()
    # Not by `-m` alone, which would import from the current folder.
    command = [sys.executable, "-P", "-m", "mcp_ops.cli", *words]
    os.execve(sys.executable, command, rest)  # noqa: S606 - the same program, by an argument list


def handed_over(environ: Mapping[str, str]) -> int | None:
    """Return the descriptor of the file of variables that this process was started with, or None."""
    text = environ.get(DESCRIPTOR, "")
    if not (text.isascii() and text.isdigit()):
        return None
    try:
        os.set_inheritable(int(text), False)
    except OSError:
        return None
    return int(text)


def with_variables(command: Sequence[str], descriptor: int) -> list[str]:
    """Return the command that starts a program with the variables of a file."""
    return [sys.executable, "-I", "-S", str(Path(with_env.__file__)), str(descriptor), *command]


def _nameless_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("mcp-ops-server-variables")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
