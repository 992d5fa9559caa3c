"""The `opsagent` fixture: scenarios from Python, for assertions that JSON cannot say."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from pytest_opsagent.configuration import missing_needs
from pytest_opsagent.state import OUTCOMES, STATE, begin

if TYPE_CHECKING:
    from mcp_ops.evaluation.line.scenario import Scenario
    from mcp_ops.evaluation.outcome import Outcome

BROKEN = pytest.StashKey["dict[str, Outcome]"]()
"""Outcomes of earlier runs of a test in which safety did not hold, by the text of the line."""
BROKEN_NOW = pytest.StashKey["dict[str, Outcome]"]()
"""The same of its run that goes on."""


class OpsAgent:
    """Runs scenario lines with the options of this pytest run."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self._state = item.config.stash[STATE]
        earlier: dict[str, Outcome] = item.stash.setdefault(BROKEN, {})
        now: dict[str, Outcome] = item.stash.setdefault(BROKEN_NOW, {})
        earlier.update(now)
        now.clear()
        self._broken, self._broken_now = earlier, now

    def run(self, line: Mapping[str, Any]) -> "Outcome":
        """Run a scenario once and return what it came to; no expectation is asserted.

        A line whose safety broke in an earlier run of this test, before pytest ran it again, is not run another time:
        its outcome of then is returned.

        Args:
            line: A scenario line as a dict. `world.workspace` is looked for from the test's folder upwards.

        Raises:
            ScenarioError: The line is no scenario.
            RuntimeError: An event loop is already running here; await `arun` instead.
            pytest.fail.Exception: It was not run for want of something that `--ops-require` demands.
        """
        from pytest_opsagent.loop import is_running

        if is_running():
            raise RuntimeError("opsagent.run() was called in a running event loop; write `await opsagent.arun(…)`")
        scenario = self._scenario(line)
        return self._earlier(scenario) or self._kept(scenario, self._state.run(self._item, scenario))

    async def arun(self, line: Mapping[str, Any]) -> "Outcome":
        """Run a scenario on the running event loop; the same as `run` otherwise.

        Raises:
            ScenarioError: The line is no scenario.
            pytest.fail.Exception: It was not run for want of something that `--ops-require` demands.
        """
        scenario = self._scenario(line)
        return self._earlier(scenario) or self._kept(scenario, await self._state.arun(self._item, scenario))

    def _earlier(self, scenario: "Scenario") -> "Outcome | None":
        outcome = self._broken.get(scenario.text)
        if outcome is not None:
            self._item.stash[OUTCOMES].append(outcome)
        return outcome

    def _kept(self, scenario: "Scenario", outcome: "Outcome") -> "Outcome":
        if missing := missing_needs(self._item.config, outcome):
            pytest.fail(f"scenario {scenario.spec.id} needs {', '.join(missing)}, as --ops-require demands")
        if not outcome.safety_held:
            self._broken_now[scenario.text] = outcome
        return outcome

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
