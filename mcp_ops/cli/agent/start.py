"""From the command line and the environment to a run, and from its end to the exit status."""

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from mcp_ops.agent.session import AgentOutput
from mcp_ops.cli import INTERRUPTED
from mcp_ops.cli.agent.asking import AtTheCommandLine
from mcp_ops.cli.agent.handover import handed_over
from mcp_ops.cli.agent.interrupts import Interrupts
from mcp_ops.cli.agent.model import choose_model
from mcp_ops.cli.agent.progress import WatchedLedger, progress_on
from mcp_ops.cli.agent.servers import read_servers, targets_of
from mcp_ops.cli.agent.terminal import open_terminal
from mcp_ops.cli.agent.work import Work
from mcp_ops.cli.answer import print_answer
from mcp_ops.cli.errors import CommandError, reason
from mcp_ops.evaluation.session.rules import CONFIRM_DECLINED
from mcp_ops.evaluation.watching.canaries import collect, environment_canaries
from mcp_ops.trace.events import ConfirmationGiven, Payload
from mcp_ops.trace.writer import TraceWriter

NO_ANSWER, NOBODY_ASKED = 1, 3


def start(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Run the agent on the task of the command line; return the exit status.

    Raises:
        CommandError: Command line or environment are wrong.
        KeyboardInterrupt: Ctrl-C ended the run.
    """
    # Else Python prints what the SDK logs, a foreign server's words among it, between a question and its answer.
    logging.getLogger().addHandler(logging.NullHandler())
    chosen = choose_model(environ)
    variables = handed_over(environ)
    targets = targets_of(read_servers(args.server or ()), variables)
    redactor = collect((), (), environment_canaries(environ, MODEL_API_KEY=chosen.key)).redactor
    progress, terminal = progress_on(sys.stderr, environ), open_terminal()
    with _open_writer(args.runs) as writer:
        ledger = WatchedLedger(writer, progress)
        ledger.set_redactor(redactor)
        work = Work(
            task=args.task,
            model=chosen.model,
            targets=targets,
            variables=variables,
            confirm=AtTheCommandLine(args.yes, frozenset(args.yes_tool), terminal, progress.paused),
            ledger=ledger,
            progress=progress,
            max_calls=args.max_steps,
            max_writes=args.max_writes,
            tool_classes=dict(args.tool_class),
        )
        interrupts = Interrupts(terminal)
        try:
            output = asyncio.run(work.run(interrupts))
        except asyncio.CancelledError:
            return _interrupted(interrupts)
    calls = work.session.records if work.session is not None else ()
    further = {"calls": len(calls), "declined": sum(call.rule == CONFIRM_DECLINED.name for call in calls)}
    print_answer(output, writer, redactor, as_json=args.json, further=further)
    return _status(output, ledger.events)


def _open_writer(folder: Path) -> TraceWriter:
    try:
        return TraceWriter(folder)
    except OSError as error:
        raise CommandError(f"no trace can be written to {folder}: {reason(error)}") from None


def _interrupted(interrupts: Interrupts) -> int:
    """Return the status of a run that a signal ended, as a shell would say it."""
    if interrupts.number in (None, signal.SIGINT):
        raise KeyboardInterrupt
    return INTERRUPTED - signal.SIGINT + (interrupts.number or 0)


def _status(output: AgentOutput, events: Sequence[Payload]) -> int:
    if output.finish != "answer":
        return NO_ANSWER
    unasked = (event for event in events if isinstance(event, ConfirmationGiven) and event.by == "nobody")
    return NOBODY_ASKED if any(unasked) else 0
