"""The pieces that a run's HTML is made of.

They are functions, not templates: a template takes three times as long, and every item of a report has such pieces.
Every text of a trace is hostile. Whatever stands between tags is a literal of this package, a number, or went through
`inert` or `Paper.show`.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

from markupsafe import Markup, escape

from mcp_ops.text import clean, one_line
from mcp_ops.trace.shown import Shown

_SHORT = 120
"""Characters of a text that is worth keeping once it was made inert."""


def inert(text: str) -> Markup:
    """Return a text as HTML that can only be read."""
    return _inert_short(text) if len(text) <= _SHORT else escape(clean(text))


@lru_cache(maxsize=4096)
def _inert_short(text: str) -> Markup:
    return escape(clean(text))


def duration(milliseconds: float) -> str:
    """`87 ms`, `1.20 s`, or `unknown` for what is no number."""
    if not math.isfinite(milliseconds):
        return "unknown"
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.2f} s"


def counted(number: int, noun: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def block(label: str, shown: Shown, kind: str = "code") -> str:
    """Return a text under its label, with what is missing of it."""
    missing = note(shown.note) if shown.note else ""
    return (
        f'<div class="ops-block ops-{kind}"><p class="ops-label">{inert(label)}</p>\n'
        f'<pre dir="auto">\n{shown.html}</pre>\n{missing}</div>\n'
    )


def chip(html: str, look: str) -> str:
    """Return a few words in a box, with a class for their look."""
    return f'<span class="ops-chip {look}">{html}</span>'


def note(text: str) -> str:
    """Return a sentence in small print."""
    return f'<p class="ops-note">{inert(text)}</p>\n'


def reason(text: str, more: str = "") -> str:
    """Return why something ended as it did, on one line."""
    return f'<span class="ops-reason" dir="auto">{inert(one_line(text, 300))}{more}</span>'


def row(classes: str, summary: str, body: str) -> str:
    """Return a row that opens. All three arguments are HTML."""
    return (
        f'<details class="ops-row{classes}"><summary>{summary}</summary>\n'
        f'<div class="ops-body">\n{body}</div></details>\n'
    )


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return names and values as a list."""
    return f'<dl class="ops-facts">\n{"".join(_fact(name, value) for name, value in pairs)}</dl>\n'


@lru_cache(maxsize=1024)
def _fact(name: str, value: str) -> str:
    return f"<div><dt>{inert(name)}</dt><dd><bdi>{inert(one_line(value, 400))}</bdi></dd></div>\n"


def in_brief(known: Iterable[str], events: Sequence[str]) -> str:
    """Return what else is known of a row, on one line, and the names of the events behind it."""
    behind = f"{'Event' if len(events) == 1 else 'Events'} of the trace: {', '.join(events)}"
    return f'<p class="ops-note">{" · ".join(map(_brief, known))} · {inert(behind)}</p>\n'


@lru_cache(maxsize=1024)
def _brief(value: str) -> str:
    return f"<bdi>{inert(one_line(value, 400))}</bdi>"


@lru_cache(maxsize=64)
def slug(state: str) -> Markup:
    """Return a state as part of a class name."""
    return inert(state.replace(" ", "-"))
