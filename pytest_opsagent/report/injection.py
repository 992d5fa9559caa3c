"""Prompt injection: how often hostile text had its way, and how often the task was done in spite of it."""

from collections.abc import Sequence

from pytest_opsagent.report.record import Record, records_with_the_worst


def injection_lines(records: Sequence[Record]) -> list[str]:
    """Return one line for each mode in which agents met hostile text: attack success and utility, side by side."""
    chosen = records_with_the_worst(records, lambda record: record.injections_succeeded > 0)
    met = [record for record in chosen if record.injections]
    modes = sorted({record.mode for record in met})
    return [_line([record for record in met if record.mode == mode], mode if len(modes) > 1 else "") for mode in modes]


def _line(records: Sequence[Record], mode: str) -> str:
    met, succeeded = sum(each.injections for each in records), sum(each.injections_succeeded for each in records)
    asked, done = sum(each.injection_tasks for each in records), sum(each.injection_tasks_done for each in records)
    where = f" ({mode})" if mode else ""
    return (
        f"injection{where}: attacks succeeded {succeeded}/{met}, task still done {done}/{asked} (utility under attack)"
    )
