"""`mcp-ops agent` as a program, in front of a scripted model and an in-memory GitHub or a foreign server."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from githubworld import TOKEN, state
from scripted_model import KEY, ScriptedModel, calls, says, scripted_model

from mcp_ops.evaluation.world.loopback import loopback_socket, served
from mcp_ops.github.memory.service import MemoryGitHub
from mcp_ops.github.memory.state import GitHubState
from mcp_ops.trace.reader import read_trace

HERE = Path(__file__).parent
ISSUE = {"owner": "acme", "repo": "web", "title": "Checkout is slow"}
PATH = {"PATH": os.environ["PATH"]}


@dataclass
class Ended:
    """How the program ended."""

    status: int
    out: str
    err: str
    runs: Path

    @property
    def states(self) -> list[tuple[str, str, str | None]]:
        """Tool, state and rule of each call."""
        (run,) = self.runs.iterdir()
        events = [event.payload for event in read_trace(run / "trace.jsonl").events if event.event == "tool_result"]
        return [(each.tool, each.state, each.rule) for each in events]


async def started(folder: Path, env: Mapping[str, str], *options: str) -> asyncio.subprocess.Process:
    """Start the program without a terminal."""
    words = ["-m", "mcp_ops.cli", "agent", "Do it.", "--runs", str(folder / "runs"), *options]
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *(sys.executable, *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        env={**PATH, **env},
        cwd=folder,
        start_new_session=True,
    )


async def ended(process: asyncio.subprocess.Process, folder: Path) -> Ended:
    out, err = await process.communicate()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode("utf-8"), err.decode("utf-8"), folder / "runs")


@asynccontextmanager
async def github_on_loopback() -> AsyncIterator[tuple[MemoryGitHub, dict[str, str]]]:
    """Yield an in-memory GitHub, and the variables that lead the server to it."""
    memory, listener = MemoryGitHub(GitHubState.model_validate(state()), token=TOKEN), loopback_socket()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    variables = {"GITHUB_API_URL": url, "GITHUB_TOKEN": TOKEN, "GITHUB_REPOS": "acme/web,acme/api"}
    async with served(memory.asgi, listener):
        yield memory, {**variables, "GITHUB_WRITE_REPOS": "acme/web"}


async def with_github(folder: Path, *replies: Mapping[str, Any], options: tuple[str, ...] = ()) -> tuple[Ended, Any]:
    """Run the agent with the GitHub server to its end; return also the issues that were opened."""
    with scripted_model(*replies) as model:
        async with github_on_loopback() as (memory, variables):
            before = set(memory.snapshot())
            end = await ended(await started(folder, {**variables, **model.environment}, *options), folder)
            return end, sorted(set(memory.snapshot()) - before)


@contextmanager
def with_notes(folder: Path, *replies: Mapping[str, Any], held: bool = False) -> Iterator[tuple[ScriptedModel, str]]:
    """Yield a scripted model, and what `--server` says of a foreign server with notes."""
    (folder / "notes").mkdir()
    with scripted_model(*replies, held=held) as model:
        yield model, f"notes={sys.executable} {HERE / 'notes_server.py'} {folder / 'notes'}"


async def run_notes(folder: Path, *replies: Mapping[str, Any], options: tuple[str, ...] = ()) -> tuple[Ended, Any]:
    with with_notes(folder, *replies) as (model, server):
        process = await started(folder, model.environment, "--server", server, *options)
        return await ended(process, folder), model.requests


WRITE = ("create_note", {"title": "x"})


@pytest.mark.covers("D8")
class TestWrites:
    async def test_without_a_terminal_a_write_is_declined_and_the_status_says_so(self, tmp_path: Path) -> None:
        """Case github-agent-010."""
        end, opened = await with_github(tmp_path, calls(("create_issue", ISSUE)), says("It was not opened."))
        assert end.status == 3
        assert opened == []
        assert end.out == "| It was not opened.\n"
        assert end.states == [("create_issue", "declined", "confirm.declined")]
        assert 'call 1: create_issue owner="acme"' in end.err
        assert "-> declined (confirm.declined)" in end.err

    async def test_yes_opens_an_issue_once_and_not_twice(self, tmp_path: Path) -> None:
        """Case github-agent-013."""
        twice = calls(("create_issue", ISSUE), ("create_issue", ISSUE))
        end, opened = await with_github(tmp_path, twice, says("Opened."), options=("--yes",))
        assert [state for _, state, _ in end.states] == ["executed", "declined"]
        assert opened == ["acme/web#101"]
        assert end.status == 3

    async def test_yes_is_not_for_a_foreign_server_and_yes_tool_is(self, tmp_path: Path) -> None:
        asked = calls(WRITE, ("note", {}))
        end, _ = await run_notes(tmp_path, asked, says("x"), options=("--yes", "--yes-tool", "note"))
        assert end.states == [("create_note", "declined", "confirm.declined"), ("note", "executed", None)]

    async def test_max_writes_ends_what_options_confirm(self, tmp_path: Path) -> None:
        asked = calls(*(("create_note", {"title": str(number)}) for number in range(3)))
        options = ("--yes-tool", "create_note", "--max-writes", "1")
        end, _ = await run_notes(tmp_path, asked, says("x"), options=options)
        assert [rule for _, _, rule in end.states] == [None, "writes.spent", "writes.spent"]
        assert end.status == 0

    async def test_a_tool_class_that_is_given_wins(self, tmp_path: Path) -> None:
        asked = calls(("note", {}), ("list_notes", {}))
        options = ("--tool-class", "note=read_only", "--tool-class", "notes.list_notes=mutating")
        end, _ = await run_notes(tmp_path, asked, says("x"), options=options)
        assert [state for _, state, _ in end.states] == ["executed", "declined"]


@pytest.mark.covers("D7")
class TestARun:
    async def test_the_watch_list_and_the_instructions_stand_in_the_first_prompt_as_data(self, tmp_path: Path) -> None:
        _, requests = await run_notes(tmp_path, says("x"))
        system = json.dumps(requests[0]["system"], ensure_ascii=False)
        for told in ("What server notes says of itself", "Notes are kept for good.", "acme/web", "<U+202E>"):
            assert told in system
        assert "\u202e" not in system
        assert "\\u001b" not in system

    async def test_the_github_servers_watch_list_does_too(self, tmp_path: Path) -> None:
        with scripted_model(says("x")) as model:
            async with github_on_loopback() as (_, variables):
                await ended(await started(tmp_path, {**variables, **model.environment}), tmp_path)
        assert "The resource devops://watchlist of server github:" in str(model.requests[0]["system"])
        assert '{"owner": "acme", "repo": "api"}' in str(model.requests[0]["system"])

    async def test_a_declined_write_is_a_step_and_the_last_turn_has_no_tools(self, tmp_path: Path) -> None:
        end, requests = await run_notes(tmp_path, calls(WRITE), says("Not done."), options=("--max-steps", "1"))
        assert end.out == "| Not done.\n"
        assert [rule for _, _, rule in end.states] == ["confirm.declined"]
        assert [request.get("tool_choice") for request in requests] == [None, {"type": "none"}]

    async def test_without_an_answer_the_status_is_1(self, tmp_path: Path) -> None:
        read = calls(("list_notes", {}))
        end, _ = await run_notes(tmp_path, read, read, options=("--max-steps", "1"))
        assert (end.status, end.out) == (1, "")
        assert "the calls were spent before there was an answer" in end.err

    async def test_json_is_one_object_on_stdout(self, tmp_path: Path) -> None:
        end, _ = await run_notes(tmp_path, calls(WRITE), says("Not done."), options=("--json",))
        told = json.loads(end.out)
        assert (told["finish"], told["answer"], told["calls"], told["declined"]) == ("answer", "Not done.", 1, 1)
        assert told["trace"].endswith(f"{told['run_id']}/trace.jsonl")

    async def test_progress_is_plain_lines_where_no_terminal_is(self, tmp_path: Path) -> None:
        asked = calls(("list_notes", {"a\x1b[2J": "\u202e::error::\n##[x]"}))
        end, _ = await run_notes(tmp_path, asked, says("::set-output name=x::y\x1b[2J"))
        first, *lines = end.err.splitlines()
        assert first == "the model claude-sonnet-5-5 has 5 tools of notes"
        assert [each.partition(":")[0] for each in lines] == ["turn 1", "call 1", "turn 2", "mcp-ops"]
        for hidden in ("\x1b", "\u202e", "\r", "##["):
            assert hidden not in end.err + end.out
        assert all(line.startswith("| ") for line in end.out.splitlines())

    async def test_a_server_that_does_not_start_is_one_sentence(self, tmp_path: Path) -> None:
        with scripted_model() as model:
            options = ("--server", "gone=/no/such/program")
            end = await ended(await started(tmp_path, model.environment, *options), tmp_path)
        assert end.status == 1
        assert "mcp-ops: server 'gone' did not start: /no/such/program: no such file or directory\n" in end.err
        assert "Traceback" not in end.err

    async def test_sigterm_ends_the_program_and_its_server(self, tmp_path: Path) -> None:
        with with_notes(tmp_path, says("too late"), held=True) as (model, server):
            process = await started(tmp_path, model.environment, "--server", server)
            assert await asyncio.to_thread(model.asked.acquire, timeout=60)
            child = int((tmp_path / "server.pid").read_text("utf-8"))
            process.send_signal(signal.SIGTERM)
            end = await ended(process, tmp_path)
        assert end.status == 128 + signal.SIGTERM
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)
        (run,) = end.runs.iterdir()
        assert read_trace(run / "trace.jsonl").finish is not None


def environment_of(process: int) -> dict[str, str]:
    """Return what a process was started with, as the system tells everybody of its user."""
    text = Path(f"/proc/{process}/environ").read_text("utf-8")
    return dict(entry.split("=", 1) for entry in text.split("\0") if entry)


def files_of(process: int) -> list[str]:
    """Return what a process has open."""
    return [str(each.readlink()) for each in Path(f"/proc/{process}/fd").iterdir()]


def children_of(process: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = (folder / "stat").read_text("utf-8").rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == process:
            found.append(int(folder.name))
    return found


@pytest.mark.covers("D9")
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system has no /proc to look into")
class TestEnvironments:
    async def test_the_agent_has_no_github_token_and_the_server_no_model_key(self, tmp_path: Path) -> None:
        others = {"GH_TOKEN": "gho_0other0token0", "HOME": str(tmp_path), "AWS_SECRET_ACCESS_KEY": "kept-from-servers"}
        with scripted_model(says("x"), held=True) as model:
            async with github_on_loopback() as (_, variables):
                process = await started(tmp_path, {**variables, **others, **model.environment})
                assert await asyncio.to_thread(model.asked.acquire, timeout=60)
                agent, (child,) = environment_of(process.pid), children_of(process.pid)
                server = environment_of(child)
                files = files_of(process.pid)
                model.may_reply.set()
                end = await ended(process, tmp_path)
        assert end.status == 0
        assert {name for name in agent if name.startswith(("GITHUB_", "GH_"))} == set()
        assert TOKEN not in repr(agent)
        assert agent["ANTHROPIC_API_KEY"] == KEY
        assert server == {**PATH, **variables}
        # The file in memory that carried them is closed once the server has them.
        assert [name for name in files if "mcp-ops" in name] == []

    async def test_a_foreign_server_gets_path_and_nothing_else(self, tmp_path: Path) -> None:
        with with_notes(tmp_path, calls(("environment", {})), says("x")) as (model, server):
            variables = {"GITHUB_TOKEN": TOKEN, "GITHUB_REPOS": "acme/web"}
            process = await started(tmp_path, {**variables, **model.environment}, "--server", server)
            end = await ended(process, tmp_path)
        (result,) = model.requests[1]["messages"][-1]["content"]
        told = result["content"].split("\n")[1:-2] if isinstance(result["content"], str) else []
        assert [line for line in told if line] == [f"PATH={os.environ['PATH']}"]
        assert end.status == 0


@pytest.mark.covers("D13")
class TestUsage:
    @pytest.mark.parametrize(
        ("env", "options", "sentence"),
        [
            ({}, [], "no model: set ANTHROPIC_API_KEY or OPENAI_API_KEY; a file .env is not read"),
            ({"ANTHROPIC_API_KEY": "a" * 20}, ["--max-steps", "0"], "argument --max-steps: '0' is not a whole number"),
            (
                {"ANTHROPIC_API_KEY": "a" * 20},
                ["--max-steps", "31"],
                "argument --max-steps: '31' is not a whole number",
            ),
            ({"ANTHROPIC_API_KEY": "a" * 20}, ["--server", "https://x.example/mcp"], "no address"),
            ({"ANTHROPIC_API_KEY": "a" * 20}, ["--tool-class", "x=safe"], "is not NAME=CLASS"),
        ],
    )
    async def test_a_wrong_command_line_or_environment_is_one_sentence_and_status_2(
        self, env: dict[str, str], options: list[str], sentence: str, tmp_path: Path
    ) -> None:
        (tmp_path / ".env").write_text("ANTHROPIC_API_KEY=sk-ant-from-a-file\n", "utf-8")
        end = await ended(await started(tmp_path, env, *options), tmp_path)
        assert (end.status, end.out) == (2, "")
        assert sentence in end.err
        assert len(end.err.splitlines()) == 1
        assert not end.runs.exists()
