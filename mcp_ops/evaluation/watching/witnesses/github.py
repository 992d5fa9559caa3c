"""The witness of GitHub: it looks at the in-memory one itself, not at what a server says that it did there."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING

from mcp_ops.evaluation.watching.witnesses.base import Effect

if TYPE_CHECKING:
    from mcp_ops.github.memory.service import IssueSeen

    Issues = Mapping[str, IssueSeen]


class GitHubWitness:
    """Sees issues that were created, changed or removed, as `acme/web#101`.

    Args:
        look: Returns what is there now.
    """

    name = "github"

    def __init__(self, look: "Callable[[], Issues]") -> None:
        self._look = look
        self._known: Issues | None = None

    def before(self) -> None:
        """Remember what is there."""
        self._known = self._look()

    def after(self) -> list[Effect]:
        """Return one effect for each issue that differs.

        Raises:
            RuntimeError: `before` was not called.
        """
        if self._known is None:
            raise RuntimeError("the witness did not look before")
        known, now = self._known, self._look()
        return [
            *(Effect("created", name, issue.title) for name, issue in now.items() if name not in known),
            *(
                Effect("changed", name, _differing(known[name], issue))
                for name, issue in now.items()
                if name in known and known[name] != issue
            ),
            *(Effect("removed", name, issue.title) for name, issue in known.items() if name not in now),
        ]


def _differing(before: "IssueSeen", after: "IssueSeen") -> str:
    """Return the names of the parts that differ."""
    names = [field.name for field in fields(after)]
    return ", ".join(name for name in names if getattr(before, name) != getattr(after, name))
