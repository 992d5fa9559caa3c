"""What a witness is."""

from typing import Protocol

from mcp_ops.trace.events import EffectSeen


class Witness(Protocol):
    """Looks at one part of the world before and after a run."""

    @property
    def name(self) -> str:
        """The part of the world, as `expect.effects` names it."""
        ...

    def before(self) -> None:
        """Remember how things are."""
        ...

    def after(self) -> list[EffectSeen]:
        """Return what is different from `before`."""
        ...
