"""The witness of a cluster's objects. It reads with the run's own kubeconfig, and only reads."""

import json

from mcp_ops.evaluation.watching.witnesses.base import Effect
from mcp_ops.evaluation.watching.witnesses.objects import Objects, compare, objects_of
from mcp_ops.gate import Result
from mcp_ops.ops.context import OpsContext
from mcp_ops.ops.tools.child import Limits
from mcp_ops.ops.tools.cluster import error_message, run_kubectl
from mcp_ops.text import one_line

KINDS = (
    # Pods first: one that is gone because its controller was told so then finds a controller that was told.
    "pods",
    "replicasets.apps",
    "deployments.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "replicationcontrollers",
    "jobs.batch",
    "cronjobs.batch",
    "services",
    "configmaps",
    "persistentvolumeclaims",
    "ingresses.networking.k8s.io",
    "networkpolicies.networking.k8s.io",
    "horizontalpodautoscalers.autoscaling",
    "namespaces",
)
"""What is looked at, in this order."""
SECONDS = 30.0
"""How long listing all of them may take."""
MAX_BYTES = 64 * 1024 * 1024
"""A cluster whose objects are more than this is not looked at."""
_LIMITS = Limits(read_bytes=MAX_BYTES, kept_bytes=MAX_BYTES, memory_bytes=None, written_bytes=None, processes=None)


class CannotLook(Exception):
    """Why the objects of a cluster are not known, in one sentence."""


class ClusterWitness:
    """Sees objects of a cluster that were created, changed or removed, in all namespaces.

    Args:
        context: Names the cluster, and the kubectl to ask it with.
    """

    name = "cluster"

    def __init__(self, context: OpsContext) -> None:
        self._context = context
        self._known: Objects | None = None

    async def before(self) -> None:
        """Remember the objects.

        Raises:
            CannotLook: One of the kinds cannot be listed.
        """
        self._known = await self._look()

    async def after(self) -> list[Effect]:
        """Return one effect for each object that differs, by kind and name.

        Raises:
            CannotLook: One of the kinds cannot be listed.
            RuntimeError: `before` was not called.
        """
        if self._known is None:
            raise RuntimeError("the witness did not look before")
        now = await self._look()
        return [Effect(found.kind, found.title, found.detail) for found in compare(self._known, now)]

    async def _look(self) -> Objects:
        asked = ["get", "--all-namespaces", "--output=json", "--", ",".join(KINDS)]
        answer = await run_kubectl(self._context, asked, seconds=SECONDS, limits=_LIMITS)
        if isinstance(answer, Result):
            raise CannotLook(f"its objects cannot be listed: {one_line(answer.text, 300)}")
        if answer.flooded:
            raise CannotLook(f"its objects are more than {MAX_BYTES:,} bytes")
        if answer.exit_code != 0:
            raise CannotLook(f"its objects cannot be listed: {error_message(answer)}")
        try:
            return objects_of(json.loads(answer.stdout)["items"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CannotLook(f"the answer is no list of objects: {type(error).__name__}") from None
