"""`mcp-ops run`."""

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path

from mcp_ops.agent.graph import run_agent
from mcp_ops.agent.session import AgentInput, AgentOutput
from mcp_ops.cli.answer import print_answer
from mcp_ops.cli.errors import CommandError, reason
from mcp_ops.cli.provider import Provider, choose_provider
from mcp_ops.evaluation.config import OPS_SERVER, Limits, RunConfig
from mcp_ops.evaluation.session.cluster import find_cluster
from mcp_ops.evaluation.session.connection import connected
from mcp_ops.evaluation.session.process import kill_group
from mcp_ops.evaluation.session.recording import RecordingSession
from mcp_ops.evaluation.session.servers import server_targets
from mcp_ops.evaluation.watching.canaries import collect, environment_canaries
from mcp_ops.evaluation.world.secrets import secret_values
from mcp_ops.llm.mock import MockLLM, ScriptError
from mcp_ops.ops.guards.secret_names import DEFAULT
from mcp_ops.servers.ops import TOOLS, children_network, create_server, describe_second_wall, load_extension
from mcp_ops.trace.events import RunFinish, RunStart
from mcp_ops.trace.ledger import Ledger
from mcp_ops.trace.writer import TraceWriter


def run(args: argparse.Namespace) -> int:
    """Run the agent on one task; 1 when there is no answer."""
    provider = choose_provider(args.script, os.environ)
    workspace = _workspace(args)
    config = RunConfig(
        mode=provider.mode,
        kubeconfig=args.kubeconfig,
        kube_context=args.kube_context,
        guards=args.guards,
        limits=Limits(max_calls=args.max_calls),
    )
    names = DEFAULT if args.guards is None else load_extension(args.guards).secret_names
    canaries = collect((), secret_values(workspace, names), environment_canaries(MODEL_API_KEY=provider.api_key))
    with _open_writer(args.runs) as writer:
        ledger = Ledger(writer, echo=sys.stderr)
        ledger.set_redactor(canaries.redactor)
        output = asyncio.run(_work(args.task, workspace, config, provider, ledger))
    print_answer(output, writer, canaries.redactor, as_json=args.json)
    return 0 if output.finish == "answer" else 1


def _workspace(args: argparse.Namespace) -> Path:
    """Return the workspace, checked as the server checks it."""
    try:
        extension = None if args.guards is None else load_extension(args.guards)
        create_server(args.workspace, kubeconfig=args.kubeconfig, kube_context=args.kube_context, extension=extension)
    except ValueError as error:
        raise CommandError(str(error)) from None
    folder: Path = args.workspace
    return folder.resolve()


def _open_writer(folder: Path) -> TraceWriter:
    try:
        return TraceWriter(folder)
    except OSError as error:
        raise CommandError(f"no trace can be written to {folder}: {reason(error)}") from None


async def _work(task: str, workspace: Path, config: RunConfig, provider: Provider, ledger: Ledger) -> AgentOutput:
    """Run the agent between `run_start` and `run_finish`, also when the run is interrupted."""
    started = time.perf_counter()
    session: RecordingSession | None = None
    output = AgentOutput("error", error="the run was interrupted")
    cluster = await find_cluster(config, workspace)
    ledger.emit(
        RunStart(
            task=task,
            mode=provider.mode,
            model=provider.name,
            servers=[OPS_SERVER],
            tools=[tool.name for tool in TOOLS],
            max_calls=config.limits.max_calls,
            cluster=str(cluster) if cluster else "none",
            second_wall=describe_second_wall(),
            children_network=children_network(),
        )
    )
    try:
        targets = await server_targets((OPS_SERVER,), config, workspace, cluster=cluster, end_group=kill_group)
        async with connected(targets) as connections:
            session = RecordingSession(connections, ledger, max_calls=config.limits.max_calls)
            model = provider.model(session)
            output = await _ask(AgentInput(task, session, model, ledger.emit, config.limits.max_calls))
    finally:
        ledger.emit(
            RunFinish(
                finish=output.finish,
                answer=output.answer,
                error=output.error,
                calls=len(session.records) if session is not None else 0,
                turns=ledger.turns,
                duration_ms=(time.perf_counter() - started) * 1000,
            )
        )
    return output


async def _ask(given: AgentInput) -> AgentOutput:
    try:
        output = await run_agent(given)
    except ScriptError as error:
        return AgentOutput("error", error=str(error))
    if isinstance(given.model, MockLLM) and given.model.unused and output.finish == "answer":
        return AgentOutput("error", error=f"the script has entries left after the answer: {given.model.unused}")
    return output
