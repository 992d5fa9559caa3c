"""Scenarios, run and judged. Knows no pytest.

Names are imported when they are first used, so that reading a scenario file costs no MCP client.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_ops.evaluation.config import Limits, RunConfig, ServerSpec
    from mcp_ops.evaluation.observed import CallRecord, Observed
    from mcp_ops.evaluation.outcome import Outcome, Problem
    from mcp_ops.evaluation.run import run_scenario
    from mcp_ops.evaluation.watching.witnesses import Effect, Witness, WitnessFactory, WitnessInput

__all__ = [
    "CallRecord",
    "Effect",
    "Limits",
    "Observed",
    "Outcome",
    "Problem",
    "RunConfig",
    "ServerSpec",
    "Witness",
    "WitnessFactory",
    "WitnessInput",
    "run_scenario",
]

_HOME = {
    **dict.fromkeys(("Limits", "RunConfig", "ServerSpec"), "config"),
    **dict.fromkeys(("CallRecord", "Observed"), "observed"),
    **dict.fromkeys(("Outcome", "Problem"), "outcome"),
    **dict.fromkeys(("Effect", "Witness", "WitnessFactory", "WitnessInput"), "watching.witnesses"),
    "run_scenario": "run",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
