"""A bound on the work that one scenario line can cause while it is judged."""

MAX_STEPS = 1_000_000
"""Comparisons that one attempt may cost: seconds at most, and far more than any honest line needs."""


class TooMuchWork(Exception):
    """The expectations of a line are so large or so ambiguous that judging them does not end in time."""


class Work:
    """Counts steps and stops at a limit."""

    def __init__(self, limit: int = MAX_STEPS) -> None:
        self._left = limit

    def spend(self, steps: int = 1) -> None:
        """Count steps.

        Raises:
            TooMuchWork: The limit is reached.
        """
        self._left -= steps
        if self._left < 0:
            raise TooMuchWork
