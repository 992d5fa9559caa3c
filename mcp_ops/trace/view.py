"""What a page shows of a run: calls put together with what became of them, turn by turn."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from pydantic_core import PydanticSerializationError, to_json

from mcp_ops.text import one_line
from mcp_ops.trace.console import arguments_gist
from mcp_ops.trace.detail import Detail
from mcp_ops.trace.events import (
    CALL_MARK,
    ConfirmationGiven,
    EffectSeen,
    Event,
    GuardDenied,
    LeakFound,
    LlmRequest,
    LlmResponse,
    Payload,
    PromptMessage,
    RunFinish,
    RunStart,
    ServerAsked,
    ToolCall,
    ToolResult,
)
from mcp_ops.trace.quiet import quiet_trace
from mcp_ops.trace.reader import Trace
from mcp_ops.trace.shown import Paper, Room, Shown

_KNOWN_STRUCTURED = frozenset({"state", "rule", "reason", "hint", "truncated", "full_length", "exit_code"})
_NO_RESULT = "no result"

_OfACall = ToolCall | ToolResult | GuardDenied | ConfirmationGiven
N = TypeVar("N", int, float)
P = TypeVar("P", bound=Payload)


@dataclass
class Call:
    """One requested call and what became of it."""

    number: int
    """Counts from 1."""
    tool: str
    server: str
    at: str
    """Seconds since the run began."""
    gist: str = ""
    args: Shown | None = None
    state: str = _NO_RESULT
    rule: str | None = None
    denial: GuardDenied | None = None
    result: ToolResult | None = None
    text: Shown | None = None
    structured: Shown | None = None
    """What the structured content says beyond the fields that every reply has."""
    leaks: list[LeakFound] = field(default_factory=list)
    asked: list[ServerAsked] = field(default_factory=list)
    """What the server asked of its client meanwhile."""
    confirmation: ConfirmationGiven | None = None
    """What was answered when somebody was asked whether it may be sent."""
    events: list[str] = field(default_factory=list)
    """The events of the trace behind this row: `3 tool_call`."""


@dataclass
class Turn:
    """One question to the model, its reply and the calls that the reply asked for."""

    number: int
    """Counts from 1."""
    at: str
    request: LlmRequest | None = None
    messages: list[tuple[str, Shown]] = field(default_factory=list)
    """Role and text of the messages that the prompt before did not begin with."""
    reply: LlmResponse | None = None
    reply_text: Shown | None = None
    gist: str = ""
    """The model's thought, else the beginning of its reply."""
    calls: list[Call] = field(default_factory=list)
    events: list[str] = field(default_factory=list)


@dataclass
class Run:
    """One run, ready to be shown."""

    run_id: str
    started: str
    start: RunStart | None
    finish: RunFinish | None
    heading: str
    task: Shown | None
    answer: Shown | None
    error: Shown | None
    turns: list[Turn]
    turns_left_out: int
    calls: int
    denials: int
    tokens: int | None
    usd: float | None
    duration_ms: float
    tally: list[tuple[str, list[tuple[str, int]]]]
    """Each tool with how many of its calls ended in which state."""
    effects: list[EffectSeen]
    leaks: list[LeakFound]
    warnings: list[str]
    """What is wrong with the trace itself."""
    file: str
    detail: Detail = "full"
    """How much of it is shown."""


def view_run(trace: Trace, room: Room, detail: Detail = "full") -> Run:
    """Put the events of a run together, those of a quieter trace unless `detail` is full."""
    if detail != "full":
        trace = quiet_trace(trace)
    paper = Paper(room)
    start, finish = trace.start, trace.finish
    task = paper.show(start.task) if start else None
    answer = paper.show(finish.answer) if finish and finish.answer is not None else None
    error = paper.show(finish.error) if finish and finish.error is not None else None
    timeline = _Timeline(trace, paper)
    calls = timeline.calls.values()
    replies = list(_payloads(trace, LlmResponse))
    turns = list(_as_many_rows(timeline.turns, room.rows))
    return Run(
        run_id=trace.events[0].run_id if trace.events else "",
        started=trace.events[0].ts if trace.events else "",
        start=start,
        finish=finish,
        heading=one_line((start.title or start.scenario or start.task) if start else "A run without a beginning"),
        task=task,
        answer=answer,
        error=error,
        turns=turns,
        turns_left_out=len(timeline.turns) - len(turns),
        calls=len(calls),
        denials=sum(call.state == "denied" for call in calls),
        tokens=_sum(count for reply in replies for count in (reply.prompt_tokens, reply.completion_tokens)),
        usd=_sum(reply.usd for reply in replies),
        duration_ms=finish.duration_ms if finish else timeline.last_offset * 1000,
        tally=_tally(calls),
        effects=list(_payloads(trace, EffectSeen)),
        leaks=list(_payloads(trace, LeakFound)),
        warnings=list(_warnings(trace)),
        file=str(trace.path) if trace.path else "",
        detail=detail,
    )


