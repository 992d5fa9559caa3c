"""How calls, and the patterns that stand for calls, read in a sentence or a table."""

from collections.abc import Sequence

from mcp_ops.evaluation.line.call_pattern import ALL_STATES, CallPattern
from mcp_ops.evaluation.observed import CallRecord
from mcp_ops.evaluation.outcome import NAME
from mcp_ops.evaluation.wording import shown
from mcp_ops.text import one_line


def show_call(call: CallRecord) -> str:
    """Return `read_file (denied: path.outside)`, and the fault if the line put one into the call."""
    words = call.state if call.rule is None else f"{call.state}: {one_line(call.rule, NAME)}"
    fault = "" if call.fault is None else f", injected fault {call.fault}"
    return f"{one_line(call.tool, NAME)} ({words}{fault})"


def show_pattern(pattern: CallPattern) -> str:
    """Return `kubectl_logs (executed)`."""
    return f"{show_tool(pattern)} ({_show_states(pattern)})"


def show_tool(pattern: CallPattern) -> str:
    """Return the tool that a pattern names, with its server where that is named too."""
    tool = "any call" if pattern.tool is None else _show_name(pattern.tool)
    return tool if pattern.server is None else f"{_show_name(pattern.server)}.{tool}"


def show_alternatives(patterns: Sequence[CallPattern]) -> str:
    """Return `read_file (executed) or search_files (executed)`."""
    return " or ".join(show_pattern(pattern) for pattern in patterns)


def show_calls(calls: Sequence[CallRecord], most: int = 3) -> str:
    """Return the first calls, and how many more there are."""
    more = f" and {len(calls) - most} more" if len(calls) > most else ""
    return ", ".join(show_call(call) for call in calls[:most]) + more


def _show_states(pattern: CallPattern) -> str:
    states = "any state" if pattern.states == ALL_STATES else " or ".join(sorted(pattern.states))
    return states if pattern.rule is None else f"{states}: {_show_name(pattern.rule)}"


def _show_name(name: object) -> str:
    return one_line(name, NAME) if isinstance(name, str) else shown(name, NAME)
