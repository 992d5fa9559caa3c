"""Lines with a GitHub, and the run of one."""

import json
from pathlib import Path
from typing import Any

from mcp_ops.evaluation.config import RunConfig
from mcp_ops.evaluation.line.parse import parse_line
from mcp_ops.evaluation.line.scenario import Scenario
from mcp_ops.evaluation.outcome import Outcome
from mcp_ops.evaluation.run import Harness

WEB = {"owner": "acme", "repo": "web"}
SMALL: dict[str, Any] = {"repositories": {"acme/web": {"issues": {"3": {"title": "Checkout is slow"}}}}}
LIST = {"tool": "list_issues", "args": WEB}
OPEN = {"tool": "create_issue", "args": {**WEB, "title": "Investigate checkout CI", "body": "The unit job fails."}}


def github_line(*turns: dict[str, Any] | str, github: dict[str, Any] | None = None, **keys: Any) -> dict[str, Any]:
    """A line whose model makes these calls and gives the last text as its answer."""
    mock = [
        {"thought": "t", "finish": turn} if isinstance(turn, str) else {"thought": "t", "action": turn}
        for turn in turns
    ]
    world = {"github": SMALL if github is None else github}
    return {"id": "g", "task": "look", "server": "github", "world": world, "mock": mock, "expect": {}, **keys}


def scenario_of(line: dict[str, Any], file: Path | None = None) -> Scenario:
    """The line as it would stand in a file."""
    scenario = parse_line(json.dumps(line, ensure_ascii=False), file, 1)
    assert isinstance(scenario, Scenario), scenario
    return scenario


async def run_line(line: dict[str, Any], folder: Path, *, file: Path | None = None, **config: Any) -> Outcome:
    """Run a line with a folder as its root, and keep the trace there."""
    harness = Harness(
        RunConfig(rootdir=folder, trace_dir=folder / "traces", **config),
        scratch=folder.parent / f"{folder.name}-scratch",
    )
    try:
        return await harness.run(scenario_of(line, file))
    finally:
        harness.close()


def messages(outcome: Outcome) -> list[str]:
    """What is wrong with a run."""
    return [problem.message for problem in outcome.problems]
