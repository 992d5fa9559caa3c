"""`run_shell`: one read-only program in the workspace, without a shell."""

import signal
from collections.abc import Iterable
from pathlib import Path

from pydantic import Field

from mcp_ops.gate import (
    MAX_REPLY_BYTES,
    TIME_LIMIT,
    Arguments,
    Refuse,
    Result,
    Tool,
    ToolClass,
    executed,
    stopped,
)
from mcp_ops.ops.context import OpsContext
from mcp_ops.ops.guards.shell import PROGRAMS, ShellPlan, guard_command
from mcp_ops.ops.guards.shell.rules import SHELL_KILLED, SHELL_UNAVAILABLE
from mcp_ops.ops.redaction import redact_text
from mcp_ops.ops.tools.child import Command, Ended, Limits, bare_environment, run_child
from mcp_ops.ops.tools.gnu import gnu_program
from mcp_ops.text import clean

LIMITS = Limits()
MAX_STDERR_BYTES = 1024
_NOWHERE = Path("/")
"""Where a program runs that takes no files: it reads none of the workspace either, whatever its words are."""
_NOTE_BYTES = 256
"""Room for the sentences about what is not shown."""


class RunShellArguments(Arguments):
    """Arguments of `run_shell`."""

    command: str = Field(
        description="One program with its arguments, as one would type it.",
        examples=["grep -rn 'timeout' runbooks", "find . -name '*.log' -size +1M", "tail -n 50 logs/app.log"],
    )


def guard(arguments: RunShellArguments, context: OpsContext, refuse: Refuse) -> ShellPlan:
    """Allow a command that only reads, and only inside the workspace."""
    return guard_command(arguments.command, context.workspace, refuse, context.allowed.programs)


async def run(plan: ShellPlan, context: OpsContext, refuse: Refuse) -> Result:
    """Run the program and return what it said, whatever its exit code."""
    program = context.allowed.programs.get(plan.program)
    path = "there is no table for it" if program is None else await gnu_program(program.name, program.package)
    if isinstance(path, str):
        return stopped(SHELL_UNAVAILABLE, f"{plan.program or 'nothing'} cannot run: {path}")
    root = context.workspace.root
    if program is None or program.takes_files:
        command = Command(path, plan.arguments, root, bare_environment(root), reads=root, limits=LIMITS)
    else:
        command = Command(path, plan.arguments, _NOWHERE, bare_environment(_NOWHERE), limits=LIMITS)
    ended = await run_child(command)
    if ended.timed_out:
        return stopped(TIME_LIMIT, f"{plan.program} did not finish within {LIMITS.seconds:g} seconds")
    if ended.signal is not None and not ended.flooded:
        return stopped(SHELL_KILLED, f"{plan.program} was ended by {signal.Signals(ended.signal).name}")
    return _reply(plan, ended)


def _reply(plan: ShellPlan, ended: Ended) -> Result:
    # Programs quote into their errors what they could not read; a secret file never gets so far, but be sure.
    errors = _first_bytes(redact_text(clean(ended.stderr.decode("utf-8", "replace"))), MAX_STDERR_BYTES)
    behind = [f"[stderr]\n{errors.rstrip()}"] if errors.strip() else []
    if plan.left_out:
        behind.append(f"[left out: {plan.left_out} names withheld (secret files, hard links, links that lead outside)]")
    output = clean(ended.stdout.decode("utf-8", "replace"))
    room = MAX_REPLY_BYTES - _NOTE_BYTES - sum(len(part.encode()) + 1 for part in behind)
    shown = _first_bytes(output, room)
    cut = len(shown) < len(output) or ended.stdout_bytes > LIMITS.kept_bytes
    if cut:
        more = "more than " if ended.flooded else ""
        behind.insert(0, f"[the first {len(shown.encode())} of {more}{ended.stdout_bytes} bytes; ask for less]")
    if not shown and not behind:
        behind.append(f"[no output, exit code {ended.exit_code}]")
    if behind and shown and not shown.endswith("\n"):
        shown += "\n"
    return executed(
        shown + "\n".join(behind),
        cut_at_source=ended.stdout_bytes if cut else None,
        exit_code=ended.exit_code,
        left_out=plan.left_out,
    )


def _first_bytes(text: str, most: int) -> str:
    return text.encode()[:most].decode("utf-8", "ignore")


def run_shell_tool(added: Iterable[str] = ()) -> Tool[RunShellArguments, OpsContext, ShellPlan]:
    """Return the tool as it describes itself where the operator added programs of these names."""
    programs = " ".join((*PROGRAMS, "(GNU)", *added))
    return Tool(
        name="run_shell",
        description=(
            f"Run one read-only program in the workspace: {programs}. "
            "There is no shell: no pipes, redirections, variables, command substitution, `;` or `&&`; one program a "
            "call. Quotes work and keep operators as text (grep -E 'a|b' FILE); globs such as logs/*.log are expanded. "
            "Paths are relative to the workspace and stay inside it. Options that write, run a program, follow links "
            "or wait (sort -o, find -exec, ls -L, tail -f) are refused, secret files cannot be opened. "
            "At most 10 seconds and 8 KB of output; stderr and exit code come with it."
        ),
        arguments=RunShellArguments,
        guard=guard,
        run=run,
        classification=ToolClass.READ_ONLY,
    )


RUN_SHELL = run_shell_tool()
