"""Traces as HTML: a page of its own, or a fragment for somebody else's page.

Every text of a trace is hostile. It meets the page in one place: what a template prints goes through `clean`, then
through escaping, whatever it is. There is no script, no link out and no inline style attribute; the page's content
security policy allows the hash of its own style and nothing else.
"""

import base64
import hashlib
import math
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from mcp_ops import __version__
from mcp_ops.text import clean, one_line
from mcp_ops.trace.reader import Trace
from mcp_ops.trace.shown import Room, Shown
from mcp_ops.trace.view import view_run

PAGE_ROOM = Room(text=65_536, total=4_194_304, rows=2_000)
_SHORT = 120
"""Characters of a text that is worth keeping once it was made inert."""
FRAGMENT_ROOM = Room(text=4_096, total=49_152, rows=60)


def render_page(traces: Sequence[Trace], title: str = "Trace of guarded agent runs") -> str:
    """Return a whole page that shows one or several runs and needs nothing else."""
    style = _style("trace.css", "page.css")
    return _template("page.html").render(
        title=title,
        runs=[view_run(trace, PAGE_ROOM) for trace in traces],
        room=PAGE_ROOM,
        style=style,
        style_hash=_hash(style),
        version=__version__,
    )


def render_fragment(trace: Trace) -> str:
    """Return one run as HTML to put into a page of somebody else, such as a row of pytest-html.

    Its look is `fragment_style`, once a page; it has no id, so that many stand on one page. Its size is bounded: what
    is left out is said, with the name of the trace file.
    """
    return _template("fragment.html").render(run=view_run(trace, FRAGMENT_ROOM), room=FRAGMENT_ROOM)


def fragment_style() -> str:
    """Return the style sheet of fragments. All its rules begin with `.ops-trace`."""
    return str(_style("trace.css"))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("mcp_ops.trace"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
        auto_reload=False,
    )
    environment.filters.update(short=one_line, duration=_duration, counted=_counted)
    environment.globals.update(block=_block, fact=_fact, events=_events)
    return environment


def _finalize(value: Any) -> Any:
    """What is markup was made by a template or here; every other text came from outside."""
    if type(value) is Markup:
        return value
    return _inert(value) if isinstance(value, str) else value


def _inert(text: str) -> Markup:
    """Return a text as HTML that can only be read."""
    return _inert_short(text) if len(text) <= _SHORT else escape(clean(text))


@lru_cache(maxsize=4096)
def _inert_short(text: str) -> Markup:
    return escape(clean(text))


@lru_cache(maxsize=1024)
def _fact(name: str, value: str) -> Markup:
    """Return a row of a list of facts."""
    text = f"<div><dt>{_inert(name)}</dt><dd><bdi>{_inert(one_line(value, 400))}</bdi></dd></div>\n"
    return Markup(text)  # noqa: S704 -- made of inert texts


def _block(label: str, shown: Shown, kind: str = "code") -> Markup:
    """Return a text under its label, with what is missing of it."""
    note = f'<p class="ops-note">{_inert(shown.note)}</p>\n' if shown.note else ""
    text = (
        f'<div class="ops-block ops-{kind}"><p class="ops-label">{_inert(label)}</p>\n'
        f'<pre dir="auto">\n{_inert(shown.text)}</pre>\n{note}</div>\n'
    )
    return Markup(text)  # noqa: S704 -- made of inert texts


def _events(names: Sequence[str]) -> Markup:
    """Return the note that names the events behind a row."""
    noun = "Event" if len(names) == 1 else "Events"
    text = f'<p class="ops-note">{noun} of the trace: {_inert(", ".join(names))}</p>\n'
    return Markup(text)  # noqa: S704 -- made of inert texts


@cache
def _template(name: str) -> Template:
    return _environment().get_template(name)


@cache
def _style(*names: str) -> Markup:
    """Return style sheets of the package, packed."""
    folder = resources.files("mcp_ops.trace") / "templates"
    source = "".join((folder / name).read_text(encoding="utf-8") for name in names)
    packed = re.sub(r"\s*([{}:;,>])\s+|\s+(?=[{}>])", r"\1", re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL))
    return Markup(packed.strip())  # noqa: S704 -- files of this package


@cache
def _hash(style: str) -> str:
    return base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()


def _duration(milliseconds: float) -> str:
    if not math.isfinite(milliseconds):
        return "unknown"
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.2f} s"


def _counted(number: int, noun: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
