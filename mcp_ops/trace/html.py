"""Traces as HTML: a page of its own, or a fragment for somebody else's page.

Every text of a trace is hostile. It meets the page in one place, where `page` makes it inert. There is no script, no
link out and no inline style attribute.
"""

from collections.abc import Sequence
from functools import cache

from jinja2 import Template

from mcp_ops import __version__
from mcp_ops.trace.detail import Detail, default_detail
from mcp_ops.trace.markup import inert
from mcp_ops.trace.page import environment, packed_style, style_hash
from mcp_ops.trace.panels import chips, contents
from mcp_ops.trace.reader import Trace
from mcp_ops.trace.shown import Room
from mcp_ops.trace.view import view_run

FRAGMENT_STYLE = "mcp_ops.trace/trace.css"
PAGE_ROOM = Room(text=65_536, system=65_536, total=4_194_304, rows=2_000)
FRAGMENT_ROOM = Room(text=4_096, system=512, total=49_152, rows=60)


def render_page(
    traces: Sequence[Trace], title: str = "Trace of guarded agent runs", *, detail: Detail | None = "full"
) -> str:
    """Return a whole page that shows one or several runs and needs nothing else.

    Args:
        traces: The runs.
        title: Heading of the page.
        detail: How much is shown of each; None for what `default_detail` says of it.
    """
    style = packed_style(FRAGMENT_STYLE, "mcp_ops.trace/page.css")
    return _page().render(
        title=title,
        runs=[view_run(trace, PAGE_ROOM, detail or _default(trace)) for trace in traces],
        room=PAGE_ROOM,
        style=style,
        style_hash=style_hash(style),
        version=__version__,
    )


def _default(trace: Trace) -> Detail:
    """A run whose beginning is lost may have been anything."""
    return "redacted" if trace.start is None else default_detail(trace.start.mode, trace.start.cluster)


def render_fragment(trace: Trace, detail: Detail = "full") -> str:
    """Return one run as HTML to put into a page of somebody else, such as a row of pytest-html.

    Its look is `fragment_style`, once a page; it has no id, so that many stand on one page. Its size is bounded: what
    is left out is said, with the name of the trace file.
    """
    run = view_run(trace, FRAGMENT_ROOM, detail)
    return (
        f'<div class="ops-trace ops-fragment">\n<p class="ops-title" dir="auto">{inert(run.heading)}</p>\n'
        f"{contents(run, FRAGMENT_ROOM)}</div>"
    )


def fragment_style() -> str:
    """Return the style sheet of fragments. All its rules begin with `.ops-trace`."""
    return str(packed_style(FRAGMENT_STYLE))


@cache
def _page() -> Template:
    made = environment("mcp_ops.trace")
    made.globals.update(chips=chips, contents=contents)
    return made.get_template("page.html")
