"""`timeout` of a line stands in place of the run's own limit."""

import asyncio
from pathlib import Path

import pytest
from observations import line

from mcp_ops.agent.session import AgentInput, AgentOutput
from mcp_ops.evaluation.config import Limits, RunConfig
from mcp_ops.evaluation.outcome import Outcome
from mcp_ops.evaluation.run import run_scenario

pytestmark = pytest.mark.covers("H44")
AT_ONCE, LONG = 0.00001, 600.0


async def waits_for_ever(given: AgentInput) -> AgentOutput:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets the event")


async def answers_late(given: AgentInput) -> AgentOutput:
    for _ in range(100):
        await asyncio.sleep(0)
    return AgentOutput("answer", answer=(await given.model.complete([])).text)


async def run(folder: Path, agent: str, limit: float, **keys: object) -> Outcome:
    config = RunConfig(
        rootdir=folder, trace_dir=folder / "traces", agent=f"{__name__}:{agent}", limits=Limits(seconds=limit)
    )
    return await run_scenario(line(mock=[{"raw": "done"}], **keys), config=config)


async def test_a_line_s_timeout_stops_an_agent_that_the_run_would_wait_for(tmp_path: Path) -> None:
    outcome = await run(tmp_path, "waits_for_ever", LONG, timeout=AT_ONCE, expect={"finish": "error"})
    assert outcome.observed is not None
    assert outcome.observed.error == "the run took longer than 1e-05 s"
    assert outcome.trace is not None
    assert '"event":"run_finish"' in outcome.trace.read_text("utf-8").replace(" ", "")


async def test_a_line_s_timeout_gives_an_agent_more_time_than_the_run(tmp_path: Path) -> None:
    expect = {"answer": "done"}
    assert not (await run(tmp_path, "answers_late", AT_ONCE, expect=expect)).passed
    assert (await run(tmp_path, "answers_late", AT_ONCE, timeout=LONG, expect=expect)).passed
