import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from opsproject import QUIET, Project, line, read, script

AGENT = """
import asyncio, os, subprocess, sys

async def agent(given):
    tools = await given.session.list_tools()
    await given.session.call_tool("read_file", {"path": "notes.md"})
    os.write(int(os.environ["READY"]), b"ready\\n")
    await asyncio.Event().wait()
"""


def alive(marker: str) -> list[str]:
    """Command lines of the processes that have a text in theirs."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            if marker in command:
                found.append(command)
    return found


@pytest.mark.covers("H44")
@pytest.mark.parametrize("transport", ["memory", "stdio"])
def test_ctrl_c_kills_children_keeps_the_trace_and_ends_in_2_without_a_traceback(
    transport: str, project: Project
) -> None:
    project.file("mine.py", AGENT)
    project.file("pytest.ini", "[pytest]\nops_agent = mine:agent\npythonpath = .\n")
    project.write(line("hangs", mock=script(read("notes.md"), "x")), line("never"))
    reader, writer = os.pipe()
    child = subprocess.Popen(
        [sys.executable, "-m", "pytest", *QUIET, f"--ops-transport={transport}", f"--basetemp={project.path}/base"],
        cwd=project.path,
        env={**os.environ, "READY": str(writer)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=[writer],
        encoding="utf-8",
        start_new_session=True,
    )
    os.close(writer)
    try:
        assert select.select([reader], [], [], 60)[0], "the agent never called"
        assert os.read(reader, 6) == b"ready\n"
        assert transport == "memory" or alive(f"{project.path}/base"), "no server runs as a child"
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=60)
    finally:
        os.close(reader)
        if child.poll() is None:
            child.kill()
    assert child.returncode == 2, out
    assert "KeyboardInterrupt" in out
    assert "Traceback" not in out
    assert "ExceptionGroup" not in out
    (trace,) = (project.path / "base").glob("**/trace.jsonl")
    assert '"tool_result"' in trace.read_text(encoding="utf-8")
    assert f"traces: {trace.parent.parent}" in out
    assert alive(f"{project.path}/base") == []
