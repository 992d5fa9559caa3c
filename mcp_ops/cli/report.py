"""`mcp-ops report`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from mcp_ops.cli import complain
from mcp_ops.cli.errors import CommandError, reason
from mcp_ops.trace.detail import Detail
from mcp_ops.trace.html import render_page
from mcp_ops.trace.reader import Trace, read_trace


def run(args: argparse.Namespace) -> int:
    """Write the page; 1 when a trace is damaged, which its page says too."""
    traces = [read(path) for path in args.runs]
    write_page(traces, args.title, args.output, detail=args.detail)
    damaged = [f"{trace.path}: {problem}" for trace in traces for problem in trace.problems]
    if damaged:
        raise CommandError(f"{args.output} was written, but a trace is damaged: {'; '.join(damaged)}", status=1)
    return 0


def read(path: Path) -> Trace:
    """Read a run's trace.

    Raises:
        CommandError: It cannot be read.
    """
    try:
        return read_trace(path)
    except OSError as error:
        raise CommandError(f"{path} is no run: {reason(error)}; name a run's folder or its trace.jsonl") from None


def write_page(traces: Sequence[Trace], title: str, output: Path, *, detail: Detail | None = "full") -> None:
    """Write the page of `traces` and say where it is; `detail` is that of `render_page`.

    Raises:
        CommandError: The file cannot be written.
    """
    try:
        output.write_text(render_page(traces, title, detail=detail), encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{output} cannot be written: {reason(error)}") from None
    for trace in traces:
        if trace.finish is None:
            torn = "; its last line is cut off and was left out" if trace.torn else ""
            complain(f"{trace.path}: the run did not finish{torn}")
    complain(f"wrote {output} ({len(traces)} run{'' if len(traces) == 1 else 's'})")
