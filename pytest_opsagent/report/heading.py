"""What is said once, when scenarios were collected."""

import pytest

from pytest_opsagent.collect import LineItem
from pytest_opsagent.configuration import mode_of
from pytest_opsagent.options import value_of
from pytest_opsagent.report.inert import inert_line

LANGSMITH = "langsmith_plugin"
"""Name of the pytest plugin that langgraph's dependencies bring along."""


def heading(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Return the mode, and how many scenarios there are."""
    count = sum(isinstance(item, LineItem) for item in items)
    if not count:
        return []
    parts = [f"opsagent: mode={mode_of(config)}"]
    if mode_of(config) == "live":
        from mcp_ops.evaluation.config import DEFAULT_MODEL

        parts.append(f"model={inert_line(value_of(config, 'model') or DEFAULT_MODEL)}")
    if transport := value_of(config, "transport"):
        parts.append(f"transport={transport}")
    parts.append(f"{count} scenario" + ("" if count == 1 else "s"))
    lines = [", ".join(parts)]
    if config.pluginmanager.hasplugin(LANGSMITH):
        lines.append(
            "opsagent: the langsmith plugin, a dependency's, costs every start of pytest about a second: "
            f"add `-p no:{LANGSMITH}` to addopts"
        )
    return lines
