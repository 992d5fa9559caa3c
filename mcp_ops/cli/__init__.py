"""The console script `mcp-ops`.

Each subcommand is a module of this package with `run(args) -> int`, imported when it is asked for: `mcp-ops --help`
imports neither mcp nor langgraph.
"""

import importlib
import os
import sys
from collections.abc import Sequence

from mcp_ops.cli.arguments import build_parser
from mcp_ops.cli.errors import CommandError
from mcp_ops.text import one_line

INTERRUPTED = 130
BROKEN_PIPE = 141

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; return its exit status.

    0: done. 1: done, and it found problems. 2: the command line is wrong, in one sentence on stderr. 130: Ctrl-C.
    """
    args = build_parser().parse_args(argv)
    args.words = sys.argv[1:] if argv is None else list(argv)
    try:
        command = importlib.import_module(f"mcp_ops.cli.{args.command}")
        status: int = command.run(args)
        sys.stdout.flush()
    except CommandError as error:
        complain(str(error))
        return error.status
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The interpreter flushes stdout once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return status


def complain(sentence: str) -> None:
    """Print one sentence on stderr."""
    sys.stderr.write(f"mcp-ops: {one_line(sentence, 1000)}\n")
