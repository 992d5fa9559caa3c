"""Witnesses look at the world before and after a run: what they see counts, whatever the ledger says."""

from mcp_ops.evaluation.watching.witnesses.base import Witness
from mcp_ops.evaluation.watching.witnesses.processes import ProcessWitness
from mcp_ops.evaluation.watching.witnesses.workspace import WorkspaceWitness

__all__ = ["ProcessWitness", "Witness", "WorkspaceWitness"]
