"""One attempt of a scenario: servers, agent and witnesses around one ledger, and what came of it."""

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mcp_ops.agent.session import Agent, AgentInput, AgentOutput
from mcp_ops.evaluation.config import RunConfig
from mcp_ops.evaluation.judging.claims import call_patterns
from mcp_ops.evaluation.line.scenario import Scenario
from mcp_ops.evaluation.observed import Observed
from mcp_ops.evaluation.outcome import Problem, ProblemKind
from mcp_ops.evaluation.session.blocking import LoopWatch
from mcp_ops.evaluation.session.connection import (
    START_SECONDS,
    Connection,
    ServerStartError,
    ServerTarget,
    connected,
)
from mcp_ops.evaluation.session.context import context_of
from mcp_ops.evaluation.session.fault_plan import FaultPlan
from mcp_ops.evaluation.session.listing import ToolPins
from mcp_ops.evaluation.session.loading import described
from mcp_ops.evaluation.session.person import ScriptedPerson, person_of
from mcp_ops.evaluation.session.pinning import RELIST_SECONDS, Change, changes_during_run, changes_since_pinned
from mcp_ops.evaluation.session.process import ChildServer, kill_group
from mcp_ops.evaluation.session.recording import CallsWithoutEnd, RecordingSession
from mcp_ops.evaluation.session.rules import SERVER_DIED
from mcp_ops.evaluation.watching.canaries import Canaries, Place, places_of
from mcp_ops.evaluation.watching.witnesses import (
    ClusterWitness,
    GitHubWitness,
    Panel,
    ProcessWitness,
    SocketWitness,
    Witness,
    WitnessFactory,
    WitnessInput,
    WorkspaceWitness,
)
from mcp_ops.evaluation.world.worlds import World
from mcp_ops.llm.base import Model, ModelError
from mcp_ops.llm.mock import MockLLM
from mcp_ops.ops.context import OpsContext
from mcp_ops.servers.ops import children_network, describe_second_wall
from mcp_ops.trace.events import EffectSeen, LlmResponse, RunFinish, RunStart
from mcp_ops.trace.ledger import Ledger
from mcp_ops.trace.writer import TraceWriter

if TYPE_CHECKING:
    from mcp_ops.evaluation.world.github import GitHubWorld

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Setting:
    """Everything that one attempt is made of."""

    scenario: Scenario
    location: str
    config: RunConfig
    world: World
    github: "GitHubWorld | None"
    targets: Sequence[ServerTarget]
    agent: Agent
    model: Callable[[RecordingSession], Model]
    """Makes the model; a scripted one may look at the session's calls."""
    model_name: str
    canaries: Canaries
    cluster: str
    trace_dir: Path
    pins: ToolPins
    """What each server of this process listed first."""
    reached: OpsContext | None = None
    """The cluster that this run may touch, to be looked at."""
    witnesses: Sequence[WitnessFactory] = ()
    """The user's own."""


class Finished(NamedTuple):
    """What an attempt came to, before it is judged."""

    observed: Observed
    problems: list[Problem]
    """What the harness itself has to say: the run could not be judged, or died of the provider or the network."""
    began: bool
    """Whether the agent was asked at all."""
    trace: Path
    targets: Sequence[ServerTarget]
    """The servers that it was about."""


class Groups:
    """Process groups of servers that ended; what is left in them is killed after the witnesses have looked."""

    def __init__(self) -> None:
        self._groups: list[int] = []

    def add(self, group: int) -> None:
        """Remember a group."""
        self._groups.append(group)

    def end(self) -> None:
        """Kill what is left."""
        for group in self._groups:
            kill_group(group)


