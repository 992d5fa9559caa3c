"""The programs that may run, one option table each. What stands in no table is refused."""

from mcp_ops.ops.guards.shell.options import Program
from mcp_ops.ops.guards.shell.tables.content import CAT, HEAD, SORT, TAIL, UNIQ, WC
from mcp_ops.ops.guards.shell.tables.date import DATE
from mcp_ops.ops.guards.shell.tables.find import FIND
from mcp_ops.ops.guards.shell.tables.grep import GREP
from mcp_ops.ops.guards.shell.tables.names import DU, LS, STAT

PROGRAMS: dict[str, Program] = {
    program.name: program for program in (LS, CAT, HEAD, TAIL, WC, GREP, FIND, DU, STAT, SORT, UNIQ, DATE)
}
