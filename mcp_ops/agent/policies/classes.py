"""How dangerous a listed tool is: the most dangerous of its hints and of the first word of its name.

Only configuration makes it less dangerous. A tool that says nothing of itself counts as destructive.
"""

import re
from collections.abc import Mapping

from mcp_ops.agent.session import ToolHints, ToolInfo
from mcp_ops.trace.events import ToolClassName

_DESTRUCTIVE = """
clear delete destroy drain drop erase evict force kill nuke overwrite prune purge remove reset revoke rm rollback
shutdown terminate truncate unassign uninstall unpublish wipe
"""
_MUTATING = """
accept add annotate apply approve archive assign attach block cancel change close comment commit configure copy cordon
create cut deploy detach disable dismiss edit enable exec execute expand export fork grant import init insert install
invite invoke label lock make mark merge modify move mutate open patch pause pin post promote publish push put rebase
register rename reopen replace request rerun resolve restart restore resume retry run save scale schedule send set share
sign start stop submit subscribe suspend sync tag taint transfer trigger uncordon unlock update upgrade upload upsert
write
"""
DESTRUCTIVE_WORDS = frozenset(_DESTRUCTIVE.split())
"""First words of names of tools that take something away."""
MUTATING_WORDS = frozenset(_MUTATING.split())
"""First words of names of tools that change something."""

_ORDER: tuple[ToolClassName, ...] = ("read_only", "mutating", "destructive")
_BETWEEN_WORDS = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def class_of(tool: ToolInfo, configured: Mapping[str, ToolClassName] | None = None) -> ToolClassName:
    """Return the class of a listed tool.

    Args:
        tool: The tool as its server listed it. The hints of a server that ships here are its gate's own classes, so
            that they are enough; those of any other server are a claim, which the name can contradict.
        configured: Classes by the tool's name, `server.` in front or, where one server alone has it, without. They win
            over everything else.
    """
    name = own_name(tool)
    for key in (f"{tool.server}.{name}", tool.name):
        if configured and key in configured:
            return configured[key]
    hinted = _of_hints(tool.hints)
    return hinted if tool.own else max(hinted, _of_name(name, tool.server), key=_ORDER.index)


def own_name(tool: ToolInfo) -> str:
    """Return a tool's name on its server, without the server's name in front."""
    return tool.name.removeprefix(f"{tool.server}.") if tool.server else tool.name


def _of_hints(hints: ToolHints) -> ToolClassName:
    """Read the hints as the protocol defines them: what is not said is the worse of both."""
    if hints.read_only and not hints.destructive:
        return "read_only"
    return "mutating" if hints.destructive is False else "destructive"


def _of_name(name: str, server: str) -> ToolClassName:
    words = [word.lower() for word in _BETWEEN_WORDS.split(name) if word]
    if len(words) > 1 and words[0] == server.lower():
        # `github_create_issue` of the server github is create_issue.
        words = words[1:]
    first = words[0] if words else ""
    if first in DESTRUCTIVE_WORDS:
        return "destructive"
    return "mutating" if first in MUTATING_WORDS else "read_only"
