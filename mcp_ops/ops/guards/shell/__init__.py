"""The shell guard: twelve programs, an option table each, and nothing of a shell but its quotes and globs."""

from mcp_ops.ops.guards.shell.guard import ShellPlan, guard_command
from mcp_ops.ops.guards.shell.rules import RULES
from mcp_ops.ops.guards.shell.tables import PROGRAMS

__all__ = ["PROGRAMS", "RULES", "ShellPlan", "guard_command"]
