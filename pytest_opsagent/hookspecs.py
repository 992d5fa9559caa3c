"""Hooks that a `conftest.py` or another plugin may implement."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from mcp_ops.evaluation.outcome import Outcome


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
