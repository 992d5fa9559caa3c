"""Running scenarios: the harness of one process, and `run_scenario` for callers in Python."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from mcp_ops.agent.session import Agent
from mcp_ops.evaluation.attempt import Attempt, Finished, Groups, Setting
from mcp_ops.evaluation.config import AgentName, RunConfig
from mcp_ops.evaluation.judging.injection import injection_of
from mcp_ops.evaluation.judging.judge import judge, judge_safety, nothing_checked
from mcp_ops.evaluation.line.parse import from_dict
from mcp_ops.evaluation.line.scenario import Scenario
from mcp_ops.evaluation.outcome import Outcome, Problem, died_of_infrastructure, sorted_problems
from mcp_ops.evaluation.session.agents import agent_of
from mcp_ops.evaluation.session.cluster import Cluster, find_cluster, reading
from mcp_ops.evaluation.session.extending import extension_of
from mcp_ops.evaluation.session.listing import ToolPins
from mcp_ops.evaluation.session.loading import SetupError
from mcp_ops.evaluation.session.recording import RecordingSession
from mcp_ops.evaluation.session.servers import UnknownServer, own_rules, server_targets
from mcp_ops.evaluation.watching.canaries import Canaries, Canary, collect, environment_canaries
from mcp_ops.evaluation.watching.network import NetworkWatch
from mcp_ops.evaluation.watching.witnesses import WitnessFactory
from mcp_ops.evaluation.world.secrets import secret_values
from mcp_ops.evaluation.world.worlds import World, WorldError, Worlds
from mcp_ops.gate import Refuse, can_be_switched_off
from mcp_ops.llm.base import Model
from mcp_ops.llm.mock import MockLLM, NativeMockLLM
from mcp_ops.servers.ops import describe_second_wall
from mcp_ops.text import Redactor

if TYPE_CHECKING:
    from mcp_ops.evaluation.world.github import GitHubWorld

MOCK = MockLLM.name


class Harness:
    """Runs the scenarios of one process; keeps what they share: worlds, the agent, what the cluster said.

    Args:
        config: How scenarios run.
        scratch: A folder for worlds, and for traces when the configuration names none. It is made when needed.
    """

    canaries: set[Canary]
    """Every value so far that must stand in nothing that is written."""
    witnesses: Sequence[WitnessFactory]
    """The user's own, for every run from now on."""

    def __init__(self, config: RunConfig, *, scratch: Path) -> None:
        self._config = config
        self._scratch = scratch
        self._worlds = Worlds(scratch / "worlds", config.rootdir)
        self._trace_dir = config.trace_dir or scratch / "traces"
        self._environment = environment_canaries(MODEL_API_KEY=config.api_key)
        self._agents: dict[AgentName, Agent] = {}
        self._live_model: Model | None = None
        self._cluster: Cluster | None = None
        self._cluster_asked = False
        self._pins = ToolPins()
        self.canaries = set()
        self.witnesses = ()

    async def run(self, scenario: Scenario, *, rules_off: frozenset[str] = frozenset()) -> Outcome:
        """Run a scenario once and judge it. What goes wrong on the way is a problem of the outcome.

        Runs that overlap wait for each other: a witness cannot tell the deeds of two apart.

        Args:
            scenario: What is run.
            rules_off: Rules of our own servers that are left out, to see whether the scenario notices. A call that only
                they would have refused is answered as executed and not run, and no trace is kept.

        Raises:
            ValueError: Rules are to be off in a live run, in a server that is not in this process, or are none that can
                be switched off.
        """
        if rules_off:
            self._check_rules_off(scenario, rules_off)
        async with _one_at_a_time():
            outcome = await self._run(scenario, rules_off)
        if rules_off and outcome.trace is not None:
            shutil.rmtree(outcome.trace.parent, ignore_errors=True)
            outcome = replace(outcome, trace=None)
        return outcome

    def _check_rules_off(self, scenario: Scenario, rules_off: frozenset[str]) -> None:
        if self._config.mode != "mock" or self._config.transport != "memory":
            raise ValueError("rules are switched off only in mock mode, and only in servers of this process")
        known = own_rules(scenario.spec.servers)
        if wrong := sorted(name for name in rules_off if name not in known or not can_be_switched_off(known[name])):
            raise ValueError(f"no rule of this name can be switched off: {', '.join(wrong)}")

    async def _run(self, scenario: Scenario, rules_off: frozenset[str]) -> Outcome:
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
                world = self._worlds.get(spec.world.workspace, spec.world.plant, _folder_of(scenario), scenario.links)
                canaries = self._canaries_of(scenario, world)
                with self._github_of(scenario) as github:
                    finished = await self._attempt(scenario, outcome, world, github, canaries, rules_off)
            except WorldError as error:
                return replace(outcome, problems=(Problem("line", str(error), error.path),))
            except UnknownServer as error:
                return replace(outcome, problems=(Problem("line", str(error), "server"),))
            except SetupError as error:
                return replace(outcome, problems=(Problem("harness", str(error), plain=error.plain),))
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
        extension = extension_of(self._config)
        values = world.secret_values if extension is None else secret_values(world.root, extension.secret_names)
        if scenario.spec.world.github is not None:
            values = (*values, (self._github_token,))
        canaries = collect(scenario.spec.world.canaries, values, self._environment)
        self.canaries.update(canaries.items)
        return canaries

    @cached_property
    def _github_token(self) -> str:
        """What servers of this process use against in-memory GitHubs, and what must leak nowhere."""
        from mcp_ops.evaluation.world.github import made_up_token

        return made_up_token()

    @contextmanager
    def _github_of(self, scenario: Scenario) -> "Iterator[GitHubWorld | None]":
        spec = scenario.spec.world.github
        if spec is None:
            yield None
            return
        from mcp_ops.evaluation.world.github import github_world

        github = github_world(
            spec,
            token=self._github_token,
            line_folder=_folder_of(scenario),
            rootdir=self._config.rootdir,
            on_loopback=self._config.transport != "memory",
        )
        try:
            yield github
        finally:
            github.close()

    async def _attempt(
        self,
        scenario: Scenario,
        outcome: Outcome,
        world: World,
        github: "GitHubWorld | None",
        canaries: Canaries,
        rules_off: frozenset[str],
    ) -> Finished:
        agent = self._agent_for(scenario)
        groups = Groups()
        cluster = self._cluster if self._uses_cluster(scenario) else None
        targets = await server_targets(
            scenario.spec.servers,
            self._config,
            world.root,
            cluster=cluster,
            end_group=groups.add,
            refuse=Refuse(rules_off, rehearse=True) if rules_off else None,
            github=github,
        )
        setting = Setting(
            scenario=scenario,
            location=outcome.location,
            config=replace(self._config, echo=False) if rules_off else self._config,
            world=world,
            github=github,
            targets=targets,
            agent=agent,
            model=self._model_for(scenario),
            model_name=outcome.model,
            canaries=canaries,
            cluster=outcome.cluster,
            trace_dir=self._scratch / "rehearsals" if rules_off else self._trace_dir,
            pins=self._pins,
            reached=reading(cluster.kubeconfig, cluster.context, world.root) if cluster and cluster.uid else None,
            witnesses=self.witnesses,
        )
        return await Attempt(setting, groups).run()

    def _agent_for(self, scenario: Scenario) -> Agent:
        name = scenario.spec.agent
        if name not in self._agents:
            self._agents[name] = agent_of(self._config, name)
        return self._agents[name]

    def _model_for(self, scenario: Scenario) -> Callable[[RecordingSession], Model]:
        if self._config.mode == "mock":
            script = [entry.reply() for entry in scenario.spec.mock or ()]
            # What `mcp-ops agent` asks has tool calls of its own; a user's agent gets a model that completes.
            native = scenario.spec.agent == "command-line" and self._config.agent is None
            kind = NativeMockLLM if native else MockLLM
            return lambda session: kind(script, calls=session.past_calls)
        if self._live_model is None:
            self._live_model = _live_model(self._config)
        model = self._live_model
        return lambda _: model

    def _judged(self, scenario: Scenario, outcome: Outcome, finished: Finished, canaries: Canaries) -> Outcome:
        mode = self._config.mode
        observed = finished.observed
        read_only = all(target.read_only or target.seen for target in finished.targets)
        died = not finished.began or died_of_infrastructure(finished.problems)
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
            injection=injection_of(scenario, observed, mode, problems),
            trace=finished.trace,
            redaction_failures=_still_in(finished.trace, canaries),
        )


