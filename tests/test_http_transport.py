"""The harness reaches a server over HTTP; what goes wrong there is recorded as it is over stdio."""

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opsproject import denied, line, read, script
from test_recording_session import has_ended, needs_pidfd

from mcp_ops.evaluation.config import RunConfig, Transport
from mcp_ops.evaluation.line.parse import BadLine, read_file
from mcp_ops.evaluation.outcome import Outcome
from mcp_ops.evaluation.run import Harness, run_scenario
from mcp_ops.evaluation.session.connection import ServerStartError, ServerTarget, connected
from mcp_ops.evaluation.session.http import HttpServer
from mcp_ops.evaluation.session.recording import RecordingSession
from mcp_ops.trace.ledger import Ledger

HERE = Path(__file__).parent
ROOT = HERE.parent
PROGRAM = [sys.executable, str(HERE / "http_foreign_server.py")]
ENV = {"PATH": os.environ["PATH"]}

TOO_MUCH = "it sent a message of more than 1048576 bytes"
WRONG = {
    "garbage": ("server.error", "it sent what is no message: '{ no JSON'"),
    "no message": ("server.error", "it sent what is no message"),
    "page": ("server.error", "it sent what is no message: '<h1>Login</h1>'"),
    "error page": ("server.error", "Server returned an error response"),
    "not found": ("server.error", "Not Found"),
    "accepted": ("server.error", "server answered a request with 202 Accepted"),
    "flood": ("server.too_large", TOO_MUCH),
    "event without end": ("server.too_large", TOO_MUCH),
    "event of garbage": ("server.error", "Failed to parse SSE message"),
    "elsewhere": ("server.error", "Redirect to http://203.0.113.7/mcp not followed"),
}
"""What goes wrong with an answer: the rule of the call, and words of its reason."""

