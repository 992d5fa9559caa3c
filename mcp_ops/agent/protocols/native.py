"""The provider's own tool calls: the tools are sent as tools, and results come back as answers to calls.

What came back from tools is cleaned, marked as data and held within the same byte budgets as in plain text.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mcp_ops.agent.observations import RESULTS_ARE_DATA, context_section, result_blocks
from mcp_ops.agent.protocols.base import Answered
from mcp_ops.agent.protocols.wording import DESCRIPTION_BUDGET, REPLY_BUDGET, ROLE, earlier_reply
from mcp_ops.agent.session import ToolInfo
from mcp_ops.agent.turns import MAX_CALLS_A_TURN, Exchange, Malformed, RequestedCall, Turn
from mcp_ops.llm.base import (
    CallResult,
    ConversationTurn,
    Message,
    ModelTurn,
    NativeCall,
    NativeModel,
    NativeReply,
    ResultsTurn,
    ToolSpec,
    UserTurn,
)
from mcp_ops.text import cap, clean, clean_value, one_line
from mcp_ops.trace.events import CALL_MARK

SCHEMA_BUDGET = 16_384
"""Most bytes of the schema of one tool's arguments. A longer one is not sent: the server says what is wrong."""

_PROTOCOL = f"""\
Call tools to find out what you need, several in one turn if they do not depend on each other. When the task is done, or
cannot be done, answer the user in plain text without calling a tool.

{RESULTS_ARE_DATA}"""


class NativeCalls:
    """Asks for text or tool calls."""

    def __init__(self, model: NativeModel, tools: Sequence[ToolInfo], context: Sequence[str] = ()) -> None:
        self._model = model
        self._system = "\n\n".join(part for part in (ROLE, context_section(context), _PROTOCOL) if part)
        self._tools = tuple(_spec(tool) for tool in tools)

    def question(self, task: str, history: Sequence[Exchange], *, last: str | None = None) -> "NativeQuestion":
        """Return the next question."""
        blocks, dropped = result_blocks([seen for exchange in history for seen in exchange.observations])
        turns = [UserTurn(f"Task: {clean(task)}"), *_turns(history, iter(blocks))]
        tools = self._tools
        if last is not None:
            turns[-1] = _noted(turns[-1], last)
            tools = ()
        return NativeQuestion(self._model, self._system, tuple(turns), tools, dropped)


@dataclass(frozen=True)
class NativeQuestion:
    """One question for text or calls."""

    model: NativeModel
    system: str
    turns: tuple[ConversationTurn, ...]
    tools: tuple[ToolSpec, ...]
    dropped: int

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation as a person reads it. The tools themselves stand in the record of the run."""
        return [Message("system", self.system), *(_shown(turn) for turn in self.turns)]

    async def ask(self) -> Answered:
        """Ask it.

        Raises:
            ModelError: No usable reply came back.
        """
        reply = await self.model.converse(self.system, self.turns, self.tools)
        return Answered(reply, Exchange(_said(reply.text, reply.calls), _read(reply), native=reply))


def _read(reply: NativeReply) -> Turn | Malformed:
    """Read a reply. One call that cannot be read makes the whole turn malformed: nothing of it is run."""
    if len(reply.calls) > MAX_CALLS_A_TURN:
        return Malformed(f"the reply asks for {len(reply.calls)} calls; ask for at most {MAX_CALLS_A_TURN} in one turn")
    unreadable = next((call for call in reply.calls if call.arguments is None), None)
    if reply.cut and (unreadable or not reply.calls):
        return Malformed("the reply ran into the length limit and was cut; write a shorter one")
    if unreadable is not None:
        return Malformed(f"the arguments of {one_line(unreadable.name, 80)} {unreadable.unreadable}")
    if reply.calls:
        return Turn(reply.text, tuple(RequestedCall(call.name, call.arguments or {}) for call in reply.calls))
    if not reply.text.strip():
        return Malformed("the reply is empty; call a tool or answer the user")
    return Turn("", finish=reply.text)


def _turns(history: Sequence[Exchange], blocks: Iterator[str]) -> Iterator[ConversationTurn]:
    """Yield the turns so far as the provider is sent them: each call of the model is answered."""
    for exchange in history:
        reply = exchange.native or NativeReply(exchange.reply)
        calls = tuple(_again(call) for call in reply.calls)
        text = earlier_reply(reply.text) if reply.text.strip() or not calls else ""
        yield ModelTurn(text, calls, reply.kept)
        if isinstance(exchange.turn, Malformed):
            yield _repair(exchange.turn, calls)
        else:
            states = [seen.state for seen in exchange.observations]
            results = zip(calls, states, blocks, strict=False)
            yield ResultsTurn(tuple(_result(call, block, state != "executed") for call, state, block in results))


def _repair(malformed: Malformed, calls: Sequence[NativeCall]) -> ConversationTurn:
    sentence = f"Your reply was not understood and nothing was done: {malformed.reason}."
    if not calls:
        return UserTurn(sentence)
    return ResultsTurn(tuple(_result(call, sentence, True) for call in calls))


def _result(call: NativeCall, text: str, is_error: bool) -> CallResult:
    return CallResult(call.id, call.name, text, is_error)


def _again(call: NativeCall) -> NativeCall:
    """Return an earlier call as the model is shown it again."""
    arguments: Any = clean_value(call.arguments or {})
    size = len(json.dumps(arguments, ensure_ascii=False, default=str).encode("utf-8", "replace"))
    if size > REPLY_BUDGET:
        arguments = {"left_out": f"{size} bytes of arguments, to save room"}
    return replace(call, name=clean(call.name), arguments=arguments, written=cap(clean(call.written), 200).text)


def _noted(turn: ConversationTurn, note: str) -> ConversationTurn:
    if isinstance(turn, ResultsTurn):
        return replace(turn, note=note)
    return UserTurn(f"{turn.text}\n\n{note}")


def _shown(turn: ConversationTurn) -> Message:
    match turn:
        case UserTurn(text):
            return Message("user", text)
        case ModelTurn(text, calls):
            return Message("assistant", _said(text, calls))
        case ResultsTurn(results, note):
            return Message("user", "\n".join([*(result.text for result in results), *([f"\n{note}"] if note else [])]))


def _said(text: str, calls: Sequence[NativeCall]) -> str:
    """Return a reply as a person reads it: the text, then a line for each call."""
    lines = [text] if text else []
    for call in calls:
        if call.unreadable:
            lines.append(f"[unreadable call] {call.name} {call.written}")
        else:
            lines.append(f"{CALL_MARK}{call.name} {json.dumps(call.arguments, ensure_ascii=False, default=str)}")
    return "\n".join(lines)


def _spec(tool: ToolInfo) -> ToolSpec:
    description = cap(clean(tool.description), DESCRIPTION_BUDGET).text
    return ToolSpec(tool.name, description, _object_schema(clean_value(tool.input_schema)))


_COMBINING = frozenset({"oneOf", "anyOf", "allOf", "not", "enum", "const", "if", "then", "else"})


def _object_schema(schema: object) -> Mapping[str, Any]:
    """Return a schema that providers take: of an object, combined with nothing at its top, and not too long.

    The server checks the arguments itself: what is left out here only helps the model less.
    """
    if not isinstance(schema, Mapping) or len(json.dumps(schema).encode("utf-8")) > SCHEMA_BUDGET:
        return {"type": "object"}
    return {**{key: value for key, value in schema.items() if key not in _COMBINING}, "type": "object"}
