"""The agent of a run: ours, or a user's `module:callable`, which is handed the same things and trusted with less."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, get_args

from mcp_ops.agent.session import Agent, AgentInput, AgentOutput
from mcp_ops.evaluation.config import AgentName, RunConfig
from mcp_ops.evaluation.session.loading import called, described, load
from mcp_ops.llm.base import Message, Model, ModelError, NativeModel, Reply
from mcp_ops.text import one_line
from mcp_ops.trace.events import Finish, LlmRequest, LlmResponse, Payload, PromptMessage


def agent_of(config: RunConfig, name: AgentName = "ops") -> Agent:
    """Return the agent that works on a line.

    Args:
        config: Names the user's agent, if there is one: then it works on every line, whatever the line names.
        name: Which of ours the line names.

    Raises:
        SetupError: The user's agent cannot be loaded.
    """
    if config.agent is not None:
        return UsersAgent(load("the agent", config.agent, config.rootdir))
    from mcp_ops.agent import run_agent, run_command_line_agent

    # Here, so that the first scenario of a process is not charged for it.
    import_module("langgraph.graph")
    return run_command_line_agent if name == "command-line" else run_agent


class UsersAgent:
    """A user's callable in the place of our agent. It may be a coroutine function, and may return just its answer."""

    def __init__(self, function: Callable[[AgentInput], Any]) -> None:
        self._function = function

    async def __call__(self, given: AgentInput) -> AgentOutput:
        """Run it. What it raises is how it ends, save what is the script's fault.

        Raises:
            ModelError: Of kind `script` only, even when the user's code swallowed it.
        """
        if isinstance(given.model, NativeModel):
            raise TypeError("a user's agent is handed a model that completes messages")
        model = _RecordedModel(given.model, given.emit)

        def emit(payload: Payload) -> None:
            if isinstance(payload, LlmRequest | LlmResponse) and not model.used:
                given.emit(payload)

        try:
            result = await called(self._function, replace(given, model=model, emit=emit))
        except ModelError as error:
            result = AgentOutput("error", error=str(error), infrastructure=error.infrastructure)
        except (Exception, SystemExit) as error:
            result = AgentOutput("error", error=described(error))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            result = AgentOutput("error", error="the agent cancelled itself")
        if model.script_error is not None:
            raise model.script_error
        return _output(result)


def _output(result: object) -> AgentOutput:
    if isinstance(result, AgentOutput):
        wrong = _wrong_in(result)
        return AgentOutput("error", error=f"the agent returned an AgentOutput {wrong}") if wrong else result
    if isinstance(result, str):
        return AgentOutput("answer", answer=result)
    return AgentOutput("error", error=f"the agent returned {type(result).__name__}; return an AgentOutput or a text")


def _wrong_in(output: AgentOutput) -> str:
    """Return what keeps an output from being one, as the rest of a sentence: nothing checks what users put in."""
    if output.finish not in get_args(Finish):
        return f"whose finish is {one_line(repr(output.finish), 60)}; write {', '.join(get_args(Finish))}"
    texts: tuple[object, ...] = (output.answer, output.error)
    if not all(isinstance(text, str | None) for text in texts):
        return "whose answer or error is no text"
    if (output.answer is not None) != (output.finish == "answer"):
        return f"with finish {output.finish} and {'an' if output.answer is not None else 'no'} answer"
    return ""


class _RecordedModel:
    """Writes the model events for an agent that knows nothing of them."""

    def __init__(self, model: Model, emit: Callable[[Payload], None]) -> None:
        self._model = model
        self._emit = emit
        self._turn = 0
        self.used = False
        self.script_error: ModelError | None = None

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> Reply:
        self.used = True
        turn, self._turn = self._turn, self._turn + 1
        sent = [PromptMessage(role=message.role, content=message.content) for message in messages]
        self._emit(LlmRequest(turn=turn, messages=sent))
        started = time.perf_counter()
        try:
            reply = await self._model.complete(messages, schema=schema)
        except ModelError as error:
            if error.kind == "script":
                self.script_error = self.script_error or error
            raise
        self._emit(
            LlmResponse(
                turn=turn,
                text=reply.text,
                model=reply.model,
                finish_reason=reply.finish_reason,
                prompt_tokens=reply.prompt_tokens,
                completion_tokens=reply.completion_tokens,
                usd=reply.usd,
                duration_ms=(time.perf_counter() - started) * 1000,
                attempts=reply.attempts,
            )
        )
        return reply