async def run_scenario(
    line: Mapping[str, Any] | Scenario,
    *,
    config: RunConfig | None = None,
    witnesses: Sequence[WitnessFactory] = (),
) -> Outcome:
    """Run one scenario by itself.

    Args:
        line: A scenario line as a mapping, or a scenario that was read. `world.workspace` of a mapping is looked for
            in the root folder.
        config: How it runs; by default the scripted model, in memory, with the current folder as root. When it names
            no `trace_dir`, the trace of a scenario that does not pass is kept in a temporary folder, and no other.
        witnesses: Make witnesses of your own for the run, beside those that every run has.

    Raises:
        ScenarioError: The mapping is no scenario.
    """
    scenario = line if isinstance(line, Scenario) else from_dict(line)
    config = config or RunConfig()
    scratch = Path(tempfile.mkdtemp(prefix="opsagent-"))
    harness = Harness(config, scratch=scratch)
    harness.witnesses = witnesses
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
        raise SetupError(str(error), plain="") from error


def _redacted(problem: Problem, redactor: Redactor) -> Problem:
    return replace(
        problem,
        message=redactor.text(problem.message),
        details=tuple(redactor.text(line) for line in problem.details),
        plain=redactor.text(problem.plain),
    )


def _still_in(trace: Path, canaries: Canaries) -> tuple[str, ...]:
    """Return the trace file if a canary stands in it in spite of redaction."""
    # What needs a further reading to be found was looked for in each event before it was written.
    if canaries.items and canaries.spelled_in(trace.read_text("utf-8")):
        return (str(trace),)
    return ()
