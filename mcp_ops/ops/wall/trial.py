"""Whether a wall holds, tried on real children: what a version promises is not what a machine does."""

import subprocess
from functools import partial
from pathlib import Path

from mcp_ops.ops.trusted import trusted_program
from mcp_ops.ops.wall.base import Start, Wall
from mcp_ops.ops.wall.network import confine, isolation

_INSIDE = Path(__file__)
_OUTSIDE = _INSIDE.parent.parent / "trusted.py"
_SECONDS = 30
"""A child that takes so long on a busy machine is no sign of a missing wall before that."""


def holds(wall: Wall) -> bool:
    """Whether a child behind a wall reads what it may, and neither reads nor writes anything else."""
    try:
        read = _run(wall, "cat", str(_INSIDE), str(_OUTSIDE))
        wrote = _run(wall, "uniq", str(_INSIDE), "/dev/null")
    except (OSError, subprocess.SubprocessError):
        return False
    return read.stdout == _INSIDE.read_bytes() and read.returncode == 1 and wrote.returncode == 1


def _run(wall: Wall, program: str, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    path = trusted_program(program)
    if path is None:
        raise FileNotFoundError(program)
    with wall.around(Start(path, arguments, Path("/"), _INSIDE.parent)) as walled:
        return subprocess.run(
            [walled.program.name, *walled.arguments],
            executable=walled.program,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={"PATH": "/usr/bin:/bin"},
            cwd="/",
            timeout=_SECONDS,
            check=False,
            preexec_fn=partial(confine, isolation(), walled.enter),
        )
