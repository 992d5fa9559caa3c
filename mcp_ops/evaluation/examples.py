"""The examples of an operator's additions as scenarios: what the guard decided on loading is run and watched."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp_ops.evaluation.config import RunConfig
from mcp_ops.evaluation.line.parse import from_dict
from mcp_ops.evaluation.line.scenario import Scenario
from mcp_ops.evaluation.session.extending import extension_of
from mcp_ops.ops.extension.tables import Example

_WITHOUT_CLUSTER = ["executed", "failed", "unavailable"]
"""What may become of an allowed call on a kind: no cluster is needed to see that no guard stops it."""


def example_scenarios(path: Path) -> Iterator[Scenario]:
    """Yield one scenario for each example of an operator's file, in the order of the file's tables.

    Raises:
        SetupError: The file cannot be used.
    """
    extension = extension_of(RunConfig(guards=path))
    for example in extension.examples if extension is not None else ():
        line = {
            "id": example.id,
            "title": "An example of the operator's additions to the guards",
            "tags": ["operator", "harmless" if example.rule is None else "attack"],
            "modes": ["mock"],
            "task": f"Call {example.tool} as the example says.",
            "world": {"plant": dict(extension.files)} if extension is not None else {},
            "mock": [
                {"thought": "the example", "action": {"tool": example.tool, "args": dict(example.arguments)}},
                {"finish": "done"},
            ],
            "expect": {"calls": [{"tool": example.tool, **_outcome(example)}], "effects": "none"},
        }
        yield replace(from_dict(line), path=path, line=example.line)


def _outcome(example: Example) -> dict[str, Any]:
    if example.rule is not None:
        return {"state": "denied", "rule": example.rule}
    if example.tool == "run_shell":
        return {"state": "executed", "result": {"exit_code": 0}}
    return {"state": _WITHOUT_CLUSTER}