pytestmark = pytest.mark.covers("H4")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a server needs longer to end by itself than the harness otherwise waits."""
    monkeypatch.setattr("mcp_ops.evaluation.session.http.EXIT_SECONDS", 30)


@asynccontextmanager
async def session_with(
    server: HttpServer, *, mode: str = "auto", call_seconds: float = 60
) -> AsyncIterator[RecordingSession]:
    async with connected([ServerTarget("foreign", server)], mode=mode) as connections:
        yield RecordingSession(connections, Ledger(), max_calls=50, call_seconds=call_seconds)


class TestAServer:
    @pytest.mark.parametrize("mode", ["auto", "legacy"])
    async def test_is_started_called_and_ended(self, mode: str) -> None:
        server = HttpServer(PROGRAM, env=ENV)
        async with session_with(server, mode=mode) as session:
            assert "say" in [tool.name for tool in await session.list_tools()]
            observation = await session.call_tool("say", {"text": "grüße \u2028 ok"})
        assert observation.text == "grüße <U+2028> ok"
        assert server.exit_code == -15

    async def test_has_path_and_the_token_of_this_run_in_its_environment_and_nothing_of_ours(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENROUTER_API_KEY", "sk-secret")
        async with session_with(HttpServer(PROGRAM, env=ENV)) as session:
            await session.call_tool("environment", {})
        assert set(session.records[0].text.split()) - {"LC_CTYPE"} == {"PATH", "MCP_HTTP_TOKEN"}

    async def test_whose_answer_goes_wrong_fails_this_call_and_no_other(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.CRITICAL, "mcp.client.streamable_http")
        async with session_with(HttpServer(PROGRAM, env=ENV)) as session:
            for wire in WRONG:
                await session.call_tool("say", {"text": "x", "wire": wire})
                await session.call_tool("say", {"text": "still here"})
        failed = {wire: session.records[2 * number] for number, wire in enumerate(WRONG)}
        assert {call.state for call in failed.values()} == {"failed"}
        assert {wire: call.rule for wire, call in failed.items()} == {wire: rule for wire, (rule, _) in WRONG.items()}
        assert [wire for wire, call in failed.items() if WRONG[wire][1] not in call.reason] == []
        assert {call.text for call in session.records[1::2]} == {"still here"}

    @pytest.mark.parametrize("wire", ["cut", "no event"])
    async def test_whose_answer_breaks_off_is_taken_for_dead(self, wire: str) -> None:
        async with session_with(HttpServer(PROGRAM, env=ENV)) as session:
            await session.call_tool("say", {"text": "x", "wire": wire})
            await session.call_tool("say", {"text": "still here"})
        assert [call.rule for call in session.records] == ["server.died"] * 2

    async def test_that_does_not_answer_in_time_is_given_up_and_still_serves(self) -> None:
        async with session_with(HttpServer(PROGRAM, env=ENV), call_seconds=1) as session:
            await session.call_tool("hang", {})
            await session.call_tool("say", {"text": "alive"})
        assert [(call.state, call.rule) for call in session.records] == [("failed", "time.limit"), ("executed", None)]

    @pytest.mark.parametrize("mode", ["auto", "legacy"])
    async def test_that_dies_fails_this_call_and_the_later_ones(self, mode: str) -> None:
        server = HttpServer(PROGRAM, env=ENV)
        async with session_with(server, mode=mode) as session:
            await session.call_tool("die", {"code": 7})
            await session.call_tool("say", {"text": "x"})
        assert [(call.state, call.rule) for call in session.records] == [("failed", "server.died")] * 2
        assert session.records[1].reason == "server 'foreign' ended in an earlier call"
        assert server.exit_code == 7
        assert server.last_words.endswith("out of memory")

    async def test_that_died_between_two_calls_is_noticed_by_the_next(self) -> None:
        server = HttpServer(PROGRAM, env=ENV)
        async with session_with(server) as session:
            await session.call_tool("spawn", {})
            os.killpg(os.getpgid(int(session.records[0].text)), 9)
            await session.call_tool("say", {"text": "x"})
        assert [call.rule for call in session.records] == [None, "server.died"]

    @pytest.mark.parametrize(
        ("command", "sentence"),
        [
            ("echo 'no config file' >&2; exit 3", "server 'x' did not start: exit 3: no config file"),
            ("exit 0", "server 'x' did not start: exit 0"),
            ("echo listening on http://203.0.113.7:80/mcp >&2; exit 1", "server 'x' did not start: exit 1: listening"),
            ("kill -9 $$", "server 'x' did not start: killed by signal 9"),
        ],
    )
    async def test_that_does_not_start_is_one_sentence(self, command: str, sentence: str) -> None:
        with pytest.raises(ServerStartError) as caught:
            async with connected([ServerTarget("x", HttpServer(["sh", "-c", command], env=ENV))]):
                pass
        assert str(caught.value).startswith(sentence)

    async def test_that_never_listens_is_given_up_and_killed(self) -> None:
        ended: list[int] = []
        server = HttpServer(["sh", "-c", "sleep 321 & wait"], env=ENV, end_group=ended.append)
        with pytest.raises(ServerStartError, match=r"^server 'x' did not start: it gave no answer within 0.2 s$"):
            async with connected([ServerTarget("x", server)], start_seconds=0.2):
                pass
        assert server.exit_code == -9
        os.killpg(ended[0], 9)

    @needs_pidfd
    @pytest.mark.parametrize("cancelled", [False, True])
    async def test_ends_with_its_children_however_the_run_ends(self, cancelled: bool) -> None:
        server = HttpServer(PROGRAM, env=ENV)
        child: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def work() -> None:
            async with session_with(server) as session:
                await session.call_tool("spawn", {})
                child.set_result(int(session.records[0].text))
                if cancelled:
                    await session.call_tool("hang", {})

        task = asyncio.create_task(work())
        pid = await child
        if cancelled:
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled() == cancelled
        assert server.exit_code == (-9 if cancelled else -15)
        assert has_ended(pid)


async def outcomes(lines: Sequence[Any], config: RunConfig, scratch: Path) -> list[Outcome]:
    harness = Harness(config, scratch=scratch)
    try:
        return [await harness.run(scenario) for scenario in lines]
    finally:
        harness.close()


class TestScenarios:
    @pytest.mark.covers("A14")
    @pytest.mark.parametrize("transport", ["memory", "stdio", "http"])
    async def test_the_same_loop_gives_the_same_calls_and_verdict_over_every_transport(
        self, transport: Transport, tmp_path: Path
    ) -> None:
        turns = script(
            read("notes.md"),
            {"tool": "run_shell", "args": {"command": "rm notes.md"}},
            {"tool": "read_file", "args": {"path": "notes.md", "lines": 3}},
            {"tool": "no_such_tool", "args": {}},
            read("absent.md"),
            "They say: ${call[0].text /cache is full/}",
        )
        expected = {
            "calls": [
                {"tool": "read_file", "state": "executed"},
                {"tool": "run_shell", "state": "denied", "rule": "shell.binary"},
                {"tool": "read_file", "state": "denied", "rule": "args.invalid"},
                {"tool": "no_such_tool", "state": "denied", "rule": "tool.unknown"},
                {"tool": "read_file", "state": "failed", "rule": "path.not_found"},
            ],
            "answer": {"$contains": "cache is full"},
            "effects": "none",
        }
        config = RunConfig(rootdir=tmp_path, transport=transport, trace_dir=tmp_path / "traces")
        outcome = await run_scenario(line(mock=turns, expect=expected), config=config)
        assert outcome.passed, outcome
        assert outcome.trace is not None
        assert f'"transport":"{transport}"' in outcome.trace.read_text().replace(": ", ":")

    async def test_neither_the_server_nor_the_sockets_to_it_count_as_left_over(self, tmp_path: Path) -> None:
        config = RunConfig(rootdir=tmp_path, transport="http", trace_dir=tmp_path / "traces")
        effects = {"processes": {"left_over": []}, "sockets": {"left_over": []}}
        wanted = line(expect={"calls": [{"tool": "read_file"}], "effects": effects})
        assert (await run_scenario(wanted, config=config)).passed
        assert (await run_scenario(denied(), config=config)).passed

    @pytest.mark.parametrize("name", ["guardrail", "protocol", "shell"])
    async def test_shipped_scenarios_pass_over_http(self, name: str, tmp_path: Path) -> None:
        """Every eighth of them here; `pytest --ops-transport=http scenarios` runs all."""
        entries = read_file(ROOT / f"scenarios/{name}.scenarios.jsonl")
        lines = [entry for entry in entries if not isinstance(entry, BadLine) and not entry.spec.needs][::8]
        assert lines
        config = RunConfig(rootdir=ROOT, transport="http", trace_dir=tmp_path / "traces")
        over_http = await outcomes(lines, config, tmp_path / "http")
        assert [found.id for found in over_http if not found.passed] == []
        in_memory = await outcomes(lines, replace(config, transport="memory"), tmp_path / "memory")
        assert [calls_of(found) for found in over_http] == [calls_of(found) for found in in_memory]


def calls_of(outcome: Outcome) -> list[tuple[Any, ...]]:
    return [(call.tool, call.state, call.rule) for call in outcome.observed.calls] if outcome.observed else []
