"""The operator's file of additions to the guards as a pytest collector, its examples as items."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_opsagent.collect import ScenarioItem, tagged
from pytest_opsagent.configuration import path_of
from pytest_opsagent.state import STATE


def is_guards_file(config: pytest.Config, path: Path) -> bool:
    """Return whether `path` is the file that the run is configured with."""
    named = path_of(config, "guards")
    return named is not None and named.resolve() == path.resolve()


class GuardsFile(pytest.File):
    """The file that `ops_guards` names. A fault in it is an error of the collection."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield one item an example."""
        from mcp_ops.evaluation.examples import example_scenarios
        from mcp_ops.evaluation.session.loading import SetupError

        self.config.stash[STATE].read_files += 1
        try:
            for scenario in example_scenarios(self.path):
                item = ScenarioItem.from_parent(self, name=scenario.spec.id, scenario=scenario)
                yield tagged(item, scenario.spec.tags)
        except SetupError as error:
            raise self.CollectError(str(error)) from None
