"""Optimal pairing: as many on the left as possible, each with one on the right that it fits."""

from collections import deque
from collections.abc import Mapping, Sequence

from mcp_ops.evaluation.matching.work import Work


class Pairing:
    """A largest pairing, grown one on the left at a time along augmenting paths."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.right_of: dict[int, int] = {}
        """Left to right."""
        self.left_of: dict[int, int] = {}
        """Right to left."""

    def add(self, left: int, edges: Mapping[int, Sequence[int]]) -> bool:
        """Pair one more on the left, re-pairing others where that helps; return whether it could be done.

        Args:
            left: Not paired yet.
            edges: For each on the left that was added, and for `left`, what it fits on the right.

        Raises:
            TooMuchWork: The search costs more than one line may.
        """
        came_from: dict[int, int] = {}
        queue = deque([left])
        while queue:
            current = queue.popleft()
            for right in edges[current]:
                self._work.spend()
                if right in came_from:
                    continue
                came_from[right] = current
                if right not in self.left_of:
                    self._flip(right, came_from)
                    return True
                queue.append(self.left_of[right])
        return False

    def _flip(self, right: int | None, came_from: Mapping[int, int]) -> None:
        while right is not None:
            left = came_from[right]
            before = self.right_of.get(left)
            self.left_of[right], self.right_of[left] = left, right
            right = before


def pair_all(edges: Mapping[int, Sequence[int]], work: Work) -> dict[int, int] | None:
    """Return a pairing of everything on the left, left to right, or None when there is none."""
    pairing = Pairing(work)
    return pairing.right_of if all(pairing.add(left, edges) for left in edges) else None
