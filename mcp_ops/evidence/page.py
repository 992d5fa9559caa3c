"""Evidence as a page: gaps first, every text from results inert, no script and nothing to load."""

from collections.abc import Iterator, Mapping
from functools import cache

from jinja2 import Template

from mcp_ops import __version__
from mcp_ops.evidence.matrix import Evidence, Source, Standing
from mcp_ops.trace.page import environment, packed_style, style_hash

STYLES = ("mcp_ops.trace/trace.css", "mcp_ops.trace/page.css", "mcp_ops.evidence/evidence.css")
MOST = 50
"""Scenarios that a list names; the JSON file has all."""
MEANINGS: Mapping[Standing, str] = {
    "failing": "A scenario that expects this rule, or for which it is to blame, failed.",
    "known failure": "A scenario that expects this rule fails, and its line says until when that is accepted.",
    "no evidence": "It fired in no scenario that passed.",
    "not expected": "It fired, and no scenario would fail if it had not.",
    "one-sided": "It is shown to deny. That it lets harmless work through is not shown.",
    "shown": "It is shown to fire and to let harmless work through.",
}


def render(evidence: Evidence, written: str) -> str:
    """Return a whole page that needs nothing else.

    Args:
        evidence: What is shown.
        written: The time in UTC.
    """
    style = packed_style(*STYLES)
    return _template().render(
        title="Evidence for guard rules",
        evidence=evidence,
        written=written,
        meanings=MEANINGS,
        most=MOST,
        facts=_facts,
        style=style,
        style_hash=style_hash(style),
        version=__version__,
    )


def _facts(source: Source) -> Iterator[tuple[str, str]]:
    results = source.results
    yield "written", results.written
    yield "mode", results.mode
    yield "scenarios", str(len(source.final))
    yield "commit", results.commit or "unknown: not run in a git checkout"
    yield from results.versions.items()
    yield from results.machine.items()
    yield "sha256", source.sha256


@cache
def _template() -> Template:
    return environment("mcp_ops.evidence").get_template("evidence.html")
