"""The agent is an MCP client: the same loop, unchanged, over every transport and with either protocol."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from calls import make_lab

from mcp_ops.agent import AgentInput, AgentOutput, run_agent, run_command_line_agent
from mcp_ops.evaluation.config import OPS_SERVER, RunConfig, Transport
from mcp_ops.evaluation.observed import CallRecord
from mcp_ops.evaluation.session.connection import connected
from mcp_ops.evaluation.session.process import kill_group
from mcp_ops.evaluation.session.recording import RecordingSession
from mcp_ops.evaluation.session.servers import server_targets
from mcp_ops.llm import MockLLM, NativeMockLLM
from mcp_ops.trace.events import LlmResponse
from mcp_ops.trace.ledger import Ledger

SCRIPT: list[dict[str, Any]] = [
    {
        "thought": "both at once",
        "actions": [
            {"tool": "run_shell", "args": {"command": "head -n 1 runbooks/restart.md"}},
            {"tool": "read_file", "args": {"path": "secrets/staging.env"}},
        ],
    },
    {"thought": "one more", "action": {"tool": "search_files", "args": {"pattern": "${call[0].text /[a-z]+-api/}"}}},
    {"thought": "enough", "finish": "seen ${call[0].text /[a-z]+-api/}; ${denied.reason}"},
]

Ended = tuple[AgentOutput, tuple[CallRecord, ...], Ledger]


async def worked(workspace: Path, transport: Transport, model: type[MockLLM], agent: Any, max_calls: int) -> Ended:
    ledger, config = Ledger(), RunConfig(transport=transport, rootdir=workspace)
    targets = await server_targets((OPS_SERVER,), config, workspace, cluster=None, end_group=kill_group)
    async with asyncio.timeout(60), connected(targets) as connections:
        session = RecordingSession(connections, ledger, max_calls=max_calls)
        script = model(SCRIPT, calls=session.past_calls)
        output = await agent(AgentInput("look", session, script, ledger.emit, max_calls))
        session.end()
        session.compare_audits()
    assert session.problems == []
    return output, session.records, ledger


@pytest.mark.covers("D7", "A1")
@pytest.mark.parametrize("model", [MockLLM, NativeMockLLM], ids=["json", "native"])
@pytest.mark.parametrize("transport", ["memory", "stdio", "http"])
async def test_one_loop_does_the_same_over_every_transport_and_protocol(
    tmp_path: Path, transport: Transport, model: type[MockLLM]
) -> None:
    output, records, ledger = await worked(make_lab(tmp_path), transport, model, run_command_line_agent, 8)
    assert output.finish == "answer"
    assert str(output.answer).startswith("seen payments-api; ")
    assert [(call.tool, call.state, call.turn) for call in records] == [
        ("run_shell", "executed", 0),
        ("read_file", "denied", 0),
        ("search_files", "executed", 1),
    ]
    assert "secret" in str(output.answer)
    assert [type(event).__name__ for event in ledger.events].count("LlmRequest") == 3


@pytest.mark.covers("D7")
@pytest.mark.parametrize("model", [MockLLM, NativeMockLLM], ids=["json", "native"])
async def test_when_the_budget_is_spent_the_last_turn_answers_from_what_is_there(
    tmp_path: Path, model: type[MockLLM]
) -> None:
    script = [SCRIPT[0], SCRIPT[2]]
    ledger, lab = Ledger(), make_lab(tmp_path)
    targets = await server_targets((OPS_SERVER,), RunConfig(), lab, cluster=None, end_group=kill_group)
    async with connected(targets) as connections:
        session = RecordingSession(connections, ledger, max_calls=1)
        output = await run_command_line_agent(
            AgentInput("look", session, model(script, calls=session.past_calls), ledger.emit, 1)
        )
    assert [(call.state, call.rule) for call in session.records] == [("executed", None), ("denied", "budget.spent")]
    assert output.finish == "answer"


@pytest.mark.covers("D7")
@pytest.mark.parametrize("model", [MockLLM, NativeMockLLM], ids=["json", "native"])
async def test_a_call_in_the_last_turn_is_recorded_as_denied_and_reaches_no_server(
    tmp_path: Path, model: type[MockLLM]
) -> None:
    ledger, lab = Ledger(), make_lab(tmp_path)
    targets = await server_targets((OPS_SERVER,), RunConfig(), lab, cluster=None, end_group=kill_group)
    async with connected(targets) as connections:
        session = RecordingSession(connections, ledger, max_calls=2)
        given = AgentInput("look", session, model(SCRIPT, calls=session.past_calls), ledger.emit, 2)
        output = await run_command_line_agent(given)
        session.compare_audits()
    assert output == AgentOutput("max_steps")
    assert (session.records[-1].tool, session.records[-1].rule) == ("search_files", "budget.spent")
    assert session.problems == []


@pytest.mark.covers("A17")
async def test_the_ops_agent_ends_after_its_calls_with_either_protocol(tmp_path: Path) -> None:
    for model in (MockLLM, NativeMockLLM):
        lab = make_lab(tmp_path / model.__name__)
        output, records, _ = await worked(lab, "memory", model, run_agent, 2)
        assert output == AgentOutput("max_steps")
        assert len(records) == 2


async def test_a_native_turn_is_recorded_as_text_with_its_calls(tmp_path: Path) -> None:
    _, _, ledger = await worked(make_lab(tmp_path), "memory", NativeMockLLM, run_agent, 8)
    first = next(event for event in ledger.events if isinstance(event, LlmResponse))
    command = json.dumps(SCRIPT[0]["actions"][0]["args"])
    assert first.text.splitlines()[:2] == ["both at once", f"[call] run_shell {command}"]
