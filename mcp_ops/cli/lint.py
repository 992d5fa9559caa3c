"""`mcp-ops lint`."""

import argparse
import sys
from pathlib import Path

from mcp_ops.cli.errors import CommandError, reason
from mcp_ops.evaluation.line.parse import read_file
from mcp_ops.evaluation.line.scenario import BadLine
from mcp_ops.text import one_line


def run(args: argparse.Namespace) -> int:
    """Print `file:line:column: sentence` for every bad line; 1 when there is one."""
    lines, bad = 0, 0
    for file in args.files:
        try:
            for line in read_file(file):
                lines += 1
                if isinstance(line, BadLine):
                    bad += 1
                    sys.stdout.write(f"{shown_path(file)}:{line.line}:{line.column}: {one_line(line.message, 1000)}\n")
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {reason(error)}") from None
    if not bad:
        files = "1 file" if len(args.files) == 1 else f"{len(args.files)} files"
        sys.stdout.write(f"{files} with {lines} scenario{'' if lines == 1 else 's'}: no problem found\n")
    return 1 if bad else 0


def shown_path(path: Path) -> str:
    """Return a path that begins a line: one whose name looks like a CI runner's command is not obeyed."""
    text = one_line(str(path), 400)
    return text if text[:1].isalnum() or text[:1] in "./_" else f"./{text}"
