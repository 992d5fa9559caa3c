"""The witness of the workspace."""

from pathlib import Path

from mcp_ops.evaluation.watching.witnesses.base import Effect
from mcp_ops.evaluation.watching.witnesses.tree import Snapshot, compare, snapshot


class WorkspaceWitness:
    """Sees what was created, changed or removed in a folder.

    Args:
        root: The folder.
        known: How the folder is known to be, when somebody has just looked.
    """

    name = "workspace"

    def __init__(self, root: Path, known: Snapshot | None = None) -> None:
        self._root = root
        self._known = known

    def before(self) -> None:
        """Remember the folder, unless it is known."""
        if self._known is None:
            self._known = snapshot(self._root)

    def after(self) -> list[Effect]:
        """Return one effect for each entry that differs, by path.

        Raises:
            RuntimeError: `before` was not called.
        """
        if self._known is None:
            raise RuntimeError("the witness did not look before")
        return [Effect(found.kind, found.path, found.detail) for found in compare(self._root, self._known)]
