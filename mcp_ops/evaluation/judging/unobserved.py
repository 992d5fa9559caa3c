"""Expectations that are written and that nothing in the run could have observed: an error of the line, not a pass."""

from mcp_ops.evaluation.outcome import Problem
from mcp_ops.evaluation.wording import Path, show_path


def unobserved(path: Path, why: str) -> Problem:
    """Return the problem of an expectation that nothing here could have observed."""
    where = show_path(path)
    return Problem("line", f"{where} is written, and nothing here could have observed it: {why}", where)
