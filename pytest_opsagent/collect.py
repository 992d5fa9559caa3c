"""Files of scenarios as pytest collectors, their lines as items."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_opsagent.configuration import echoes, missing_needs, mode_of
from pytest_opsagent.measuring import measure
from pytest_opsagent.report.detail import detail_of, quiet_fault
from pytest_opsagent.report.failure import (
    Place,
    ScenarioFailure,
    outcome_text,
    place_of,
    plain_text,
    represent,
    represent_fault,
)
from pytest_opsagent.report.inert import inert_line
from pytest_opsagent.state import OUTCOMES, STATE, begin, redact, uncaptured

if TYPE_CHECKING:
    from _pytest._code.code import TerminalRepr

    from mcp_ops.evaluation.judging.known import Excuse
    from mcp_ops.evaluation.line.scenario import BadLine, Scenario
    from mcp_ops.evaluation.outcome import Outcome

FILE_NAME = "scenarios.jsonl"
"""Files of this name, and of names that end in a dot and this, hold scenarios."""


def is_scenario_file(path: Path) -> bool:
    """Return whether pytest should read `path` as scenarios."""
    return path.name == FILE_NAME or path.name.endswith("." + FILE_NAME)


class ScenarioFile(pytest.File):
    """A file with one scenario a line."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield one item a line, bad lines included."""
        from mcp_ops.evaluation.line.parse import read_file
        from mcp_ops.evaluation.line.scenario import BadLine

        state = self.config.stash[STATE]
        state.read_files += 1
        try:
            lines = list(read_file(self.path))
        except OSError as error:
            raise self.CollectError(f"{self.path}: cannot be read: {error.strerror}") from None
        for line in lines:
            if isinstance(line, BadLine):
                bad = BadLineItem.from_parent(self, name=line.id, bad=line)
                state.bad_lines[bad.nodeid] = bad.text.partition("\n")[0]
                yield tagged(bad, line.tags)
            else:
                yield from self._items(line)

    def _items(self, line: "Scenario") -> Iterator[pytest.Item]:
        """Yield the item of a good line, then those of the variants that it asks for."""
        scenarios = [line]
        if line.spec.variants is not None:
            from mcp_ops.evaluation.variants.generate import variants_of

            scenarios += variants_of(line)
        for scenario in scenarios:
            spec = scenario.spec
            yield tagged(ScenarioItem.from_parent(self, name=spec.id, scenario=scenario), spec.tags)


def tagged(item: pytest.Item, tags: Sequence[str]) -> pytest.Item:
    """Mark `item` with `tags`, each made known first, so that it passes under `--strict-markers`."""
    known = item.config.stash[STATE].tags
    for tag in tags:
        if tag not in known:
            known.add(tag)
            item.config.addinivalue_line("markers", f"{tag}: tag of scenarios")
        item.add_marker(tag)
    return item


class LineItem(pytest.Item):
    """What the items of good and bad lines share: their place."""

    line: int
    """Physical line in the file, from 1."""

    @cached_property
    def place(self) -> Place:
        """Where the item stands."""
        return place_of(self, self.line)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return file, line from 0, and heading."""
        return self.path, self.line - 1, f"scenario: {self.name}"

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any) -> "str | TerminalRepr":
        """Return the failure's own text; any other exception keeps its traceback: a hook or the harness raised it."""
        if isinstance(excinfo.value, ScenarioFailure):
            return represent(excinfo, self.path, self.line)
        shown = represent_fault(excinfo, self.config)
        outcomes = self.stash[OUTCOMES]
        detail = detail_of(self.config, outcomes)
        return shown if detail == "full" else quiet_fault(self.place.location, str(shown), detail)

    def failure(self, text: str) -> ScenarioFailure:
        """Return a failure with its text, or with the first line of it where a line is all that is published."""
        outcomes = self.stash[OUTCOMES]
        one_line = detail_of(self.config, outcomes) == "verdicts"
        return ScenarioFailure(text.partition("\n")[0] if one_line else text)


class BadLineItem(LineItem):
    """A line that is no scenario. It fails when it is run, and hinders no other line."""

    def __init__(self, *, bad: "BadLine", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        begin(self)
        self.line = bad.line
        self.text = plain_text(place_of(self, bad.line, bad.column), bad.message)

    def runtest(self) -> None:
        """Fail with what is wrong with the line."""
        raise self.failure(self.text)


class ScenarioItem(LineItem):
    """A scenario."""

    def __init__(self, *, scenario: "Scenario", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        begin(self)
        self.scenario = scenario
        self.line = scenario.line
        self.unsafe: Outcome | None = None
        """The first attempt in which a safety expectation did not hold. No later attempt clears it."""
        self.excuse: Excuse | None = None
        """Why the failure of the latest run is known, and not red."""

    def runtest(self) -> None:
        """Run the scenario and judge what it came to."""
        self.excuse = None
        if self.unsafe is None:
            begin(self)
            outcome = self._run()
            self._judge(outcome)
            measure(self, self.scenario, outcome)
        else:
            self._judge(self.unsafe)

    def _run(self) -> "Outcome":
        """Make the attempts that the line plans, until nothing can change the verdict, and return it."""
        from mcp_ops.evaluation.policy import is_final, planned_attempts, verdict

        outcomes: list[Outcome] = []
        planned = planned_attempts(self.scenario, "live" if mode_of(self.config) == "live" else "mock")
        while len(outcomes) < planned:
            outcomes.append(self._attempt())
            if is_final(outcomes[-1]):
                break
        return verdict(self.scenario, outcomes)

    def _attempt(self) -> "Outcome":
        with uncaptured(self.config) if echoes(self.config) else nullcontext():
            return self.config.stash[STATE].run(self, self.scenario)

    def _judge(self, outcome: "Outcome") -> None:
        if missing := missing_needs(self.config, outcome):
            raise self.failure(plain_text(self.place, f"needs {', '.join(missing)}, as --ops-require demands"))
        judged = self._against_known(outcome)
        if outcome.skipped_mode:
            pytest.skip(f"not for mode {outcome.mode}")
        if judged.problems:
            earlier = outcome is self.unsafe
            if not outcome.safety_held:
                self.unsafe = outcome
            detail = detail_of(self.config, [outcome])
            raise ScenarioFailure(redact(self, outcome_text(judged, self.place, earlier=earlier, detail=detail)))
        if outcome.skipped is not None:
            pytest.skip(f"not proven: {inert_line(outcome.skipped)}")
        if outcome.unmet_needs:
            pytest.skip(f"not proven: needs {', '.join(outcome.unmet_needs)}")
        if outcome.unchecked:
            pytest.skip("not proven: nothing is checked")

    def _against_known(self, outcome: "Outcome") -> "Outcome":
        """Return the outcome with what the line's `known` adds to it; note whether `known` excuses what failed."""
        if self.scenario.spec.known is None or self.config.getoption("runxfail"):
            return outcome
        from mcp_ops.evaluation.judging.known import against_known

        today = self.config.stash[STATE].clock().date()
        judged, self.excuse = against_known(self.scenario, outcome, today)
        return judged
