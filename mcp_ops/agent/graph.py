"""The agent: reason -> act -> finalize, as a LangGraph graph that is compiled once per process.

    reason -- malformed reply, first in a row --> reason
    reason -- calls --> act -- budget left --> reason
    reason -- answer, error --> finalize
    act -- budget of calls spent --> finalize

What differs between runs (session, model, tools) goes through `config["configurable"]`, so that one compiled graph
serves every run, also on other event loops.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from mcp_ops.agent.prompt import Exchange, build_prompt, system_message
from mcp_ops.agent.protocol import Malformed, Turn, parse_turn
from mcp_ops.agent.schema import turn_schema
from mcp_ops.agent.session import AgentInput, AgentOutput, ToolInfo
from mcp_ops.llm.base import Message, ModelError, Reply
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
    system: Message
    schema: Mapping[str, Any]


async def run_agent(given: AgentInput) -> AgentOutput:
    """Work on a task until the model answers, the budget of calls is spent, or nothing usable comes back.

    Raises:
        ModelError: Of kind `script` only: the mock script does not fit the run. Every other error of a model is
            an outcome.
    """
    tools = await given.session.list_tools()
    run = _Run(given, *_introduction(tuple(_Listed(tool.name, tool.description, tool.input_schema) for tool in tools)))
    start: State = {"task": given.task, "history": (), "steps": 0, "done": False, "answer": None, "error": None}
    # Per call at most one malformed turn, the turn itself and its act; our own limits fire first.
    config: RunnableConfig = {"configurable": {"run": run}, "recursion_limit": 4 * given.max_calls + 16}
    with _no_langsmith():
        end = await _compiled().ainvoke(start, config)
    return _output(end)


@dataclass(frozen=True)
class _Listed:
    """A tool as it was listed. Two are equal when they have the very same schema object."""

    name: str
    description: str
    input_schema: Mapping[str, Any]

    def __hash__(self) -> int:
        return hash((self.name, self.description, id(self.input_schema)))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Listed)
            and self.input_schema is other.input_schema
            and (self.name, self.description) == (other.name, other.description)
        )


@lru_cache(maxsize=16)
def _introduction(tools: tuple[_Listed, ...]) -> tuple[Message, Mapping[str, Any]]:
    """Return the system message and the schema of a turn, which are the same for every run with the same tools."""
    roster = [ToolInfo(tool.name, tool.description, tool.input_schema) for tool in tools]
    return system_message(roster), turn_schema({tool.name: tool.input_schema for tool in tools})


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
    run = _run_of(config)
    prompt = build_prompt(run.system, state["task"], state["history"])
    number = len(state["history"])
    sent = [PromptMessage(role=message.role, content=message.content) for message in prompt.messages]
    run.given.emit(LlmRequest(turn=number, messages=sent, dropped=prompt.dropped))
    started = time.perf_counter()
    try:
        reply = await run.given.model.complete(prompt.messages, schema=run.schema)
    except ModelError as error:
        if error.kind == "script":
            raise
        return {"error": Failure(str(error), error.infrastructure)}
    turn = _read(reply)
    run.given.emit(_response(number, reply, turn, (time.perf_counter() - started) * 1000))
    return {"history": (*state["history"], Exchange(reply.text, turn))}


def _read(reply: Reply) -> Turn | Malformed:
    turn = parse_turn(reply.text)
    if isinstance(turn, Malformed) and reply.finish_reason == "length":
        return Malformed("the reply ran into the length limit and was cut; write a shorter one")
    return turn


def _response(number: int, reply: Reply, turn: Turn | Malformed, milliseconds: float) -> LlmResponse:
    return LlmResponse(
        turn=number,
        text=reply.text,
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
    given = _run_of(config).given
    observations = [await given.session.call_tool(call.tool, call.args) for call in calls]
    steps = state["steps"] + len(observations)
    history = (*before, replace(last, observations=tuple(observations)))
    return {"history": history, "steps": steps, "done": steps >= given.max_calls}


async def _after_act(state: State) -> Literal["reason", "finalize"]:
    return "finalize" if state["done"] else "reason"


async def _finalize(state: State) -> dict[str, Any]:
    if state["error"] is not None:
        return {"done": True}
    turn = state["history"][-1].turn
    if isinstance(turn, Malformed):
        return {"done": True, "error": Failure(f"two replies in a row were malformed; the last: {turn.reason}")}
    return {"done": True, "answer": turn.finish}
