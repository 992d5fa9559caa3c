"""What stands around a child besides the guards: Landlock or bubblewrap, an empty network, no capabilities."""

from functools import lru_cache

from mcp_ops.ops.wall.base import NoWall, Start, Wall, Walled
from mcp_ops.ops.wall.bubblewrap import find_bubblewrap
from mcp_ops.ops.wall.landlock import find_landlock
from mcp_ops.ops.wall.network import children_network, confine, isolation
from mcp_ops.ops.wall.trial import holds

__all__ = [
    "NoWall",
    "Start",
    "Wall",
    "Walled",
    "children_network",
    "confine",
    "describe_second_wall",
    "isolation",
    "second_wall",
]


@lru_cache(maxsize=1)
def second_wall() -> Wall:
    """Return the first wall that holds on this machine: Landlock, else bubblewrap, else none."""
    why = []
    for find in (find_landlock, find_bubblewrap):
        found = find()
        if isinstance(found, str):
            why.append(found)
        elif holds(found):
            return found
        else:
            why.append(f"{found.name} does not hold when it is tried")
    return NoWall("; ".join(why))


def describe_second_wall() -> str:
    """Say what confines a child besides the guards: `landlock (ABI 7)`, `bubblewrap`, or `absent: …` and why."""
    return second_wall().name
