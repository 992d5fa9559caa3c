"""The `opsagent` fixture: scenarios from Python, for assertions that JSON cannot say."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from pytest_opsagent.state import STATE, begin

if TYPE_CHECKING:
    from mcp_ops.evaluation.line.scenario import Scenario
    from mcp_ops.evaluation.outcome import Outcome


class OpsAgent:
    """Runs scenario lines with the options of this pytest run."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self._state = item.config.stash[STATE]

    def run(self, line: Mapping[str, Any]) -> "Outcome":
        """Run a scenario and return what it came to; nothing is asserted.

        Args:
            line: A scenario line as a dict. `world.workspace` is looked for from the test's folder upwards.

        Raises:
            ScenarioError: The line is no scenario.
            RuntimeError: An event loop is already running here; await `arun` instead.
        """
        from pytest_opsagent.loop import is_running

        if is_running():
            raise RuntimeError("opsagent.run() was called in a running event loop; write `await opsagent.arun(…)`")
        return self._state.run(self._item, self._scenario(line))

    async def arun(self, line: Mapping[str, Any]) -> "Outcome":
        """Run a scenario on the running event loop; the same as `run` otherwise.

        Raises:
            ScenarioError: The line is no scenario.
        """
        return await self._state.arun(self._item, self._scenario(line))

    def _scenario(self, line: Mapping[str, Any]) -> "Scenario":
        from mcp_ops.evaluation.line.parse import from_dict

        scenario = from_dict(line)
        return dataclasses.replace(scenario, path=self._item.path, line=(self._item.location[1] or 0) + 1)


@pytest.fixture
def opsagent(request: pytest.FixtureRequest) -> OpsAgent:
    """Run scenario lines from Python: `opsagent.run({...})`, or `await opsagent.arun({...})` in an async test."""
    item: pytest.Item = request.node
    begin(item)
    return OpsAgent(item)
