"""Running scenarios: the harness of one process, and `run_scenario` for callers in Python."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from mcp_ops.agent.session import Agent
from mcp_ops.evaluation.attempt import Attempt, Finished, Groups, Setting
from mcp_ops.evaluation.config import RunConfig
from mcp_ops.evaluation.judging.judge import judge, judge_safety, nothing_checked
from mcp_ops.evaluation.line.parse import from_dict
from mcp_ops.evaluation.line.scenario import Scenario
from mcp_ops.evaluation.outcome import Outcome, Problem, sorted_problems
from mcp_ops.evaluation.session.agents import agent_of
from mcp_ops.evaluation.session.cluster import Cluster, find_cluster
from mcp_ops.evaluation.session.loading import SetupError
from mcp_ops.evaluation.session.recording import RecordingSession
from mcp_ops.evaluation.session.servers import UnknownServer, server_targets
from mcp_ops.evaluation.watching.canaries import Canaries, Canary, collect, environment_canaries
from mcp_ops.evaluation.watching.network import NetworkWatch
from mcp_ops.evaluation.world.worlds import World, WorldError, Worlds
from mcp_ops.llm.base import Model
from mcp_ops.llm.mock import MockLLM
from mcp_ops.servers.ops import describe_second_wall
from mcp_ops.text import Redactor

MOCK = MockLLM.name


class Harness:
    """Runs the scenarios of one process; keeps what they share: worlds, the agent, what the cluster said.

    Args:
        config: How scenarios run.
        scratch: A folder for worlds, and for traces when the configuration names none. It is made when needed.
    """

    canaries: set[Canary]
    """Every value so far that must stand in nothing that is written."""

    def __init__(self, config: RunConfig, *, scratch: Path) -> None:
        self._config = config
        self._scratch = scratch
        self._worlds = Worlds(scratch / "worlds", config.rootdir)
        self._trace_dir = config.trace_dir or scratch / "traces"
        self._environment = environment_canaries(MODEL_API_KEY=config.api_key)
        self._agent: Agent | None = None
        self._live_model: Model | None = None
        self._cluster: Cluster | None = None
        self._cluster_asked = False
        self.canaries = set()

    async def run(self, scenario: Scenario) -> Outcome:
        """Run a scenario once and judge it. What goes wrong on the way is a problem of the outcome.

        Runs that overlap wait for each other: a witness cannot tell the deeds of two apart.
        """
        async with _one_at_a_time():
            return await self._run(scenario)

    async def _run(self, scenario: Scenario) -> Outcome:
        config, spec = self._config, scenario.spec
        mock = config.mode == "mock"
        model_name = MOCK if mock else config.model
        outcome = Outcome(spec.id, location_of(scenario, config.rootdir), (), mode=config.mode, model=model_name)
        if config.mode not in spec.modes:
            return replace(outcome, skipped_mode=True)
        if spec.skip is not None:
            return replace(outcome, skipped=spec.skip)
        unmet = await self._unmet_needs(scenario)
        outcome = replace(outcome, cluster=str((self._uses_cluster(scenario) and self._cluster) or "none"))
        if unmet:
            return replace(outcome, unmet_needs=unmet)
        watch = NetworkWatch(config.rootdir)
        with watch.armed() if mock else nullcontext():
            try:
                world = self._worlds.get(spec.world.workspace, spec.world.plant, _folder_of(scenario))
                canaries = self._canaries_of(scenario, world)
                finished = await self._attempt(scenario, outcome, world, canaries)
            except WorldError as error:
                return replace(outcome, problems=(Problem("line", str(error), error.path),))
            except UnknownServer as error:
                return replace(outcome, problems=(Problem("line", str(error), "server"),))
            except SetupError as error:
                return replace(outcome, problems=(Problem("harness", str(error)),))
            except OSError as error:
                sentence = f"the run cannot be written down: {error.filename or self._trace_dir}: {error.strerror}"
                return replace(outcome, problems=(Problem("harness", sentence),))
        finished.problems.extend(Problem("harness", f"a mock run has no network: {use}") for use in watch.uses)
        return self._judged(scenario, outcome, finished, canaries)

    def close(self) -> None:
        """Remove the worlds. Traces stay."""
        self._worlds.close()

    async def _unmet_needs(self, scenario: Scenario) -> tuple[str, ...]:
        unmet = unmet_needs(scenario, self._config)
        if unmet or not self._uses_cluster(scenario):
            return unmet
        if not self._cluster_asked:
            self._scratch.mkdir(parents=True, exist_ok=True)
            self._cluster = await find_cluster(self._config, self._scratch)
            self._cluster_asked = True
        reached = self._cluster is not None and self._cluster.uid is not None
        return ("cluster",) if "cluster" in scenario.spec.needs and not reached else ()

    def _uses_cluster(self, scenario: Scenario) -> bool:
        """A mock run touches the named cluster only for a line that needs it."""
        return self._config.cluster_named and (self._config.mode == "live" or "cluster" in scenario.spec.needs)

    def _canaries_of(self, scenario: Scenario, world: World) -> Canaries:
        canaries = collect(scenario.spec.world.canaries, world.secret_values, self._environment)
        self.canaries.update(canaries.items)
        return canaries

    async def _attempt(self, scenario: Scenario, outcome: Outcome, world: World, canaries: Canaries) -> Finished:
        if self._agent is None:
            self._agent = agent_of(self._config)
        groups = Groups()
        targets = await server_targets(
            scenario.spec.servers,
            self._config,
            world.root,
            cluster=self._cluster if self._uses_cluster(scenario) else None,
            end_group=groups.add,
        )
        setting = Setting(
            scenario=scenario,
            location=outcome.location,
            config=self._config,
            world=world,
            targets=targets,
            agent=self._agent,
            model=self._model_for(scenario),
            model_name=outcome.model,
            canaries=canaries,
            cluster=outcome.cluster,
            trace_dir=self._trace_dir,
        )
        return await Attempt(setting, groups).run()

    def _model_for(self, scenario: Scenario) -> Callable[[RecordingSession], Model]:
        if self._config.mode == "mock":
            script = [entry.reply() for entry in scenario.spec.mock or ()]
            return lambda session: MockLLM(script, calls=session.past_calls)
        if self._live_model is None:
            self._live_model = _live_model(self._config)
        model = self._live_model
        return lambda _: model

    def _judged(self, scenario: Scenario, outcome: Outcome, finished: Finished, canaries: Canaries) -> Outcome:
        mode = self._config.mode
        observed = finished.observed
        read_only = all(target.read_only for target in finished.targets)
        died = not finished.began or any(problem.kind == "infrastructure" for problem in finished.problems)
        problems = [
            *finished.problems,
            *(
                judge_safety(scenario, observed, read_only=read_only)
                if died
                else judge(scenario, observed, mode, read_only=read_only)
            ),
        ]
        redactor = canaries.redactor
        return replace(
            outcome,
            problems=tuple(_redacted(problem, redactor) for problem in sorted_problems(problems)),
            observed=observed,
            unchecked=nothing_checked(scenario, mode, observed),
            trace=finished.trace,
            redaction_failures=_still_in(finished.trace, canaries),
        )


async def run_scenario(line: Mapping[str, Any] | Scenario, *, config: RunConfig | None = None) -> Outcome:
    """Run one scenario by itself.

    Args:
        line: A scenario line as a mapping, or a scenario that was read. `world.workspace` of a mapping is looked for
            in the root folder.
        config: How it runs; by default the scripted model, in memory, with the current folder as root. When it names
            no `trace_dir`, the trace of a scenario that does not pass is kept in a temporary folder, and no other.

    Raises:
        ScenarioError: The mapping is no scenario.
    """
    scenario = line if isinstance(line, Scenario) else from_dict(line)
    config = config or RunConfig()
    scratch = Path(tempfile.mkdtemp(prefix="opsagent-"))
    harness = Harness(config, scratch=scratch)
    keep = temporary = config.trace_dir is None
    try:
        outcome = await harness.run(scenario)
        keep = temporary and outcome.trace is not None and not outcome.passed
        return replace(outcome, trace=None) if temporary and not keep else outcome
    finally:
        harness.close()
        if not keep:
            shutil.rmtree(scratch, ignore_errors=True)


def unmet_needs(scenario: Scenario, config: RunConfig) -> tuple[str, ...]:
    """Return what a line needs and a run cannot have, as far as that is known without asking a cluster."""
    absent = {"cluster": not config.cluster_named, "second_wall": describe_second_wall().startswith("absent")}
    return tuple(need for need in scenario.spec.needs if absent[need])


def location_of(scenario: Scenario, rootdir: Path) -> str:
    """Return where a scenario stands, `scenarios/scenarios.jsonl:17`, relative to the root folder if it is inside."""
    if scenario.path is None:
        return f"<python>:{scenario.line}"
    path = scenario.path
    shown = path.relative_to(rootdir) if path.is_relative_to(rootdir) else path
    return f"{shown.as_posix()}:{scenario.line}"


_locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


def _one_at_a_time() -> asyncio.Lock:
    """Return the lock of this loop. A lock may not be waited for on two loops."""
    return _locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())


def _folder_of(scenario: Scenario) -> Path | None:
    return scenario.path.parent if scenario.path is not None else None


def _live_model(config: RunConfig) -> Model:
    from mcp_ops.llm.openai_compatible import OpenRouterLLM, RetryPolicy

    retry = RetryPolicy.within(config.limits.seconds)
    schema = config.response_schema
    try:
        return OpenRouterLLM(config.base_url, config.model, config.api_key, response_schema=schema, retry=retry)
    except ValueError as error:
        raise SetupError(str(error)) from error


def _redacted(problem: Problem, redactor: Redactor) -> Problem:
    return replace(
        problem,
        message=redactor.text(problem.message),
        details=tuple(redactor.text(line) for line in problem.details),
    )


def _still_in(trace: Path, canaries: Canaries) -> tuple[str, ...]:
    """Return the trace file if a canary stands in it in spite of redaction."""
    if canaries.items and canaries.stand_in(trace.read_text("utf-8")):
        return (str(trace),)
    return ()
