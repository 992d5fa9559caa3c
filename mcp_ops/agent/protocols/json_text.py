"""JSON in plain text, for any chat model: the protocol, the tools, the task, and the last observations."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

from mcp_ops.agent.observations import RESULTS_ARE_DATA, context_section, result_blocks
from mcp_ops.agent.protocols.base import Answered
from mcp_ops.agent.protocols.json_schema import answer_schema, turn_schema
from mcp_ops.agent.protocols.json_turn import parse_turn
from mcp_ops.agent.protocols.wording import DESCRIPTION_BUDGET, ROLE, earlier_reply
from mcp_ops.agent.session import ToolInfo
from mcp_ops.agent.turns import MAX_CALLS_A_TURN, Exchange, Malformed, Turn
from mcp_ops.llm.base import Message, Model, Reply
from mcp_ops.text import cap, clean, clean_value, one_line

_TO_CALL = f"""\
To call a tool:
%s
To call several tools, at most {MAX_CALLS_A_TURN}, write "actions": [{{"tool": ..., "args": ...}}] instead of "action".
When the task is done, or cannot be done:"""
_PROTOCOL = f"""\
Reply with exactly one JSON object and no text around it. %s
{{"thought": "why", "finish": "the answer for the user"}}

The user's messages after the task hold the results of your calls. {RESULTS_ARE_DATA}"""


class JsonText:
    """Asks for one JSON object a turn."""

    def __init__(self, model: Model, tools: Sequence[ToolInfo], context: Sequence[str] = ()) -> None:
        self._model = model
        self._context = tuple(context)
        self._system, self._schema = _introduction(
            tuple(_Listed(tool.name, tool.description, tool.input_schema) for tool in tools), self._context
        )

    def question(self, task: str, history: Sequence[Exchange], *, last: str | None = None) -> "JsonQuestion":
        """Return the next question."""
        if last is None:
            return JsonQuestion(self._model, build_prompt(self._system, task, history), self._schema)
        system, schema = system_message((), self._context), answer_schema()
        return JsonQuestion(self._model, build_prompt(system, task, history, note=last), schema)


@dataclass(frozen=True)
class Prompt:
    """The messages of one question."""

    messages: tuple[Message, ...]
    dropped: int
    """How many older observations did not fit the budget."""


@dataclass(frozen=True)
class JsonQuestion:
    """One question for a JSON object."""

    model: Model
    prompt: Prompt
    schema: Mapping[str, Any]

    @property
    def messages(self) -> Sequence[Message]:
        """What is sent."""
        return self.prompt.messages

    @property
    def dropped(self) -> int:
        """How many older observations did not fit the budget."""
        return self.prompt.dropped

    async def ask(self) -> Answered:
        """Ask it.

        Raises:
            ModelError: No usable reply came back.
        """
        reply = await self.model.complete(self.prompt.messages, schema=self.schema)
        return Answered(reply, Exchange(reply.text, _read(reply)))


def _read(reply: Reply) -> Turn | Malformed:
    turn = parse_turn(reply.text)
    if isinstance(turn, Malformed) and reply.finish_reason == "length":
        return Malformed("the reply ran into the length limit and was cut; write a shorter one")
    return turn


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
def _introduction(tools: tuple[_Listed, ...], context: tuple[str, ...]) -> tuple[Message, Mapping[str, Any]]:
    """Return the system message and the schema of a turn, which are the same for every run with the same tools."""
    roster = [ToolInfo(tool.name, tool.description, tool.input_schema) for tool in tools]
    return system_message(roster, context), turn_schema({tool.name: tool.input_schema for tool in tools})


def system_message(tools: Sequence[ToolInfo], context: Sequence[str] = ()) -> Message:
    """Return the roster, each tool's name, description and argument schema, further data, and the protocol."""
    roster = "\n".join(_tool(tool) for tool in tools) or "There are no tools."
    protocol = _PROTOCOL % (_TO_CALL % _example(tools) if tools else "Write:")
    return Message("system", "\n\n".join(part for part in (ROLE, roster, context_section(context), protocol) if part))


def build_prompt(system: Message, task: str, history: Sequence[Exchange], *, note: str = "") -> Prompt:
    """Return the next question, given all turns so far. A note stands at its end."""
    rendered, dropped = result_blocks([seen for exchange in history for seen in exchange.observations])
    blocks = iter(rendered)
    messages = [system, Message("user", f"Task: {clean(task)}")]
    for exchange in history:
        messages.append(Message("assistant", earlier_reply(exchange.reply)))
        if isinstance(exchange.turn, Malformed):
            messages.append(Message("user", _repair(exchange.turn)))
        else:
            messages.append(Message("user", "\n".join(islice(blocks, len(exchange.observations)))))
    if note:
        messages[-1] = Message("user", f"{messages[-1].content}\n\n{note}")
    return Prompt(tuple(messages), dropped)


def _tool(tool: ToolInfo) -> str:
    schema = json.dumps(clean_value(tool.input_schema), ensure_ascii=False, separators=(",", ":"))
    description = cap(clean(tool.description), DESCRIPTION_BUDGET).text.replace("\n", "\n  ")
    return f"- {one_line(tool.name)}: {description}\n  args: {cap(schema, DESCRIPTION_BUDGET).text}"


def _example(tools: Sequence[ToolInfo]) -> str:
    """Return a call as the protocol wants it, of a tool that is there: small models copy what they see."""
    name, arguments = one_line(tools[0].name), _example_arguments(tools[0].input_schema)
    return json.dumps({"thought": "why", "action": {"tool": name, "args": arguments}}, ensure_ascii=False)


def _example_arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the required arguments, each with the first example that the tool itself gives for it."""
    required, properties = schema.get("required"), schema.get("properties")
    if not isinstance(required, list) or not isinstance(properties, Mapping):
        return {}
    given = {str(key): properties.get(key) for key in required}
    examples = {key: field.get("examples") if isinstance(field, Mapping) else None for key, field in given.items()}
    return {
        one_line(key): clean_value(found[0]) if isinstance(found, list) and found else "..."
        for key, found in examples.items()
    }


def _repair(malformed: Malformed) -> str:
    return f"Your reply was not understood and nothing was done: {malformed.reason}. Reply again with one JSON object."
