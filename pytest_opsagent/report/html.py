"""The pytest-html report: the trace in the item's row, and columns that appear with the first scenario.

pytest-html escapes neither node ids nor cells, and dies of a backslash in a node id that has an extra.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pytest_opsagent.report.inert import html_text
from pytest_opsagent.report.rates import rate_lines
from pytest_opsagent.report.record import Record, record_of
from pytest_opsagent.report.summary import count_lines, known_lines, not_proven_line

STYLE = (
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    "<style>"
    ".opsagent-failure{margin:8px;padding:8px 10px;border-left:4px solid #b00020;background:#fdf1f2;color:#1b1b1b;"
    "font:12px/1.5 monospace;white-space:pre-wrap;overflow-wrap:anywhere}"
    "#results-table .skipped .logexpander{display:none}"
    "#results-table .skipped .log{top:0;height:auto;min-height:0}"
    "@media (max-width:700px){"
    "body{min-width:0}.controls,.filters{flex-wrap:wrap}"
    "#results-table .extraHTML,#results-table .logwrapper{width:calc(100vw - 40px)}"
    "#results-table .opsagent-column,#results-table .col-duration,#results-table .col-links,"
    '#results-table th[data-column-type="duration"],#results-table th:last-child{display:none}'
    "#results-table td{overflow-wrap:anywhere}.log{max-width:100%}#environment{max-width:100%;overflow-wrap:anywhere}"
    "}"
    "</style>"
)
"""What the page needs to be read on a telephone, the look of a failure, and no tall box for a skip's one line."""
COLUMNS = ("Mode", "Calls", "Denials", "Tokens", "Cost")
REPORT = pytest.StashKey[Any]()
"""pytest-html's report data: it is handed to a hook before anything is known of scenarios."""
WITH_COLUMNS = pytest.StashKey[bool]()
"""Whether the report has our columns."""


def style() -> str:
    """Return what the report's head needs: our style, and that of the traces in the rows."""
    from mcp_ops.trace.html import fragment_style

    return f"{STYLE}<style>{fragment_style()}</style>"


def wanted(config: pytest.Config) -> bool:
    """Return whether a pytest-html report is written."""
    return bool(config.getoption("htmlpath", None)) and config.pluginmanager.hasplugin("html")


def extra(content: str) -> Mapping[str, str | None]:
    """Return a fragment of HTML in the form that pytest-html takes, and xdist can carry."""
    return {"name": None, "format_type": "html", "content": content, "mime_type": None, "extension": None}


def add_fragments(report: pytest.TestReport, fragments: list[str]) -> None:
    """Put fragments of HTML into the report's row."""
    if fragments and "\\" not in report.nodeid:
        extras = [*getattr(report, "extras", []), *map(extra, fragments)]
        setattr(report, "extras", extras)  # noqa: B010 - pytest-html's attribute, unknown to pytest's types


def failure_fragment(report: pytest.TestReport) -> list[str]:
    """Return the failure's text as a fragment: in the row it would stand below the whole trace."""
    return [f'<pre class="opsagent-failure">{html_text(report.longreprtext)}</pre>'] if report.failed else []


def shorten_skip(report: Any, log: list[str]) -> None:
    """Let the log of a skipped scenario say place and reason, not the tuple that pytest keeps."""
    record = record_of(report)
    if record is not None and report.skipped and isinstance(report.longrepr, tuple) and log:
        log[0] = html_text(f"{record.location}: {report.longrepr[2].removeprefix('Skipped: ')}") + "\n"


def begin_columns(config: pytest.Config) -> None:
    """Add our columns to the report, and empty cells to the rows that it already has."""
    data = config.stash.get(REPORT, None)
    if data is None or config.stash.get(WITH_COLUMNS, False):
        return
    config.stash[WITH_COLUMNS] = True
    header = list(data.table_header)
    _insert(header, [f'<th class="opsagent-column">{name}</th>' for name in COLUMNS])
    data.table_header = header
    for tests in data.data["tests"].values():
        for test in tests:
            _insert(test["resultsTableRow"], _cells(None))


def add_cells(config: pytest.Config, report: Any, cells: list[str]) -> None:
    """Add our cells to a row, and escape its node id if it is a scenario's."""
    if not config.stash.get(WITH_COLUMNS, False) or not cells:
        return
    record = record_of(report)
    if record is not None:
        cells[:] = [_escaped_id(cell, report.nodeid) for cell in cells]
    _insert(cells, _cells(record))


def _insert(row: list[str], new: list[str]) -> None:
    row[max(0, len(row) - 1) : max(0, len(row) - 1)] = new


def _escaped_id(cell: str, nodeid: str) -> str:
    start, end = '<td class="col-testId">', "</td>"
    return f"{start}{html_text(nodeid)}{end}" if cell == f"{start}{nodeid}{end}" else cell


def _cells(record: Record | None) -> list[str]:
    values = ["", "", "", "", ""]
    if record is not None:
        values[0] = record.mode
        if record.status == "ran":
            values[1:] = [
                str(record.calls),
                str(record.denials),
                "" if record.tokens is None else str(record.tokens),
                "" if record.usd is None else f"${record.usd:.4f}",
            ]
    names = [name.lower() for name in COLUMNS]
    return [
        f'<td class="opsagent-column opsagent-{name}">{html_text(value)}</td>'
        for name, value in zip(names, values, strict=True)
    ]


def summary_lines(records: Sequence[Record], more: Sequence[str] = ()) -> list[str]:
    """Return what the report says at its head: counts, fragments of others, and what was not proven."""
    said = (*count_lines(records), *known_lines(records), *rate_lines(records))
    lines = [f"<p>{html_text(line)}</p>" for line in said]
    lines += more
    if line := not_proven_line(records):
        lines.append(f"<p><strong>{html_text(line)}</strong></p>")
    return lines