class _Timeline:
    """Turns and calls, put together from events in the order in which they were written."""

    def __init__(self, trace: Trace, paper: Paper) -> None:
        self.turns: list[Turn] = []
        self.calls: dict[int, Call] = {}
        self.last_offset = 0.0
        self._paper = paper
        self._begin = _moment(trace.events[0]) if trace.events else None
        for event in trace.events:
            self._add(event)

    def _add(self, event: Event) -> None:
        at, name = self._offset(event), f"{event.seq} {event.event}"
        match event.payload:
            case LlmRequest() as request:
                self._ask(self._turn(request.turn, at), request, name)
            case LlmResponse() as reply:
                self._answer(self._turn(reply.turn, at), reply, name)
            case ToolCall() as call:
                self._call(call, self._turn(call.turn, at), at, name)
            case ToolResult() as result:
                self._finish(result, at, name)
            case GuardDenied() as denial:
                row = self._row(denial, at, name)
                row.state, row.rule, row.denial = "denied", denial.rule, denial
            case LeakFound(call=int(index)) as leak if index in self.calls:
                self.calls[index].leaks.append(leak)
            case ServerAsked(call=int(index)) as asked if index in self.calls:
                self.calls[index].asked.append(asked)
                self.calls[index].events.append(name)
            case ConfirmationGiven() as confirmation:
                self._row(confirmation, at, name).confirmation = confirmation

    def _turn(self, index: int, at: str) -> Turn:
        if not self.turns or self.turns[-1].number != index + 1:
            self.turns.append(Turn(index + 1, at))
        return self.turns[-1]

    def _ask(self, turn: Turn, request: LlmRequest, name: str) -> None:
        turn.request = request
        turn.events.append(name)
        for message in request.messages:
            turn.messages.append((message.role, self._shown(message)))

    def _shown(self, message: PromptMessage) -> Shown:
        system = message.role == "system"
        return self._paper.show(message.content, cut=message.truncated, full_length=message.full_length, system=system)

    def _answer(self, turn: Turn, reply: LlmResponse, name: str) -> None:
        turn.reply = reply
        turn.reply_text = self._paper.show(reply.text, cut=reply.truncated, full_length=reply.full_length)
        turn.gist = one_line(_thought(reply.text) or reply.text.split(f"\n{CALL_MARK}")[0])
        turn.events.append(name)

    def _call(self, call: ToolCall, turn: Turn, at: str, name: str) -> None:
        row = self._row(call, at, name, turn)
        row.gist = arguments_gist(call.args)
        row.args = self._paper.show(indented(call.args))

    def _finish(self, result: ToolResult, at: str, name: str) -> None:
        row = self._row(result, at, name)
        row.state, row.rule, row.result = result.state, result.rule, result
        row.text = self._paper.show(result.text, cut=result.truncated, full_length=result.full_length)
        further = result.structured
        if isinstance(further, dict):
            further = {key: value for key, value in further.items() if key not in _KNOWN_STRUCTURED}
        if further not in (None, {}):
            row.structured = self._paper.show(indented(further))

    def _row(self, about: _OfACall, at: str, name: str, turn: Turn | None = None) -> Call:
        """Return the row of a call, also when the trace lost the event that begins it."""
        row = self.calls.get(about.call)
        if row is None:
            row = self.calls[about.call] = Call(about.call + 1, about.tool, about.server, at)
            (turn or self._turn(self.turns[-1].number - 1 if self.turns else 0, at)).calls.append(row)
        row.events.append(name)
        return row

    def _offset(self, event: Event) -> str:
        moment = _moment(event)
        if moment is None or self._begin is None:
            return ""
        self.last_offset = (moment - self._begin).total_seconds()
        return f"{self.last_offset:.3f}"


def indented(value: object) -> str:
    """Return a JSON value in lines. The standard library indents in Python, at ten times the cost."""
    try:
        return to_json(value, indent=2, inf_nan_mode="constants").decode()
    except (PydanticSerializationError, ValueError):
        return json.dumps(value, indent=2, ensure_ascii=False)


def _moment(event: Event) -> datetime | None:
    try:
        moment = datetime.fromisoformat(event.ts)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def _thought(reply: str) -> str | None:
    try:
        turn = json.loads(reply)
    except (ValueError, RecursionError):
        return None
    thought = turn.get("thought") if isinstance(turn, dict) else None
    return thought if isinstance(thought, str) else None


def _payloads(trace: Trace, kind: type[P]) -> Iterator[P]:
    return (event.payload for event in trace.events if isinstance(event.payload, kind))


def _as_many_rows(turns: list[Turn], rows: int) -> Iterator[Turn]:
    for turn in turns:
        rows -= 1 + len(turn.calls)
        if rows < 0:
            return
        yield turn


def _tally(calls: Iterable[Call]) -> list[tuple[str, list[tuple[str, int]]]]:
    counts: dict[str, Counter[str]] = {}
    for call in calls:
        counts.setdefault(call.tool, Counter())[call.state] += 1
    return [(tool, states.most_common()) for tool, states in counts.items()]


def _sum(values: Iterable[N | None]) -> N | None:
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known else None


def _warnings(trace: Trace) -> Iterator[str]:
    if trace.start is None:
        yield "The trace has no run_start event."
    if trace.finish is None:
        yield "The run did not finish: the trace has no run_finish event."
    if trace.torn:
        yield "The last line of the trace is cut off; it was left out."
    yield from trace.problems
