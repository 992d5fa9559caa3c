"""What a scenario costs, against the least that such an item can cost.

The floor is a bare pytest item that runs a compiled graph of the same six steps, edges and state, opens one in-process
MCP client, makes two calls and leaves one pytest-html row. A scenario does that too, and decides two
guards, looks at the world before and after, matches its expectations, writes a trace and renders it into the row.

    python benchmarks/floor.py [--items 200] [--rounds 5]

Prints the CPU seconds an item costs on either side, start-up taken off, and their ratio. Start-up is what the first
items cost: imports that wait for an item, the first collection of the garbage that they leave, caches.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

WARM_UP = 100
"""Items that belong to the start-up, on either side."""

BARE_ITEMS = """
import asyncio
from pathlib import Path
from typing import TypedDict

import mcp_types
import pytest
import pytest_html
from langgraph.graph import END, START, StateGraph
from mcp import Client
from mcp.server.lowlevel import Server

WORKSPACE = Path(__file__).parent / "workspace"


class State(TypedDict):
    task: str
    history: tuple[str, ...]
    steps: int
    done: bool
    answer: str | None
    error: str | None


def build_graph():
    graph = StateGraph(State)

    async def reason(state):
        return {"history": (*state["history"], "reason")}

    async def act(state, config):
        client = config["configurable"]["client"]
        await client.call_tool("read_file", {"path": "notes.md"})
        steps = state["steps"] + 1
        return {"history": (*state["history"], "act"), "steps": steps, "done": steps >= 8}

    async def finalize(state):
        return {"history": (*state["history"], "finalize"), "done": True, "answer": "restart"}

    graph.add_node("reason", reason)
    graph.add_node("act", act)
    graph.add_node("finalize", finalize)
    graph.add_edge(START, "reason")
    graph.add_conditional_edges(
        "reason", lambda state: "finalize" if state["steps"] == 2 else "act", ["reason", "act", "finalize"]
    )
    graph.add_conditional_edges(
        "act", lambda state: "finalize" if state["done"] else "reason", ["reason", "finalize"]
    )
    graph.add_edge("finalize", END)
    return graph.compile()


GRAPH = build_graph()
LISTING = mcp_types.ListToolsResult(
    tools=[mcp_types.Tool(name="read_file", input_schema={"type": "object"})]
)


async def list_tools(context, params):
    return LISTING


async def call_tool(context, params):
    text = (WORKSPACE / params.arguments["path"]).read_text(encoding="utf-8")
    return mcp_types.CallToolResult(content=[mcp_types.TextContent(text=text)])


async def run_once():
    async with Client(Server("bare", on_list_tools=list_tools, on_call_tool=call_tool)) as client:
        start = {"task": "", "history": (), "steps": 0, "done": False, "answer": None, "error": None}
        final = await GRAPH.ainvoke(start, {"configurable": {"client": client}, "recursion_limit": 40})
    assert final["history"] == ("reason", "act", "reason", "act", "reason", "finalize")


def pytest_collect_file(file_path, parent):
    if file_path.name == "items.bare":
        return BareFile.from_parent(parent, path=file_path)


class BareFile(pytest.File):
    def collect(self):
        for number in range(int(self.path.read_text(encoding="utf-8"))):
            yield BareItem.from_parent(self, name=f"bare-{number}")


class BareItem(pytest.Item):
    def runtest(self):
        with asyncio.Runner() as runner:
            runner.run(run_once())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.when == "call":
        report.extras = [pytest_html.extras.html("<p>two calls</p>")]
    return report
"""


def scenario(number: int) -> str:
    """Return one line: two calls that run, one answer, everything expected."""
    read = {"action": {"tool": "read_file", "args": {"path": "notes.md"}}}
    return json.dumps(
        {
            "id": f"two-calls-{number}",
            "task": "Read the notes twice.",
            "world": {"workspace": "workspace"},
            "mock": [read, read, {"finish": "${last.text}"}],
            "expect": {
                "calls": [{"tool": "read_file", "args": {"path": "notes.md"}}] * 2,
                "answer": {"$contains": "restart"},
            },
        }
    )


def lay_out(folder: Path, items: int, *, bare: bool) -> None:
    """Write a folder with `items` items of one kind."""
    (folder / "workspace").mkdir(parents=True)
    (folder / "workspace" / "notes.md").write_text("restart the service after the deploy\n" * 5, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    if bare:
        (folder / "conftest.py").write_text(BARE_ITEMS, encoding="utf-8")
        (folder / "items.bare").write_text(str(items), encoding="utf-8")
    else:
        lines = "\n".join(scenario(number) for number in range(items))
        (folder / "scenarios.jsonl").write_text(lines + "\n", encoding="utf-8")


def cpu_seconds(folder: Path, *, bare: bool) -> float:
    """Run pytest on a folder and return the CPU seconds of the whole process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    plugins = ["-p", "no:opsagent"] if bare else ["--ops-mode=mock"]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:langsmith_plugin",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:asyncio",
        *plugins,
    ]
    command += ["--html=report.html", "--self-contained-html"]
    done = subprocess.run(
        command,
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},
    )
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def cost_of_one(scratch: Path, items: int, *, bare: bool) -> float:
    """Return CPU seconds an item: what a long run costs more than a short one."""
    kind = "bare" if bare else "scenario"
    return (
        cpu_seconds(scratch / f"{kind}-long", bare=bare) - cpu_seconds(scratch / f"{kind}-short", bare=bare)
    ) / items


def main() -> None:
    """Measure both sides in turn and print their medians and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        for bare in (True, False):
            kind = "bare" if bare else "scenario"
            lay_out(scratch / f"{kind}-long", WARM_UP + asked.items, bare=bare)
            lay_out(scratch / f"{kind}-short", WARM_UP, bare=bare)
        pairs = [
            (cost_of_one(scratch, asked.items, bare=True), cost_of_one(scratch, asked.items, bare=False))
            for _ in range(asked.rounds)
        ]
    floor, scenario_cost = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(ours / bare for bare, ours in pairs)
    print(f"bare item  {floor * 1000:6.2f} ms CPU")
    print(f"scenario   {scenario_cost * 1000:6.2f} ms CPU")
    print(f"ratio      {ratio:6.2f}  (median of {asked.rounds} pairs, {asked.items} items each)")


if __name__ == "__main__":
    main()
