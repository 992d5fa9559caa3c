"""Programs that are what the option tables were written for, asked once each."""

import subprocess
from pathlib import Path

from mcp_ops.ops.tools.child import Command, Limits, bare_environment, run_child
from mcp_ops.ops.trusted import trusted_program

_ROOT = Path("/")
_asked: dict[tuple[str, str], Path | str] = {}


async def gnu_program(name: str, package: str) -> Path | str:
    """Return the absolute path of a program, or in a sentence why it is not used.

    Args:
        name: Bare name.
        package: What the first line of `--version` must hold, such as `GNU coreutils`.
    """
    if (name, package) not in _asked:
        _asked[name, package] = await _ask(name, package)
    return _asked[name, package]


async def _ask(name: str, package: str) -> Path | str:
    path = trusted_program(name)
    if path is None:
        return f"{name} is not installed"
    try:
        ended = await run_child(Command(path, ("--version",), _ROOT, bare_environment(_ROOT), limits=Limits(seconds=5)))
    except (OSError, subprocess.SubprocessError) as error:
        return f"{name} cannot be started: {error}"
    first_line = ended.stdout.partition(b"\n")[0].decode("utf-8", "replace")
    if ended.exit_code != 0 or package not in first_line:
        return f"{name} on this machine is not from {package}"
    return path
