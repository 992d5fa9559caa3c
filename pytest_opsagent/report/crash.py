"""What is recorded of an item during which its xdist worker crashed: nobody else can tell of it."""

from pathlib import Path
from typing import Any

from pytest_opsagent.collect import is_scenario_file
from pytest_opsagent.report.inert import inert_line
from pytest_opsagent.report.record import Record

PHASES = ("setup", "call", "teardown")


def record_of_crash(report: Any, mode: str) -> Record | None:
    """Return a record for the report that xdist makes of such an item; None for any other report.

    Only the worker knew the line of the file: the record names the first.
    """
    if getattr(report, "when", "setup") in PHASES or not report.failed:
        return None
    path, _, name = report.nodeid.partition("::")
    if not (name and is_scenario_file(Path(path))):
        return None
    return Record(
        report.nodeid,
        f"{inert_line(path)}:1",
        inert_line(name),
        "not_run",
        "failed",
        mode,
        message=inert_line(str(report.longrepr), 1000),
    )
