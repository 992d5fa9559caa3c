"""GitHub Actions: annotations on the scenarios' lines, and a job summary.

The workflow commands are documented under "Workflow commands for GitHub Actions": `%`, CR and LF are escaped in the
message, `:` and `,` too in the properties.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pytest_opsagent.report.inert import inert_line, markdown_text
from pytest_opsagent.report.rates import rate_lines
from pytest_opsagent.report.record import Record, final_records
from pytest_opsagent.report.summary import count_lines, known_lines, not_proven_line

ROWS = 50
"""Failed items that the job summary names; GitHub shows ten annotations of a step anyway."""


def annotations(records: Sequence[Record], rootdir: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield one `::error …` line for each failed item, when the run is a GitHub job."""
    if environ.get("GITHUB_ACTIONS") != "true":
        return
    for record in _failed(records):
        path, _, line = record.location.rpartition(":")
        file = _in_repository(rootdir / path, path, environ.get("GITHUB_WORKSPACE"))
        where = f"file={_property(file)},line={_property(line)},title={_property(record.scenario)}"
        yield f"::error {where}::{_message(inert_line(record.message, 1000))}"


def _failed(records: Sequence[Record]) -> list[Record]:
    return [record for record in final_records(records) if record.outcome == "failed"]


def _in_repository(file: Path, fallback: str, workspace: str | None) -> str:
    try:
        return file.resolve().relative_to(Path(workspace or os.curdir).resolve()).as_posix()
    except ValueError:
        return fallback


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def job_summary(records: Sequence[Record], environ: Mapping[str, str], more: Iterable[str] = ()) -> Path | None:
    """Append the run, and `more` lines of Markdown, to the job's summary. Return its file, or None when there is none.

    Raises:
        OSError: The file cannot be written.
    """
    target = environ.get("GITHUB_STEP_SUMMARY")
    if not target or not records:
        return None
    path = Path(target)
    with path.open("a", encoding="utf-8") as file:
        file.write("\n".join(_summary_lines(records, more)) + "\n")
    return path


def _summary_lines(records: Sequence[Record], more: Iterable[str]) -> Iterator[str]:
    yield "### opsagent"
    yield ""
    for line in (*count_lines(records), *known_lines(records), *rate_lines(records)):
        yield f"- {markdown_text(line)}"
    yield from more
    if failed := _failed(records):
        yield ""
        yield "| scenario | where | why |"
        yield "|---|---|---|"
        for record in failed[:ROWS]:
            cells = (record.scenario, record.location, record.message)
            yield "| " + " | ".join(markdown_text(cell) for cell in cells) + " |"
        if len(failed) > ROWS:
            yield f"| and {len(failed) - ROWS} more | | |"
    if line := not_proven_line(records):
        yield ""
        yield f"**{markdown_text(line)}**"
    yield ""
