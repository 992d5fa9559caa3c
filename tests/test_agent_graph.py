"""The agent's loop, over a session and a model that do what a test tells them to."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from mcp_types import TextContent

from mcp_ops import gate
from mcp_ops.agent import MAX_STEPS, AgentInput, AgentOutput, Observation, ToolInfo, run_agent
from mcp_ops.llm import Message, MockLLM, ModelError, PastCall, Reply, ScriptError
from mcp_ops.trace.events import LlmRequest, LlmResponse, Payload

pytestmark = pytest.mark.covers("A14")


@dataclass
class SessionDouble:
    """Answers every call; `deny` names tools that it denies. No server stands behind it."""

    deny: frozenset[str] = frozenset()
    asked: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    past: list[PastCall] = field(default_factory=list)

    async def list_tools(self) -> Sequence[ToolInfo]:
        return [ToolInfo("read_file", "Read a file.", {"type": "object"})]

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        number = len(self.asked)
        self.asked.append((name, arguments))
        denied = name in self.deny
        text = f"GUARD DENIED: {name} is not allowed" if denied else f"result {number} of {name}"
        self.past.append(PastCall(text, "denied" if denied else "executed", None, text if denied else ""))
        return Observation(number, name, "denied" if denied else "executed", text, "Do without." if denied else "")


@dataclass
class ModelDouble:
    """Says one thing after another; an exception is raised instead."""

    says: list[str | Reply | BaseException]
    asked: list[Sequence[Message]] = field(default_factory=list)
    name: str = "double"

    async def complete(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> Reply:
        self.asked.append(messages)
        word = self.says.pop(0)
        if isinstance(word, BaseException):
            raise word
        return word if isinstance(word, Reply) else Reply(word)


@dataclass
class Ran:
    output: AgentOutput
    session: SessionDouble
    events: list[Payload]
    model: Any

    @property
    def requests(self) -> list[LlmRequest]:
        return [event for event in self.events if isinstance(event, LlmRequest)]

    @property
    def responses(self) -> list[LlmResponse]:
        return [event for event in self.events if isinstance(event, LlmResponse)]


async def ran(model: Any, session: SessionDouble | None = None, max_calls: int = MAX_STEPS) -> Ran:
    session = session or SessionDouble()
    events: list[Payload] = []
    output = await run_agent(AgentInput("the task", session, model, events.append, max_calls))
    return Ran(output, session, events, model)


def call(tool: str = "read_file", **args: object) -> str:
    return json.dumps({"thought": "t", "action": {"tool": tool, "args": args}})


def calls(*tools: str) -> str:
    return json.dumps({"thought": "t", "actions": [{"tool": tool, "args": {}} for tool in tools]})


FINISH = '{"thought": "t", "finish": "done"}'


async def test_the_agent_calls_looks_and_answers() -> None:
    run = await ran(ModelDouble([call(path="a"), call(path="b"), FINISH]))
    assert run.output == AgentOutput("answer", answer="done")
    assert run.session.asked == [("read_file", {"path": "a"}), ("read_file", {"path": "b"})]
    assert [event.turn for event in run.requests] == [event.turn for event in run.responses] == [0, 1, 2]


async def test_the_model_is_shown_task_roster_and_what_came_back() -> None:
    run = await ran(ModelDouble([call(path="a"), FINISH]))
    first, second = run.model.asked
    assert [message.role for message in first] == ["system", "user"]
    assert "read_file" in first[0].content
    assert "the task" in first[1].content
    assert second[2].content == call(path="a")
    assert "result 0 of read_file" in second[3].content


async def test_the_events_hold_exactly_what_was_sent_and_said() -> None:
    reply = Reply(FINISH, "m-1", "stop", 7, 3, 0.01, attempts=2)
    run = await ran(ModelDouble([call(), reply]))
    sent = [(message.role, message.content) for message in run.requests[1].messages]
    assert sent == [(message.role, message.content) for message in run.model.asked[1]]
    last = run.responses[1]
    assert (last.text, last.model, last.finish_reason, last.attempts) == (FINISH, "m-1", "stop", 2)
    assert (last.prompt_tokens, last.completion_tokens, last.usd, last.malformed) == (7, 3, 0.01, None)
    assert last.duration_ms >= 0


async def test_the_model_is_offered_the_schema_of_a_turn_with_the_tools_of_this_run() -> None:
    offered: list[Any] = []

    class Watching(ModelDouble):
        async def complete(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> Reply:
            offered.append(schema)
            return await super().complete(messages)

    await ran(Watching([FINISH]))
    assert '"enum": ["read_file"]' in json.dumps(offered[0])


@pytest.mark.covers("A16")
async def test_a_denied_call_is_an_observation_that_the_agent_can_act_on() -> None:
    run = await ran(ModelDouble([call("rm"), FINISH]), SessionDouble(deny=frozenset({"rm"})))
    assert run.output.finish == "answer"
    shown = run.model.asked[1][-1].content
    assert "(rm, denied)" in shown
    assert "GUARD DENIED: rm is not allowed\nhint: Do without." in shown


class ReadArguments(gate.Arguments):
    path: str
    max_lines: int | None = 120


async def _echo(plan: str, _: None, __: gate.Refuse) -> gate.Result:
    return gate.executed(plan)


ECHO = gate.Tool("read_file", "Read.", ReadArguments, lambda given, _, __: f"{given.path} {given.max_lines}", _echo)


class GateSession(SessionDouble):
    """Hands each call to a real gate, in front of a tool that reads nothing."""

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        reply = await gate.call({"read_file": ECHO}, name, arguments, None, refuse=gate.Refuse())
        reading = gate.read_reply(reply)
        assert reading is not None
        [content] = reply.content
        assert isinstance(content, TextContent)
        return Observation(0, name, reading.state.value, content.text, reading.hint)


@pytest.mark.covers("A16")
async def test_null_arguments_are_judged_by_the_tools_schema_and_come_back_as_an_observation() -> None:
    run = await ran(ModelDouble(['{"action":{"tool":"read_file","args":null}}', FINISH]), GateSession())
    assert run.output.finish == "answer"
    assert "(read_file, denied)" in run.model.asked[1][-1].content
    assert "'path' is missing" in run.model.asked[1][-1].content


@pytest.mark.covers("A16")
async def test_an_optional_argument_that_is_null_counts_as_left_out() -> None:
    run = await ran(ModelDouble([call(path="x", max_lines=None), FINISH]), GateSession())
    assert "\nx 120\n" in run.model.asked[1][-1].content


@pytest.mark.covers("A16")
async def test_an_unknown_tool_is_denied_as_an_observation() -> None:
    run = await ran(ModelDouble([call("read_fil"), FINISH]), GateSession())
    assert "did you mean read_file?" in run.model.asked[1][-1].content


async def test_the_calls_of_one_turn_run_in_order_and_a_denial_does_not_stop_the_rest() -> None:
    run = await ran(ModelDouble([calls("a", "rm", "b"), FINISH]), SessionDouble(deny=frozenset({"rm"})))
    assert [tool for tool, _ in run.session.asked] == ["a", "rm", "b"]
    assert "result 2 of b" in run.model.asked[1][-1].content


@pytest.mark.covers("A17")
async def test_after_the_eighth_call_the_model_is_not_asked_again() -> None:
    run = await ran(ModelDouble([call(n=number) for number in range(20)]))
    assert MAX_STEPS == 8
    assert run.output == AgentOutput("max_steps", answer=None)
    assert len(run.session.asked) == len(run.model.asked) == 8


@pytest.mark.covers("A17")
async def test_calls_of_one_turn_beyond_the_budget_still_reach_the_session_which_refuses_them() -> None:
    run = await ran(ModelDouble([calls(*"abcdef"), calls(*"ghijkl"), FINISH]))
    assert run.output.finish == "max_steps"
    assert len(run.session.asked) == 12
    assert len(run.model.asked) == 2


@pytest.mark.covers("A17")
@pytest.mark.parametrize("budget", [1, 3, 30])
async def test_the_budget_is_the_runs_and_fires_before_the_graphs_own_limit(budget: int) -> None:
    says: list[Any] = [word for number in range(budget) for word in ("oops", call(n=number))]
    run = await ran(ModelDouble(says), max_calls=budget)
    assert run.output.finish == "max_steps"
    assert len(run.session.asked) == budget
    assert len(run.responses) == 2 * budget


@pytest.mark.covers("A15")
async def test_a_malformed_reply_gets_one_repair_turn_and_costs_no_call() -> None:
    run = await ran(ModelDouble(["Sure, I will look.", call(), FINISH]))
    assert run.output.finish == "answer"
    assert len(run.session.asked) == 1
    assert [bool(event.malformed) for event in run.responses] == [True, False, False]
    assert "nothing was done: the reply does not begin with a JSON object" in run.model.asked[1][-1].content


@pytest.mark.covers("A15")
async def test_each_malformed_reply_gets_a_repair_turn_of_its_own() -> None:
    run = await ran(ModelDouble(["oops", call(), "oops", call(), "oops", FINISH]))
    assert run.output.finish == "answer"
    assert len(run.responses) == 6


@pytest.mark.covers("A15")
@pytest.mark.parametrize("bad", ["oops", "", '{"finish":"a"}{"finish":"b"}'])
async def test_two_malformed_replies_in_a_row_end_in_an_error(bad: str) -> None:
    run = await ran(ModelDouble([call(), bad, bad, FINISH]))
    assert run.output.finish == "error"
    assert run.output.answer is None
    assert not run.output.infrastructure
    assert "two replies in a row were malformed" in str(run.output.error)
    assert len(run.responses) == 3


@pytest.mark.covers("A15")
async def test_a_reply_that_was_cut_at_the_length_limit_is_told_so() -> None:
    run = await ran(ModelDouble([Reply('{"finish": "do', finish_reason="length"), FINISH]))
    assert "length limit" in str(run.responses[0].malformed)
    assert "length limit" in run.model.asked[1][-1].content


@pytest.mark.covers("A15")
async def test_a_whole_reply_is_taken_even_if_the_provider_says_length() -> None:
    run = await ran(ModelDouble([Reply(FINISH, finish_reason="length")]))
    assert run.output.answer == "done"


@pytest.mark.covers("A19")
@pytest.mark.parametrize(("kind", "infrastructure"), [("rate_limit", True), ("auth", False), ("empty", False)])
async def test_a_model_without_a_reply_ends_the_run_and_says_whose_fault_it_is(kind: Any, infrastructure: bool) -> None:
    run = await ran(ModelDouble([call(), ModelError(kind, "no reply came", attempts=4)]))
    assert run.output == AgentOutput("error", error="no reply came", infrastructure=infrastructure)
    assert len(run.requests) == 2
    assert len(run.responses) == 1


async def test_what_did_not_fit_the_prompt_is_counted_in_the_event() -> None:
    class Wordy(SessionDouble):
        async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Observation:
            short = await super().call_tool(name, arguments)
            return Observation(short.call, name, "executed", "x" * 20_000)

    run = await ran(ModelDouble([call(), call(), call(), FINISH]), Wordy())
    assert [event.dropped for event in run.requests] == [0, 0, 1, 2]


@pytest.mark.covers("A18")
async def test_the_mock_model_refers_to_what_the_agent_was_told() -> None:
    session = SessionDouble(deny=frozenset({"rm"}))
    script = [
        {"thought": "t", "action": {"tool": "read_file", "args": {}}},
        {"thought": "t", "action": {"tool": "rm", "args": {"what": "${call[0].text /result ([0-9]+)/}"}}},
        {"thought": "t", "finish": "no: ${denied.reason}"},
    ]
    run = await ran(MockLLM(script, calls=lambda: session.past), session)
    assert session.asked[1] == ("rm", {"what": "0"})
    assert run.output.answer == "no: GUARD DENIED: rm is not allowed"


@pytest.mark.covers("A18")
async def test_a_script_that_does_not_fit_is_the_harness_problem_and_is_raised() -> None:
    session = SessionDouble()
    with pytest.raises(ScriptError, match="turn 1 of the mock script"):
        await ran(MockLLM([{"finish": "${last.text}"}], calls=lambda: session.past), session)
    with pytest.raises(ScriptError, match="ends after turn 1"):
        await ran(MockLLM([{"raw": "oops"}], calls=lambda: session.past), session)


async def test_an_error_inside_the_session_is_raised_not_swallowed() -> None:
    class Broken(SessionDouble):
        async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Observation:
            raise RuntimeError("the ledger is closed")

    with pytest.raises(RuntimeError, match="the ledger is closed"):
        await ran(ModelDouble([call()]), Broken())


@pytest.mark.parametrize("where", ["model", "session"])
async def test_cancelling_reaches_the_model_and_the_session(where: str) -> None:
    reached, ended = asyncio.Event(), asyncio.Event()

    async def wait_forever() -> None:
        reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    class Slow(SessionDouble):
        async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Observation:
            await wait_forever()
            raise NotImplementedError

    class Thinking(ModelDouble):
        async def complete(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> Reply:
            await wait_forever()
            raise NotImplementedError

    model = Thinking([]) if where == "model" else ModelDouble([call()])
    task = asyncio.create_task(ran(model, Slow()))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_runs_at_the_same_time_do_not_mix() -> None:
    async def one(number: int) -> str | None:
        run = await ran(ModelDouble([call(n=number), json.dumps({"finish": f"answer {number}"})]))
        assert run.session.asked == [("read_file", {"n": number})]
        return run.output.answer

    assert await asyncio.gather(*map(one, range(20))) == [f"answer {number}" for number in range(20)]


def test_one_compiled_graph_serves_one_event_loop_after_another() -> None:
    from mcp_ops.agent import graph

    answers = [asyncio.run(ran(ModelDouble([call(), FINISH]))).output.answer for _ in range(3)]
    assert answers == ["done"] * 3
    assert graph._compiled() is graph._compiled()
