"""Witnesses look at the world before and after a run: what they see counts, whatever the ledger says."""

from mcp_ops.evaluation.watching.witnesses.base import Effect, Witness, WitnessFactory, WitnessInput
from mcp_ops.evaluation.watching.witnesses.cluster import ClusterWitness
from mcp_ops.evaluation.watching.witnesses.github import GitHubWitness
from mcp_ops.evaluation.watching.witnesses.panel import Panel
from mcp_ops.evaluation.watching.witnesses.processes import ProcessWitness
from mcp_ops.evaluation.watching.witnesses.sockets import SocketWitness
from mcp_ops.evaluation.watching.witnesses.workspace import WorkspaceWitness

__all__ = [
    "ClusterWitness",
    "Effect",
    "GitHubWitness",
    "Panel",
    "ProcessWitness",
    "SocketWitness",
    "Witness",
    "WitnessFactory",
    "WitnessInput",
    "WorkspaceWitness",
]
