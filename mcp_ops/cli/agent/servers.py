"""The servers of `mcp-ops agent`: what `--server` says, and what environment each is started with."""

import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from mcp_ops.cli.agent.handover import with_variables
from mcp_ops.cli.errors import CommandError
from mcp_ops.evaluation.config import GITHUB_SERVER, OPS_SERVER
from mcp_ops.evaluation.session.connection import ServerTarget
from mcp_ops.evaluation.session.stdio import StdioServer

OWN = (GITHUB_SERVER, OPS_SERVER)
"""First words of `--server` that mean `mcp-ops serve`."""

_NAME = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9_-]{0,39})=(?P<command>.*)", re.DOTALL)


@dataclass(frozen=True)
class Wanted:
    """A server that was asked for."""

    name: str
    command: tuple[str, ...]
    """Of one of ours, the arguments of `mcp-ops serve`."""
    own: bool


def read_servers(texts: Sequence[str]) -> list[Wanted]:
    """Read what `--server` says: `github`, `ops ARGUMENT…`, or a command of somebody else's, with `NAME=` in front.

    Raises:
        CommandError: One is no command, or two have one name.
    """
    wanted: list[Wanted] = []
    for number, text in enumerate(texts or (GITHUB_SERVER,), start=1):
        wanted.append(_read(text, number))
        if wanted[-1].name in [each.name for each in wanted[:-1]]:
            raise CommandError(
                f"--server: two servers are called {wanted[-1].name}; write NAME=COMMAND for one of them"
            )
    return wanted


def _read(text: str, number: int) -> Wanted:
    if re.search(r"^(\w+=)?https?://", text.strip()):
        raise CommandError(f"--server {text}: it takes a command that serves MCP over stdin and stdout, no address")
    named = _NAME.fullmatch(text)
    try:
        command = tuple(shlex.split(named["command"] if named else text))
    except ValueError as error:
        raise CommandError(f"--server {text}: {str(error).lower()}") from None
    if not command:
        raise CommandError(f"--server {text!r} has no command; write for example --server github")
    own = named is None and command[0] in OWN
    if named and named["name"] in OWN:
        raise CommandError(f"--server {text}: {named['name']} is the name of a server that ships here; write another")
    name = command[0] if own else named["name"] if named else f"server{number}"
    return Wanted(name, command, own)


def targets_of(wanted: Sequence[Wanted], variables: int | None) -> list[ServerTarget]:
    """Return what to connect to. Each server's environment is `PATH`; the GitHub server's has GitHub's variables too.

    Args:
        wanted: The servers.
        variables: Descriptor of the file of GitHub's variables, or None.
    """
    return [ServerTarget(each.name, _started(each, variables), own=each.own, watched=False) for each in wanted]


def _started(wanted: Wanted, variables: int | None) -> StdioServer:
    environment = {"PATH": os.environ.get("PATH", os.defpath)}
    if not wanted.own:
        return StdioServer(wanted.command, env=environment)
    command = [sys.executable, "-P", "-m", "mcp_ops.cli", "serve", *wanted.command]
    if wanted.name != GITHUB_SERVER or variables is None:
        return StdioServer(command, env=environment)
    return StdioServer(with_variables(command, variables), env=environment, descriptors=(variables,))
