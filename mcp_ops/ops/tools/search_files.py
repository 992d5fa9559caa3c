"""`search_files`: a regular expression over the text files of the workspace, in linear time."""

import asyncio

from pydantic import Field

from mcp_ops.gate import Arguments, Refuse, Result, Tool, ToolClass, executed
from mcp_ops.ops.context import OpsContext
from mcp_ops.ops.guards.search import SearchPlan, guard_search
from mcp_ops.ops.tools.searching import Search
from mcp_ops.text import one_line


class SearchFilesArguments(Arguments):
    """Arguments of `search_files`."""

    pattern: str = Field(
        description="Regular expression in RE2 syntax, matched line by line; (?i) in front ignores case.",
        examples=["connection refused", "(?i)timeout|refused"],
        min_length=1,
    )
    glob: str = Field(
        default="**",
        description="Which files: without a slash a name at any depth, with one a path from the workspace root. "
        "** crosses folders; {a,b} and [a-z] work.",
        examples=["*.md", "runbooks/**", "logs/*.log"],
    )


def guard(arguments: SearchFilesArguments, context: OpsContext, refuse: Refuse) -> SearchPlan:
    """Allow a pattern and a glob within limits."""
    return guard_search(arguments.pattern, arguments.glob, context.workspace, refuse)


async def run(plan: SearchPlan, context: OpsContext, refuse: Refuse) -> Result:
    """Search in a thread, so that a long search does not hold up the session."""
    search = await asyncio.to_thread(Search(plan, context.workspace, refuse).run)
    text = "\n".join([*search.hits, _summary(plan, search)])
    return executed(
        text,
        hits=len(search.hits),
        files=search.files,
        left_out=dict(search.left_out),
        stopped=search.stopped,
    )


def _summary(plan: SearchPlan, search: Search) -> str:
    hits = _count(len(search.hits), "hit") if search.hits else "no hit"
    parts = [f"{hits} in {_count(search.files, 'file')} searched"]
    if not search.files:
        parts = [f"no file to search fits '{one_line(plan.glob_text, 80)}'; a folder's files are 'FOLDER/**'"]
    if search.left_out:
        reasons = (_count(number, reason) for reason, number in sorted(search.left_out.items()))
        parts.append(f"left out: {', '.join(reasons)}")
    if search.stopped:
        parts.append(f"stopped after {search.stopped}: narrow the pattern or the glob")
    return f"[{'; '.join(parts)}]"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


SEARCH_FILES = Tool(
    name="search_files",
    description=(
        "Search the workspace's text files for a regular expression. Returns 'path:lineno: line', at most 100 hits "
        "or 8 KB. Secret files are left out and counted; links are not followed."
    ),
    arguments=SearchFilesArguments,
    guard=guard,
    run=run,
    classification=ToolClass.READ_ONLY,
)
