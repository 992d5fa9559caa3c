"""The agent: reason -> act -> finalize, as a LangGraph graph that is compiled once per process.

    reason -- malformed reply, first in a row --> reason
    reason -- calls --> act -- budget left --> reason
    reason -- answer, error --> finalize
    act -- budget of calls spent --> finalize

How the model is asked is the protocol's business, and when calls end is the budget's. What differs between runs
(session, protocol, budget) goes through `config["configurable"]`, so that one compiled graph serves every run, also on
other event loops.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from mcp_ops.agent.policies.budget import Budget
from mcp_ops.agent.protocols import TurnProtocol, protocol_for
from mcp_ops.agent.protocols.base import Answered
from mcp_ops.agent.session import AgentInput, AgentOutput
from mcp_ops.agent.turns import Exchange, Malformed, Turn
from mcp_ops.llm.base import ModelError
from mcp_ops.trace.events import LlmRequest, LlmResponse, PromptMessage

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph.state import CompiledStateGraph

MAX_STEPS = 8
"""Calls after which the model is not asked again, unless the run says otherwise."""


@dataclass(frozen=True)
class Failure:
    """Why a run ends without an answer."""

    message: str
    infrastructure: bool = False


class State(TypedDict):
    """What the graph carries from node to node."""

    task: str
    history: Sequence[Exchange]
    steps: int
    """Calls made so far."""
    done: bool
    """The model is not asked again."""
    answer: str | None
    error: Failure | None


@dataclass(frozen=True)
class _Run:
    given: AgentInput
    protocol: TurnProtocol
    budget: Budget


async def run_agent(given: AgentInput) -> AgentOutput:
    """Work on a task until the model answers, the budget of calls is spent, or nothing usable comes back.

    Raises:
        ModelError: Of kind `script` only: the mock script does not fit the run. Every other error of a model is
            an outcome.
    """
    return await _run(given, Budget(given.max_calls))


async def run_command_line_agent(given: AgentInput) -> AgentOutput:
    """Work on a task as `run_agent` does; when the budget is spent the model is asked once more, without tools.

    Its answer is the run's answer. Calls that it asks for all the same go to the session, which denies them, and the
    run ends with `max_steps`.

    Raises:
        ModelError: Of kind `script` only.
    """
    return await _run(given, Budget(given.max_calls, last_turn=True))


async def _run(given: AgentInput, budget: Budget) -> AgentOutput:
    run = _Run(given, protocol_for(given.model, await given.session.list_tools(), given.context), budget)
    start: State = {"task": given.task, "history": (), "steps": 0, "done": False, "answer": None, "error": None}
    # Per call at most one malformed turn, the turn itself and its act; our own limits fire first.
    config: RunnableConfig = {"configurable": {"run": run}, "recursion_limit": 4 * given.max_calls + 16}
    with _no_langsmith():
        end = await _compiled().ainvoke(start, config)
    return _output(end)


def _output(end: dict[str, Any]) -> AgentOutput:
    failure: Failure | None = end["error"]
    if failure is not None:
        return AgentOutput("error", error=failure.message, infrastructure=failure.infrastructure)
    if end["answer"] is not None:
        return AgentOutput("answer", answer=end["answer"])
    return AgentOutput("max_steps")


@lru_cache(maxsize=1)
def _compiled() -> "CompiledStateGraph[State, None, State, State]":
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(State)
    graph.add_node("reason", _reason)
    graph.add_node("act", _act)
    graph.add_node("finalize", _finalize)
    graph.add_edge(START, "reason")
    graph.add_conditional_edges("reason", _after_reason, ["reason", "act", "finalize"])
    graph.add_conditional_edges("act", _after_act, ["reason", "finalize"])
    graph.add_edge("finalize", END)
    return graph.compile(name="ops-agent")


def _no_langsmith() -> Any:
    """Keep LangChain's tracer out: a stray LANGSMITH_TRACING would send every prompt to a server."""
    from langsmith import tracing_context

    return tracing_context(enabled=False, parent=False)


def _run_of(config: "RunnableConfig") -> _Run:
    run: _Run = config["configurable"]["run"]
    return run


async def _reason(state: State, config: "RunnableConfig") -> dict[str, Any]:
    run, history = _run_of(config), state["history"]
    question = run.protocol.question(state["task"], history, last=run.budget.last_words(state["steps"]))
    number = len(history)
    sent = [PromptMessage(role=message.role, content=message.content) for message in question.messages]
    run.given.emit(LlmRequest(turn=number, messages=sent, dropped=question.dropped))
    started = time.perf_counter()
    try:
        answered = await question.ask()
    except ModelError as error:
        if error.kind == "script":
            raise
        return {"error": Failure(str(error), error.infrastructure)}
    run.given.emit(_response(number, answered, (time.perf_counter() - started) * 1000))
    return {"history": (*history, answered.exchange)}


def _response(number: int, answered: Answered, milliseconds: float) -> LlmResponse:
    reply, turn = answered.reply, answered.exchange.turn
    return LlmResponse(
        turn=number,
        text=answered.exchange.reply,
        malformed=turn.reason if isinstance(turn, Malformed) else None,
        model=reply.model,
        finish_reason=reply.finish_reason,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        usd=reply.usd,
        duration_ms=milliseconds,
        attempts=reply.attempts,
    )


async def _after_reason(state: State) -> Literal["reason", "act", "finalize"]:
    if state["error"] is not None:
        return "finalize"
    turn = state["history"][-1].turn
    if isinstance(turn, Malformed):
        return "finalize" if _malformed_twice(state["history"]) else "reason"
    return "act" if turn.calls else "finalize"


def _malformed_twice(history: Sequence[Exchange]) -> bool:
    return len(history) > 1 and all(isinstance(exchange.turn, Malformed) for exchange in history[-2:])


async def _act(state: State, config: "RunnableConfig") -> dict[str, Any]:
    """Make the calls of the last turn in order; a denial does not stop the rest."""
    *before, last = state["history"]
    calls = last.turn.calls if isinstance(last.turn, Turn) else ()
    run = _run_of(config)
    observations = [await run.given.session.call_tool(call.tool, call.args) for call in calls]
    steps = state["steps"] + len(observations)
    history = (*before, replace(last, observations=tuple(observations)))
    return {"history": history, "steps": steps, "done": run.budget.ends(before=state["steps"], after=steps)}


async def _after_act(state: State) -> Literal["reason", "finalize"]:
    return "finalize" if state["done"] else "reason"


async def _finalize(state: State) -> dict[str, Any]:
    if state["error"] is not None:
        return {"done": True}
    turn = state["history"][-1].turn
    if isinstance(turn, Malformed):
        return {"done": True, "error": Failure(f"two replies in a row were malformed; the last: {turn.reason}")}
    return {"done": True, "answer": turn.finish}
