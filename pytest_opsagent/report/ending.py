"""The end of a session: close the harness, search what was written for secrets, and say what the run came to."""

import html
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_opsagent.report import github, junit, summary
from pytest_opsagent.state import State

if TYPE_CHECKING:
    from mcp_ops.evaluation.watching.canaries import Canaries

_WRITTEN_AS_ENTITIES = frozenset("&<>\"'")
LARGEST_FILE = 256 * 1024 * 1024
"""Files beyond this many bytes are not read back; that is said."""


def before_reports(session: pytest.Session, state: State) -> None:
    """Close the harness, and hand on what the reports still need."""
    state.close()
    if state.is_worker:
        state.hand_over()
        return
    junit.say_not_proven(session.config, summary.not_proven_line(state.records))


def after_reports(session: pytest.Session, state: State) -> None:
    """Search the reports, and let the session fail when a secret stands in one of them, or stood in a trace."""
    if state.is_worker:
        return
    found = [*state.redacted, *(failure for record in state.records for failure in record.redaction_failures)]
    found += search(_written(session.config), state.all_canaries())
    state.redaction_failures = list(dict.fromkeys(found))
    if state.redaction_failures and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _written(config: pytest.Config) -> Iterator[Path]:
    for option in ("htmlpath", "xmlpath"):
        written = config.getoption(option, None)
        if written:
            yield config.invocation_params.dir / Path(os.path.expandvars(written)).expanduser()


def search(files: Iterator[Path], canaries: "Canaries") -> list[str]:
    """Return a sentence for each file in which a canary stands, escaped for XML or HTML or not."""
    failures = []
    for path in files:
        if not path.is_file():
            continue
        if path.stat().st_size > LARGEST_FILE:
            failures.append(f"{path} is too large to be searched")
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        labels = {
            canaries.items[number - 1].label
            for spelling in _spellings(text, canaries)
            for number, _ in canaries.found_in(spelling)
        }
        if labels:
            failures.append(f"{path} holds {', '.join(sorted(labels))}")
    return failures


def _spellings(text: str, canaries: "Canaries") -> Iterator[str]:
    """Yield a file's text, and what it says with its entities resolved, once and twice, where that can matter."""
    yield text
    forms = [form for canary in canaries.items for form in canary.forms]
    if any(not form.isascii() or _WRITTEN_AS_ENTITIES & set(form) for form in forms):
        once = html.unescape(text)
        yield once
        yield html.unescape(once)


def write_summaries(reporter: "pytest.TerminalReporter", state: State) -> None:
    """Write annotations, the job summary, and the section of the terminal's summary."""
    for line in github.annotations(state.records, state.config.rootpath, os.environ):
        reporter.ensure_newline()
        reporter.write_line(line)
    try:
        github.job_summary(state.records, os.environ)
    except OSError as error:
        reporter.write_line(f"opsagent: the job summary cannot be written: {error.strerror}", yellow=True)
    summary.write(reporter, state)
