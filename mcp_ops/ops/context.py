"""What every guard and runner of the ops server knows."""

from dataclasses import dataclass
from pathlib import Path

from mcp_ops.ops.guards.allowed import SHIPPED, Allowed
from mcp_ops.ops.workspace import Workspace

NO_CLUSTER = "no cluster was named when the server was made"


@dataclass(frozen=True)
class ClusterAccess:
    """The one cluster that the operator named. The ambient kubeconfig is never used.

    A kubeconfig may name a program that fetches credentials, and kubectl runs it: naming a kubeconfig is trusting it.
    """

    kubeconfig: Path
    """Absolute path. It need not exist: the tools then answer `cluster.kubeconfig_missing`."""
    context: str | None = None
    """None takes the kubeconfig's own current context."""
    kubectl: Path | None = None
    """Absolute path of the program; None when none was found."""


@dataclass(frozen=True)
class OpsContext:
    """The workspace, and the cluster if there is one."""

    workspace: Workspace
    cluster: ClusterAccess | None = None
    """None: every cluster tool answers `cluster.unavailable` without starting a program."""
    cluster_reason: str = NO_CLUSTER
    """Why there is no cluster, in words for the model."""
    second_wall: str = "absent: the tables are the only wall"
    """What confines a child process besides the tables; the trace says it."""
    allowed: Allowed = SHIPPED
    """Which programs and kinds can be named."""
