"""How many calls a run may make, and what happens when they are made."""

from dataclasses import dataclass

LAST_WORDS = (
    "The budget of calls is spent and no tool can be called any more. "
    "Answer the user now, from the results that you have, and say what is missing."
)
"""What the model is told in a last turn without tools."""


@dataclass(frozen=True)
class Budget:
    """Calls that a run may make."""

    calls: int
    last_turn: bool = False
    """Once they are made the model is asked once more, without tools, and what it says then is the answer."""

    def last_words(self, made: int) -> str | None:
        """Return what to tell the model when the turn after so many calls is its last one, else None."""
        return LAST_WORDS if self.last_turn and made >= self.calls else None

    def ends(self, *, before: int, after: int) -> bool:
        """Tell whether the model is not asked again, given how many calls were made before and after a turn."""
        return after >= self.calls and (not self.last_turn or before >= self.calls)
