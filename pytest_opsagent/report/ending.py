"""The end of a session: close the harness, search what was written for secrets, and say what the run came to."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_opsagent.measuring import is_selection
from pytest_opsagent.report import github, guards, junit, results, summary
from pytest_opsagent.report.rates import rate_lines
from pytest_opsagent.state import State

if TYPE_CHECKING:
    from mcp_ops.evaluation.watching.canaries import Canaries

LARGEST_FILE = 256 * 1024 * 1024
"""Files beyond this many bytes are not read back; that is said."""


def before_reports(session: pytest.Session, state: State) -> None:
    """Close the harness, and hand on what the reports still need."""
    state.close()
    if state.is_worker:
        state.hand_over()
        return
    state.selection |= is_selection(session.config) or bool(session.shouldfail or session.shouldstop)
    junit.say_of_the_suite(session.config, "rules", guards.guard_report(state).faults)
    junit.say_of_the_suite(session.config, "guards", rate_lines(state.records))
    junit.say_of_the_suite(session.config, "known_failures", summary.known_lines(state.records))
    if line := summary.not_proven_line(state.records):
        junit.say_of_the_suite(session.config, "not_proven", [line])
    state.results_failure = results.write(session, state)


def after_reports(session: pytest.Session, state: State) -> None:
    """Search the reports, and let the session fail when a secret stands in one of them, or stood in a trace.

    It fails too when the results that were asked for could not be written.
    """
    if state.is_worker:
        return
    found = [*state.redacted, *(failure for record in state.records for failure in record.redaction_failures)]
    found += search(_written(session.config), state.all_canaries())
    state.redaction_failures = list(dict.fromkeys(found))
    failed = state.redaction_failures or state.results_failure or guards.guard_report(state).faults
    if failed and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _written(config: pytest.Config) -> Iterator[Path]:
    if path := results.path_of_results(config):
        yield path
    for option in ("htmlpath", "xmlpath"):
        written = config.getoption(option, None)
        if written:
            yield config.invocation_params.dir / Path(os.path.expandvars(written)).expanduser()
    log_file = getattr(config.pluginmanager.get_plugin("logging-plugin"), "log_file_handler", None)
    if log_file is not None:
        yield Path(log_file.baseFilename)


def search(files: Iterator[Path], canaries: "Canaries") -> list[str]:
    """Return a sentence for each file in which a canary stands, in any encoding."""
    failures = []
    for path in files:
        if not path.is_file():
            continue
        if path.stat().st_size > LARGEST_FILE:
            failures.append(f"{path} is too large to be searched")
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        labels = {canaries.items[number - 1].label for number, _ in canaries.found_in(text)}
        if labels:
            failures.append(f"{path} holds {', '.join(sorted(labels))}")
    return failures


def write_summaries(reporter: "pytest.TerminalReporter", state: State) -> None:
    """Write annotations, the job summary, and the section of the terminal's summary."""
    for line in github.annotations(state.records, state.config.rootpath, os.environ):
        reporter.ensure_newline()
        reporter.write_line(line)
    try:
        rules = guards.markdown_lines(guards.guard_report(state))
        github.job_summary(state.records, os.environ, rules)
    except OSError as error:
        reporter.write_line(f"opsagent: the job summary cannot be written: {error.strerror}", yellow=True)
    summary.write(reporter, state)
