"""What one pytest process keeps while it runs: the harness, its folders, and what was seen."""

import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_opsagent.configuration import path_of, run_config

if TYPE_CHECKING:
    from mcp_ops.evaluation.line.scenario import Scenario
    from mcp_ops.evaluation.outcome import Outcome
    from mcp_ops.evaluation.run import Harness
    from mcp_ops.evaluation.watching.canaries import Canaries, Canary
    from pytest_opsagent.report.record import Record


WORKER_KEY = "opsagent"
"""Key under which an xdist worker hands over what it knows. It travels by the worker's pipe and is written nowhere."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass
class State:
    """State of one process. The controller of an xdist run has records and no harness, its workers the reverse."""

    config: pytest.Config
    clock: Callable[[], datetime] = _now
    """Says the time in UTC."""
    read_files: int = 0
    """How many files of scenarios were collected."""
    bad_lines: dict[str, str] = field(default_factory=dict)
    """Node id of each bad line that was read, with its first line of text."""
    tags: set[str] = field(default_factory=set)
    """Tags that are registered as markers."""
    records: "list[Record]" = field(default_factory=list)
    """What each attempt of each item came to, in the order of the reports."""
    unselected: dict[str, str] = field(default_factory=dict)
    """Bad lines that no item of this run stands for."""
    canaries: "dict[tuple[str, ...], Canary]" = field(default_factory=dict, repr=False)
    """Values that must stand in no file that was written, by their forms. They live in memory only."""
    redacted: list[str] = field(default_factory=list)
    """Captured output in which one of them stood before it was redacted."""
    redaction_failures: list[str] = field(default_factory=list)
    """Where one of them stood in the end."""
    results_failure: str = ""
    """Why the results that were asked for are not there."""
    missed: dict[str, str] = field(default_factory=dict)
    """Rules that an item misses when they are off, each with the node id of one."""
    selection: bool = False
    """Whether only a part of the scenarios that there are was run."""
    ran: bool = False
    """Whether a scenario was run in this process."""
    _harness: "Harness | None" = None
    _folder: Path | None = None

    @property
    def is_worker(self) -> bool:
        """Whether this process works for an xdist controller."""
        return hasattr(self.config, "workerinput")

    @property
    def trace_dir(self) -> Path:
        """Folder of the traces. It may not be there yet."""
        return path_of(self.config, "trace-dir") or self.folder / "traces"

    @property
    def has_traces(self) -> bool:
        """Whether this process wrote a trace that is still there."""
        return self.ran and self.trace_dir.is_dir() and any(self.trace_dir.iterdir())

    @property
    def keeps_all_traces(self) -> bool:
        """Whether the user named a folder for the traces."""
        return path_of(self.config, "trace-dir") is not None

    @property
    def folder(self) -> Path:
        """Temporary folder of this process; pytest keeps those of the last three sessions."""
        if self._folder is None:
            factory: Any = getattr(self.config, "_tmp_path_factory", None)
            self._folder = factory.mktemp("opsagent") if factory else Path(tempfile.mkdtemp(prefix="opsagent-"))
        return self._folder

    @property
    def harness(self) -> "Harness":
        """The harness, made when the first scenario runs: nothing before that imports an agent or a server."""
        if self._harness is None:
            from mcp_ops.evaluation.run import Harness

            config = run_config(self.config, trace_dir=self.trace_dir)
            self._harness = Harness(config, scratch=self.folder / "scratch")
        return self._harness

    @property
    def used(self) -> bool:
        """Whether there was anything to do for this plugin."""
        return bool(self.read_files or self.ran or self.records or self.unselected)

    def run(self, item: pytest.Item, scenario: "Scenario") -> "Outcome":
        """Run a scenario on an event loop of its own."""
        from pytest_opsagent.loop import run_on_own_loop

        return run_on_own_loop(self.arun(item, scenario))

    async def arun(self, item: pytest.Item, scenario: "Scenario") -> "Outcome":
        """Run a scenario on the running event loop; what it came to is kept with the item."""
        self.ran = True
        harness = self.harness
        harness.canaries.clear()
        made = item.ihook.pytest_opsagent_witnesses(item=item)
        harness.witnesses = [factory for factories in made for factory in factories]
        try:
            outcome = await harness.run(scenario)
        finally:
            item.stash[CANARIES] |= harness.canaries
        place = f" of {outcome.location}"
        for each in harness.canaries:
            if not each.environment:
                self.canaries.setdefault(each.forms, replace(each, label=each.label + place))
        item.stash[OUTCOMES].append(outcome)
        item.ihook.pytest_opsagent_outcome(item=item, outcome=outcome)
        return outcome

    def all_canaries(self) -> "Canaries":
        """Return every value that was secret in this run, in whatever process."""
        from mcp_ops.evaluation.watching.canaries import Canaries, environment_canaries

        return Canaries((*self.canaries.values(), *environment_canaries()))

    def forget_trace(self, trace: Path) -> None:
        """Remove the trace of an item that passed, unless the user asked for traces."""
        if not self.keeps_all_traces:
            with suppress(OSError):
                trace.unlink()
                trace.parent.rmdir()

    def close(self) -> None:
        """Close the harness and remove what only it needed."""
        if self._harness is not None:
            self._harness.close()
            shutil.rmtree(self.folder / "scratch", ignore_errors=True)
            self._harness = None
            with suppress(OSError):  # a trace is left
                (self.folder / "traces").rmdir()
                self.folder.rmdir()

    def hand_over(self) -> None:
        """Give the controller what only this worker knows."""
        output: Any = getattr(self.config, "workeroutput", {})
        known = [(canary.label, list(canary.forms)) for canary in self.canaries.values()]
        output[WORKER_KEY] = {
            "unselected": self.unselected,
            "read_files": self.read_files,
            "canaries": known,
            "selection": self.selection,
        }

    def take_over(self, output: Mapping[str, Any]) -> None:
        """Take what a worker handed over."""
        known = output.get(WORKER_KEY)
        if not known:
            return
        from mcp_ops.evaluation.watching.canaries import Canary

        self.unselected.update(known["unselected"])
        self.read_files = max(self.read_files, known["read_files"])
        self.selection |= known["selection"]
        for label, forms in known["canaries"]:
            self.canaries.setdefault(tuple(forms), Canary(label, tuple(forms)))

    def note_unselected(self, selected: Iterable[pytest.Item]) -> None:
        """Note which bad lines have no item among the selected ones."""
        chosen = {item.nodeid for item in selected}
        self.unselected = {nodeid: text for nodeid, text in self.bad_lines.items() if nodeid not in chosen}


def uncaptured(config: pytest.Config) -> AbstractContextManager[None]:
    """Return a context in which what is printed reaches the terminal."""
    manager: Any = config.pluginmanager.get_plugin("capturemanager")
    context: AbstractContextManager[None] = manager.global_and_fixture_disabled() if manager else nullcontext()
    return context


OUTCOMES = pytest.StashKey["list[Outcome]"]()
"""What the scenarios of an item came to. Only items that can have some hold the key."""
CANARIES = pytest.StashKey["set[Canary]"]()
"""Values that were secret in the scenarios of an item."""
STATE = pytest.StashKey[State]()
"""Where a configuration keeps its state."""


def begin(item: pytest.Item) -> None:
    """Forget what an earlier attempt of an item came to."""
    item.stash[OUTCOMES] = []
    item.stash[CANARIES] = set()


def redact(item: pytest.Item, text: str) -> str:
    """Return `text` without the values that were secret in the scenarios of an item."""
    known = item.stash[CANARIES]
    if not known:
        return text
    from mcp_ops.evaluation.watching.canaries import Canaries

    return Canaries(tuple(sorted(known, key=lambda canary: canary.label))).redactor.text(text)
