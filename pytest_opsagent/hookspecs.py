"""Hooks that a `conftest.py` or another plugin may implement."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from mcp_ops.evaluation.outcome import Outcome
    from mcp_ops.evaluation.watching.witnesses import WitnessFactory


def pytest_opsagent_outcome(item: pytest.Item, outcome: "Outcome") -> None:
    """Called with what each attempt of a scenario came to, before it is judged.

    An exception that is raised here fails the item: it is the place for assertions over all scenarios.

    Args:
        item: The scenario's item, or the test that ran it by the `opsagent` fixture.
        outcome: The verdict, and what was observed. Its texts are raw: they may hold secrets.
    """


def pytest_opsagent_report_sections(item: pytest.Item, outcome: "Outcome") -> Iterable[tuple[str, str]] | None:
    """Called when the pytest-html row of a scenario is made; return titles and texts to add to it.

    Both are escaped, and redacted like everything else that is written.

    Args:
        item: The scenario's item, or the test that ran it by the `opsagent` fixture.
        outcome: The verdict, and what was observed.
    """


def pytest_opsagent_witnesses(item: pytest.Item) -> "Iterable[WitnessFactory] | None":
    """Called before each attempt of a scenario; return what makes witnesses of your own for it.

    Each entry is called with a `WitnessInput` and returns an object with `name`, `before()` and `after()`, or None when
    it has nothing to look at in this run. What these see stands beside what our own witnesses see: in `expect.effects`,
    in the trace and in the report.

    Args:
        item: The scenario's item, or the test that runs it by the `opsagent` fixture.
    """
