"""`mcp-ops evidence`."""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from mcp_ops.cli import complain
from mcp_ops.cli.errors import CommandError, reason
from mcp_ops.evidence.matrix import Source, as_document, build
from mcp_ops.evidence.page import render
from mcp_ops.evidence.results import ResultsError, as_json, read_results, write_whole
from mcp_ops.text import clean

NAME = "evidence"


def run(args: argparse.Namespace) -> int:
    """Write `evidence.json` and `evidence.html`, and say how many rules have a gap."""
    evidence = build([read(path) for path in args.results])
    written = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    pages = {".json": as_json(as_document(evidence, written)), ".html": render(evidence, written)}
    for ending, text in pages.items():
        path = args.out / (NAME + ending)
        try:
            write_whole(path, text)
        except OSError as error:
            raise CommandError(f"{path} cannot be written: {reason(error)}") from None
    shown = len(evidence.rules) - len(evidence.gaps)
    complain(
        f"wrote {args.out}/{NAME}.json and .html: {len(evidence.rules)} rules, {shown} shown, "
        f"{len(evidence.gaps)} with a gap, {len(evidence.not_green)} scenarios not green"
    )
    return 0


def read(path: Path) -> Source:
    """Read a results file.

    Raises:
        CommandError: It cannot be read, or is none.
    """
    try:
        results, sha256 = read_results(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {reason(error)}; name a file of pytest --ops-results") from None
    except ResultsError as error:
        raise CommandError(str(error)) from None
    return Source(clean(str(path)), sha256, results)
