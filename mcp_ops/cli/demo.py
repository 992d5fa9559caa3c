"""`mcp-ops demo`."""

import argparse
import asyncio
import dataclasses
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from mcp_ops.cli import complain
from mcp_ops.cli.demo_cluster import with_cluster
from mcp_ops.cli.errors import CommandError, reason
from mcp_ops.cli.report import read, write_page
from mcp_ops.evaluation.config import RunConfig
from mcp_ops.evaluation.line.parse import read_file
from mcp_ops.evaluation.line.scenario import BadLine, Scenario
from mcp_ops.evaluation.line.script import MockEntry
from mcp_ops.evaluation.outcome import Outcome
from mcp_ops.evaluation.run import Harness

TAG = "demo"


def run(args: argparse.Namespace) -> int:
    """Run the demo scenarios with their scripts and make one page of them; 1 when one did not come out as expected."""
    scenarios = choose(args.scenarios, args.id)
    config = RunConfig(
        mode="mock",
        rootdir=_root(args.scenarios),
        kubeconfig=args.kubeconfig,
        kube_context=args.kube_context,
        trace_dir=args.runs,
        echo=True,
    )
    outcomes = asyncio.run(_run_all(scenarios, config))
    traces = [read(outcome.trace) for outcome in outcomes if outcome.trace is not None]
    if traces:
        write_page(traces, "Demo of the guarded ops agent", args.output)
    problems = [sentence for outcome in outcomes for sentence in _problems(outcome)]
    for sentence in problems:
        complain(sentence)
    return 1 if problems else 0


def choose(file: Path, ids: list[str] | None) -> list[Scenario]:
    """Return the scenarios to run, in the file's order.

    Raises:
        CommandError: The file cannot be read, has a bad line among them, or has none of them.
    """
    try:
        lines = list(read_file(file))
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {reason(error)}; name a file with --scenarios") from None
    wanted: list[Scenario] = []
    for line in lines:
        name, tags = (line.id, line.tags) if isinstance(line, BadLine) else (line.spec.id, line.spec.tags)
        if TAG in tags if ids is None else name in ids:
            if isinstance(line, BadLine):
                raise CommandError(f"{file}:{line.line}:{line.column}: {line.message}", status=1)
            wanted.append(line)
    missing = set(ids or ()) - {scenario.spec.id for scenario in wanted}
    if missing:
        raise CommandError(f"{file} has no scenario {', '.join(sorted(missing))}")
    if not wanted:
        raise CommandError(f"{file} has no scenario with the tag {TAG}; name some with --id")
    return wanted


async def _run_all(scenarios: Sequence[Scenario], config: RunConfig) -> list[Outcome]:
    if any("cluster" in scenario.spec.needs for scenario in scenarios):
        config = await with_cluster(config)
    with tempfile.TemporaryDirectory(prefix="mcp-ops-demo-") as scratch:
        harness = Harness(config, scratch=Path(scratch))
        return [await _run(scenario, harness) for scenario in scenarios]


async def _run(scenario: Scenario, harness: Harness) -> Outcome:
    """Run a scenario; one that needs what is not here is run all the same, to show how that looks."""
    outcome = await harness.run(scenario)
    if not outcome.unmet_needs:
        return outcome
    missing = " and ".join(outcome.unmet_needs)
    complain(f"{scenario.spec.id} needs a {missing}, which is not here: its run shows that, and proves nothing else")
    shown = await harness.run(_without(scenario, missing))
    safety = tuple(problem for problem in shown.problems if problem.kind == "safety")
    return dataclasses.replace(shown, problems=safety)


def _without(scenario: Scenario, missing: str) -> Scenario:
    """Return the scenario with a script that asks once and then says what came back."""
    spec = scenario.spec
    end = MockEntry(thought="What this needs is not here.", finish="I could not find out: ${last.text}")
    asks = [entry for entry in spec.mock or () if entry.action or entry.actions][:1]
    changed = {
        "title": f"{spec.title or spec.id} (without a {missing}: nothing is proven)",
        "needs": (),
        "mock": (*asks, end),
    }
    return dataclasses.replace(scenario, spec=spec.model_copy(update=changed))


def _root(file: Path) -> Path:
    """Return the folder that no workspace may lie outside of: the file's, or the current one if it is above."""
    here, folder = Path.cwd(), file.resolve().parent
    return here if folder.is_relative_to(here) else folder.parent


def _problems(outcome: Outcome) -> Iterator[str]:
    for problem in outcome.problems:
        yield f"{outcome.location}: {problem.message}"
    for file in outcome.redaction_failures:
        yield f"{outcome.location}: redaction failed: {file} holds a canary"
