"""What a call may name: the programs and the kinds of one server."""

from collections.abc import Mapping
from dataclasses import dataclass

from mcp_ops.ops.guards.kubectl import KINDS
from mcp_ops.ops.guards.shell.options import Program
from mcp_ops.ops.guards.shell.tables import PROGRAMS


@dataclass(frozen=True, eq=False)
class Allowed:
    """The tables of one server: what ships, and what its operator adds."""

    programs: Mapping[str, Program]
    """By bare name."""
    kinds: Mapping[str, tuple[str, ...]]
    """In the form of `mcp_ops.ops.guards.kubectl.KINDS`."""


SHIPPED = Allowed(PROGRAMS, KINDS)
"""What every server has."""
