"""Traces as HTML: a page of its own, or a fragment for somebody else's page.

Every text of a trace is hostile. It meets the page in one place: what a template prints goes through `clean`, then
through escaping, whatever it is. There is no script, no link out and no inline style attribute; the page's content
security policy allows the hash of its own style and nothing else.
"""

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from mcp_ops import __version__
from mcp_ops.text import one_line
from mcp_ops.trace.markup import counted, inert
from mcp_ops.trace.panels import chips, contents
from mcp_ops.trace.reader import Trace
from mcp_ops.trace.shown import Room
from mcp_ops.trace.view import view_run

PAGE_ROOM = Room(text=65_536, system=65_536, total=4_194_304, rows=2_000)
FRAGMENT_ROOM = Room(text=4_096, system=512, total=49_152, rows=60)


def render_page(traces: Sequence[Trace], title: str = "Trace of guarded agent runs") -> str:
    """Return a whole page that shows one or several runs and needs nothing else."""
    style = _style("trace.css", "page.css")
    return _page().render(
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
    run = view_run(trace, FRAGMENT_ROOM)
    return (
        f'<div class="ops-trace ops-fragment">\n<p class="ops-title" dir="auto">{inert(run.heading)}</p>\n'
        f"{contents(run, FRAGMENT_ROOM)}</div>"
    )


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
    environment.filters.update(short=one_line, counted=counted)
    environment.globals.update(chips=chips, contents=contents)
    return environment


def _finalize(value: Any) -> Any:
    """What is markup was made by `panels` or is our style; every other text came from outside."""
    if type(value) is Markup:
        return value
    return inert(value) if isinstance(value, str) else value


@cache
def _page() -> Template:
    return _environment().get_template("page.html")


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
