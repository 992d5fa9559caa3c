"""JUnit: short scalars on each item, and what was not proven on the suite."""

from collections.abc import Sequence
from typing import Any

import pytest

from pytest_opsagent.report.record import Record

PREFIX = "opsagent."
"""Stands before the name of every property of ours."""


def properties(record: Record) -> list[tuple[str, object]]:
    """Return the properties of an item: short scalars, the ones that say nothing left out."""
    values: dict[str, object] = {"location": record.location, "status": record.status, "mode": record.mode}
    if record.status == "ran":
        values |= {
            "model": record.model,
            "cluster": record.cluster,
            "finish": record.finish,
            "calls": record.calls,
            "denials": record.denials,
            "turns": record.turns,
            "tokens": record.tokens,
            "usd": record.usd,
            "safety": "held" if record.safety_held else "broken",
            "task": "done" if record.task_done else "not done",
            "injection": ("succeeded" if record.injections_succeeded else "stopped") if record.injections else "",
            "problems": ", ".join(record.problems),
        }
    values |= {
        "not_proven": ", ".join(record.reasons),
        "known": record.known,
        "known_until": record.known_until,
        "trace": record.trace,
    }
    return [(PREFIX + name, value) for name, value in values.items() if value not in (None, "")]


def set_properties(owner: pytest.Item | pytest.TestReport, new: Sequence[tuple[str, object]]) -> None:
    """Put properties of a record on an item or a report, in place of those of an earlier attempt."""
    others = [pair for pair in owner.user_properties if not str(pair[0]).startswith(PREFIX)]
    owner.user_properties[:] = [*others, *new]


def say_of_the_suite(config: pytest.Config, name: str, lines: Sequence[str]) -> None:
    """Add lines to the suite's properties under one name, when a JUnit file is written."""
    if not (lines and config.getoption("xmlpath", None)):
        return
    for plugin in config.pluginmanager.get_plugins():
        add: Any = getattr(plugin, "add_global_property", None)
        if callable(add):
            for line in lines:
                add(PREFIX + name, line)