@dataclass
class Attempt:
    """Runs a setting once."""

    setting: Setting
    groups: Groups
    problems: list[Problem] = field(default_factory=list)
    began: bool = False
    session: RecordingSession | None = None
    watch: LoopWatch = field(default_factory=LoopWatch)

    async def run(self) -> Finished:
        """Run, and let the witnesses look. The trace is closed and the children are gone however it ends.

        Raises:
            OSError: The trace cannot be written.
        """
        setting = self.setting
        with TraceWriter(setting.trace_dir) as writer:
            self.ledger = Ledger(writer, sys.stderr if setting.config.echo else None)
            self.ledger.set_redactor(setting.canaries.redactor)
            self.started = time.perf_counter()
            panel = self._panel()
            try:
                await panel.before()
                end = self._not_begun() if panel.problems else await self._converse()
                effects = await panel.after()
            except BaseException as error:
                self._finish(AgentOutput("error", error=f"the run was interrupted: {described(error)}"))
                raise
            finally:
                self.groups.end()
                panel.end()
            for sentence in panel.problems:
                self._note(sentence)
            observed = self._observe(end, effects, panel)
            self._finish(end)
        return Finished(observed, self.problems, self.began, writer.path, setting.targets)

    def _panel(self) -> Panel:
        """Return everybody who looks at the world of this run."""
        setting, spec = self.setting, self.setting.scenario.spec
        own: list[Witness] = [WorkspaceWitness(setting.world.root, setting.world.pristine)]
        if setting.reached is not None:
            own.append(ClusterWitness(setting.reached))
        if setting.github is not None:
            own.append(GitHubWitness(setting.github.memory.snapshot))
        if ProcessWitness.available():
            processes = ProcessWitness()
            # They look again in reverse: which processes are left over is known when sockets are looked for.
            own += [SocketWitness(processes), processes]
        given = WitnessInput(setting.world.root, spec.id, spec.servers, setting.config.mode)
        return Panel(own, setting.witnesses, given)

    def _not_begun(self) -> AgentOutput:
        """Start nothing: what would happen then is what a witness that failed cannot see."""
        self._begin(())
        return AgentOutput("error", error="nothing was started: a witness could not look before")

    async def _converse(self) -> AgentOutput:
        """Start the servers, let the agent work, close the servers."""
        end = AgentOutput("error", error="the servers could not be used")
        connections: list[Connection] = []
        try:
            with self.watch:
                self.watch.allow(START_SECONDS * len(self.setting.targets))
                async with self._github_answering(), connected(self._met()) as connections:
                    changes = changes_since_pinned(connections, self.setting.pins, self.setting.world.root)
                    self._note_changes(changes)
                    if changes:
                        end = AgentOutput("error", error="the model was not asked: a server lists other tools")
                    else:
                        end = await self._ask(connections)
                        self.watch.allow(RELIST_SECONDS * len(connections))
                        self._note_changes(await changes_during_run(connections))
        except ServerStartError as error:
            self._note(str(error))
            end = AgentOutput("error", error=str(error))
        except Exception as error:
            log.debug("a server failed", exc_info=True)
            self._note("a server failed", described(error))
        if not self.began:
            self._begin(())
        self._note_dead(connections)
        if self.watch.blocked is not None:
            self._note(f"the event loop was held up by {self.watch.blocked}; await there, or use asyncio.to_thread")
        if self.session is not None:
            self.session.compare_audits()
            for sentence in self.session.problems:
                self._note(sentence)
        return end

    def _met(self) -> Sequence[ServerTarget]:
        """Return the servers as they are connected to: whose word the agent is told is asked for it by a handshake."""
        targets = self.setting.targets
        return [replace(each, tools=None) for each in targets] if self._tells_more else targets

    @property
    def _tells_more(self) -> bool:
        """Whether the agent is told what `mcp-ops agent` tells it beside the task."""
        return self.setting.scenario.spec.agent == "command-line"

    def _github_answering(self) -> AbstractAsyncContextManager[None]:
        github = self.setting.github
        return nullcontext() if github is None else github.answering()

    async def _ask(self, connections: Sequence[Connection]) -> AgentOutput:
        limits, spec = self.setting.config.limits, self.setting.scenario.spec
        seconds = limits.seconds if spec.timeout is None else spec.timeout
        faults = FaultPlan(spec.faults)
        person = person_of(spec.confirm)
        session = self.session = RecordingSession(
            connections, self.ledger, max_calls=limits.max_calls, faults=faults, confirm=person
        )
        tools = await session.list_tools()
        self._begin([tool.name for tool in tools])
        self.began = True
        model = self.setting.model(session)
        self.watch.allow(seconds)
        context = await context_of(connections, self._note) if self._tells_more else ()
        given = AgentInput(spec.task, session, model, self.ledger.emit, limits.max_calls, context)
        try:
            async with asyncio.timeout(seconds):
                end = await self.setting.agent(given)
        except TimeoutError:
            return AgentOutput("error", error=f"the run took longer than {seconds:g} s")
        except CallsWithoutEnd as error:
            return AgentOutput("error", error=str(error))
        except ModelError as error:
            self._note(str(error))
            return AgentOutput("error", error=str(error))
        except Exception as error:
            log.debug("the agent failed", exc_info=True)
            self._note("the agent failed", described(error))
            return AgentOutput("error", error=described(error))
        finally:
            session.end()
        if isinstance(model, MockLLM) and model.unused and end.finish != "max_steps":
            count = "1 entry" if model.unused == 1 else f"{model.unused} entries"
            why = end.error or "the agent finished too early"
            self._note(f"the mock script has {count} left after the {end.finish}", why)
        if end.infrastructure:
            self.problems.append(Problem("infrastructure", end.error or "the model could not be reached"))
        else:
            self._note_idle_faults(faults)
            if isinstance(person, ScriptedPerson):
                self._note_misfits(person)
        return end

    def _begin(self, tools: Sequence[str]) -> None:
        setting, spec = self.setting, self.setting.scenario.spec
        self.ledger.emit(
            RunStart(
                task=spec.task,
                scenario=spec.id,
                location=setting.location,
                title=spec.title,
                mode=setting.config.mode,
                model=setting.model_name,
                transport=setting.config.transport,
                servers=[target.name for target in setting.targets],
                tools=list(tools),
                max_calls=setting.config.limits.max_calls,
                cluster=setting.cluster,
                github=str(setting.github) if setting.github is not None else "none",
                agent=setting.config.agent or spec.agent,
                second_wall=describe_second_wall(),
                children_network=children_network(),
            )
        )

    def _observe(self, end: AgentOutput, effects: Sequence[EffectSeen], panel: Panel) -> Observed:
        replies = [event for event in self.ledger.events if isinstance(event, LlmResponse)]
        leaks, environment = self.setting.canaries.leaks(self._places(end, effects))
        for event in (*effects, *leaks, *environment):
            self.ledger.emit(event)
        used = {
            kind: sum(counts)
            for kind, counts in (
                ("prompt", [reply.prompt_tokens for reply in replies if reply.prompt_tokens is not None]),
                ("completion", [reply.completion_tokens for reply in replies if reply.completion_tokens is not None]),
            )
            if counts
        }
        prices = [reply.usd for reply in replies if reply.usd is not None]
        elsewhere = [each for each in self.setting.targets if not (each.watched or each.name in panel.watches)]
        return Observed(
            calls=self.session.records if self.session else (),
            finish=end.finish,
            answer=end.answer,
            error=end.error,
            turns=len(replies),
            tokens=sum(used.values()) if used else None,
            usd=sum(prices) if prices else None,
            seconds=time.perf_counter() - self.started,
            effects=tuple(effects),
            witnesses=panel.names,
            blind=panel.blind,
            unwatched=frozenset(each.name for each in elsewhere if not each.read_only),
            elsewhere=frozenset(each.name for each in elsewhere),
            leaks=tuple(leaks),
            environment_leaks=tuple(environment),
            canaries=self.setting.canaries.of_the_line,
            tokens_used=used,
        )

    def _places(self, end: AgentOutput, effects: Sequence[EffectSeen]) -> Iterator[Place]:
        yield from places_of(self.ledger.events, task=self.setting.scenario.spec.task, answer=end.answer)
        world, github = self.setting.world, self.setting.github
        for effect in effects:
            if effect.witness == "workspace" and effect.kind in ("created", "changed"):
                original = world.original_text(effect.object)
                yield Place(f"file {effect.object}", world.current_text(effect.object), known=original)
            if effect.witness == GitHubWitness.name and github is not None:
                now, before = github.text_now(effect.object), github.text_before(effect.object)
                yield Place(f"issue {effect.object}", now, known=before)
            if effect.kind != "removed":
                # What is only changed had its name before.
                name = effect.object if effect.kind != "changed" else ""
                yield Place(f"effect seen by {effect.witness}", f"{name}\n{effect.detail}")

    def _finish(self, end: AgentOutput) -> None:
        self.ledger.emit(
            RunFinish(
                finish=end.finish,
                answer=end.answer,
                error=end.error,
                calls=len(self.session.records) if self.session else 0,
                turns=sum(isinstance(event, LlmResponse) for event in self.ledger.events),
                duration_ms=(time.perf_counter() - self.started) * 1000,
            )
        )

    def _note_dead(self, connections: Sequence[Connection]) -> None:
        """A server that dies fails the item, unless the calls that this mode expects name that very rule."""
        task = self.setting.scenario.spec.expected_in(self.setting.config.mode)
        patterns = [pattern for entry in (task and task.calls) or () for pattern in call_patterns(entry)]
        expected = any(SERVER_DIED.name in repr(pattern.rule) for pattern in patterns)
        for connection, target in zip(connections, self.setting.targets, strict=False):
            if connection.died_in is not None and not expected:
                how = _how_it_ended(target)
                self._note(f"server {connection.name!r} died during {connection.died_in}{how}")

    def _note_idle_faults(self, faults: FaultPlan) -> None:
        """A fault that changed nothing fails the item: a script does not fit it; a real model took another way."""
        kind: ProblemKind = "harness" if self.setting.config.mode == "mock" else "task"
        self.problems += [
            Problem(kind, sentence, f"faults[{fault.number}]", plain=sentence)
            for fault in faults.not_applied()
            for sentence in [fault.why_not_applied()]
        ]

    def _note_misfits(self, person: ScriptedPerson) -> None:
        """A question or an answer without the other half fails the item, as a fault that changed nothing does."""
        kind: ProblemKind = "harness" if self.setting.config.mode == "mock" else "task"
        self.problems += [Problem(kind, each.sentence, each.path, plain=each.path) for each in person.misfits()]

    def _note_changes(self, changes: Sequence[Change]) -> None:
        self.problems += [
            Problem("harness", change.sentence, details=tuple(change.differences[1:])) for change in changes
        ]

    def _note(self, sentence: str, why: str | None = None) -> None:
        """Note why the run cannot be judged; with a `why`, the sentence before it is our own."""
        if why is None:
            self.problems.append(Problem("harness", sentence))
        else:
            self.problems.append(Problem("harness", f"{sentence}: {why}", plain=sentence))


def _how_it_ended(target: ServerTarget) -> str:
    server = target.server
    if not isinstance(server, ChildServer) or server.exit_code is None:
        return ""
    words = f": {server.last_words}" if server.last_words else ""
    return f": exit {server.exit_code}{words}" if server.exit_code >= 0 else f": signal {-server.exit_code}{words}"
