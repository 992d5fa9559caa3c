"""The results file of a run, `--ops-results`: every record, with what the run was made of."""

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_opsagent.configuration import mode_of, path_of
from pytest_opsagent.report.inert import inert_line
from pytest_opsagent.state import State

_NOT_TO_THE_END = (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR)


def path_of_results(config: pytest.Config) -> Path | None:
    """Return the file that was asked for, or None; a session that only collects writes none."""
    return None if config.getoption("collectonly") else path_of(config, "results")


def write(session: pytest.Session, state: State) -> str:
    """Write the file when one was asked for; return a sentence when it could not be written, else nothing."""
    path = path_of_results(session.config)
    if path is None:
        return ""
    from mcp_ops.evidence.results import as_json, write_whole

    try:
        write_whole(path, as_json(document(session, state)))
    except OSError as error:
        return f"the results cannot be written: {inert_line(str(path))}: {error.strerror}"
    return ""


def document(session: pytest.Session, state: State) -> dict[str, Any]:
    """Return what the file holds, as JSON values."""
    from mcp_ops.evidence.checkout import commit_of
    from mcp_ops.evidence.provenance import kubectl_version, machine, versions
    from mcp_ops.evidence.results import VERSION

    config = session.config
    made_with = versions()
    if any(record.cluster != "none" for record in state.records):
        made_with["kubectl"] = kubectl_version(config.rootpath)
    return {
        "v": VERSION,
        "written": stamp(state.clock()),
        "mode": mode_of(config),
        "versions": made_with,
        "machine": machine(),
        "commit": commit_of(config.rootpath),
        "interrupted": session.exitstatus in _NOT_TO_THE_END or bool(session.shouldfail or session.shouldstop),
        "records": [asdict(record) for record in state.records],
    }


def stamp(moment: datetime) -> str:
    """Return a time in UTC as `2026-11-30T19:07:12Z`."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
