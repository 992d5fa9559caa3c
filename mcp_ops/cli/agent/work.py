"""One run of `mcp-ops agent`, between `run_start` and `run_finish`."""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from mcp_ops.agent import run_command_line_agent
from mcp_ops.agent.policies.confirmation import Confirmation
from mcp_ops.agent.session import AgentInput, AgentOutput
from mcp_ops.cli.agent.interrupts import Interrupts
from mcp_ops.cli.agent.progress import Progress
from mcp_ops.evaluation.session.connection import Connection, ServerStartError, ServerTarget, connected
from mcp_ops.evaluation.session.context import context_of
from mcp_ops.evaluation.session.loading import described
from mcp_ops.evaluation.session.recording import RecordingSession
from mcp_ops.llm.base import NativeModel
from mcp_ops.trace.events import RunFinish, RunStart, ToolClassName
from mcp_ops.trace.ledger import Ledger


@dataclass
class Work:
    """A run that is about to begin."""

    task: str
    model: NativeModel
    targets: Sequence[ServerTarget]
    variables: int | None
    """Descriptor of the file of GitHub's variables. It is closed once the servers have it."""
    confirm: Confirmation
    ledger: Ledger
    progress: Progress
    max_calls: int
    max_writes: int
    tool_classes: Mapping[str, ToolClassName]
    session: RecordingSession | None = None

    async def run(self, interrupts: Interrupts) -> AgentOutput:
        """Run the agent. However it ends, the servers are gone and the trace is whole.

        Raises:
            asyncio.CancelledError: A signal ended it.
        """
        started = time.perf_counter()
        output = AgentOutput("error", error="the run was interrupted")
        alive = asyncio.create_task(self.progress.keep_alive())
        try:
            with interrupts.heeded():
                output = await self._converse()
        finally:
            alive.cancel()
            self._begin(())
            self._finish(output, (time.perf_counter() - started) * 1000)
            with suppress(OSError):  # the terminal may be gone
                self.progress.end()
        return output

    async def _converse(self) -> AgentOutput:
        try:
            # No server of somebody else is started while the variables can still be read.
            ours = [target for target in self.targets if getattr(target.server, "descriptors", ())]
            async with connected(ours) as first:
                self._close_variables()
                async with connected([target for target in self.targets if target not in ours]) as others:
                    return await self._ask(_in_order([*first, *others], self.targets))
        except ServerStartError as error:
            return AgentOutput("error", error=str(error))
        except Exception as error:
            return AgentOutput("error", error=f"a server failed: {described(error)}")
        finally:
            self._close_variables()

    async def _ask(self, connections: Sequence[Connection]) -> AgentOutput:
        session = self.session = RecordingSession(
            connections,
            self.ledger,
            max_calls=self.max_calls,
            confirm=self.confirm,
            max_writes=self.max_writes,
            tool_classes=self.tool_classes,
        )
        tools = [tool.name for tool in await session.list_tools()]
        self._begin(tools)
        self.progress.say(
            f"the model {self.model.name} has {len(tools)} tools of {', '.join(each.name for each in connections)}"
        )
        context = await context_of(connections, self.progress.say)
        given = AgentInput(self.task, session, self.model, self.ledger.emit, self.max_calls, context)
        try:
            return await run_command_line_agent(given)
        finally:
            session.end()

    def _close_variables(self) -> None:
        if self.variables is not None:
            with suppress(OSError):
                os.close(self.variables)
            self.variables = None

    def _begin(self, tools: Sequence[str]) -> None:
        """Write how the run began, once."""
        if not any(isinstance(event, RunStart) for event in self.ledger.events):
            self.ledger.emit(
                RunStart(
                    task=self.task,
                    mode="live",
                    model=self.model.name,
                    transport="stdio",
                    servers=[target.name for target in self.targets],
                    tools=list(tools),
                    max_calls=self.max_calls,
                    agent="command-line",
                )
            )

    def _finish(self, output: AgentOutput, duration_ms: float) -> None:
        self.ledger.emit(
            RunFinish(
                finish=output.finish,
                answer=output.answer,
                error=output.error,
                calls=len(self.session.records) if self.session is not None else 0,
                turns=self.ledger.turns,
                duration_ms=duration_ms,
            )
        )


def _in_order(connections: Sequence[Connection], targets: Sequence[ServerTarget]) -> list[Connection]:
    places = [target.name for target in targets]
    return sorted(connections, key=lambda connection: places.index(connection.name))
