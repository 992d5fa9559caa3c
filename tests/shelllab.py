"""The lab: a workspace with everything in it that a command can go wrong on, and eyes on all of it."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from calls import Reply, ask

from mcp_ops.gate import Denied, Refuse
from mcp_ops.ops.context import OpsContext
from mcp_ops.ops.guards.shell import ShellPlan, guard_command
from mcp_ops.ops.tools.run_shell import RUN_SHELL
from mcp_ops.ops.workspace import Workspace

needs_gnu = pytest.mark.skipif(
    sys.platform != "linux", reason="the lab is built, and its commands are run, with GNU programs"
)

DATA = Path(__file__).parent / "data"
SECRET = "SECRET-CANARY-7f3a"
OUTSIDE = "OUTSIDE-CANARY-91bc"


def lines(name: str) -> list[dict[str, Any]]:
    """Return the objects of a data file."""
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").split("\n") if line]


def commands() -> Iterator[tuple[str, str]]:
    """Yield every command of our own list with the rule that denies it, or with `allowed`."""
    rule = ""
    for line in (DATA / "shell_commands.txt").read_text("utf-8").split("\n")[:-1]:
        if line.startswith("== "):
            rule = line.removeprefix("== ")
        else:
            yield rule, line


def build_lab(folder: Path) -> Path:
    """Build the lab below `folder`; return its workspace."""
    subprocess.run(
        ["bash", DATA / "lab.sh", folder / "lab"], check=True, stdin=subprocess.DEVNULL, env={"PATH": os.defpath}
    )
    return folder / "lab" / "ws"


def witness(ws: Path) -> dict[str, tuple[int, ...]]:
    """Return what the file system knows of every file of the lab: any write, creation or removal shows."""
    return dict(_states(ws.parent))


def _states(folder: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            yield (
                entry.path,
                (
                    status.st_ino,
                    status.st_mode,
                    status.st_nlink,
                    status.st_size,
                    status.st_mtime_ns,
                    status.st_ctime_ns,
                ),
            )
            if entry.is_dir(follow_symlinks=False):
                yield from _states(Path(entry.path))


async def shell(ws: Path, command: str, **policy: Any) -> Reply:
    """Give a command to `run_shell`."""
    return await ask(RUN_SHELL, OpsContext(Workspace(ws, **policy)), {"command": command})


def judge(ws: Path, command: str, *off: str, **policy: Any) -> str:
    """Return the rule that refuses a command, or the arguments that may run, quoted."""
    try:
        plan = plan_of(ws, command, *off, **policy)
    except Denied as denied:
        return denied.rule.name
    return shlex.join((plan.program, *plan.arguments))


def plan_of(ws: Path, command: str, *off: str, **policy: Any) -> ShellPlan:
    """Return what the guard allows, with the rules `off` switched off."""
    return guard_command(command, Workspace(ws, **policy), Refuse(frozenset(off)))


def unguarded(ws: Path, argv: list[str]) -> tuple[int, bytes]:
    """Run a harmless command without a guard; return exit code and output."""
    environment = {"PATH": os.defpath, "LANG": "C.UTF-8", "TZ": "UTC", "HOME": str(ws)}
    done = subprocess.run(argv, cwd=ws, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
    return done.returncode, done.stdout


def shown(reply: Reply) -> str:
    """Return the part of a reply that the program itself wrote to its output."""
    return re.split(r"\[(?:stderr\]|the first \d|no output|left out)", reply.text)[0]
