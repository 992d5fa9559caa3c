"""The events of a run, one typed class each, and the union to read them back."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from mcp_ops.text import Encoding

Finish = Literal["answer", "max_steps", "error"]
"""How a run ended: the model answered, the budget of calls was spent, or nothing usable came back."""

StateName = Literal["executed", "failed", "denied", "unavailable", "declined"]
"""The states of a call, as they are written."""

FaultName = Literal["error", "timeout", "empty", "huge", "malformed", "text"]
"""The faults that a scenario can put into a call."""

ToolClassName = Literal["read_only", "mutating", "destructive"]
"""How dangerous a tool is, from the least."""

ConfirmedBy = Literal["person", "script", "option", "nobody"]
"""Who answered whether a call may be sent."""

CALL_MARK = "[call] "
"""What begins a line of a reply's text that stands for a call of a model with native tool calls."""

EffectKind = Literal["created", "changed", "removed", "left_over"]
"""What a witness saw happen to an object of the world."""


class Payload(BaseModel):
    """Base of all payloads."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="strings")


class RunStart(Payload):
    """What was about to be done, with what."""

    task: str
    scenario: str | None = None
    """Id of the scenario, or None outside an evaluation."""
    location: str | None = None
    """`scenarios/scenarios.jsonl:17`."""
    title: str | None = None
    mode: Literal["mock", "live"]
    model: str
    transport: str = "memory"
    servers: list[str] = Field(default_factory=list)
    tools: list[str] = Field(default_factory=list)
    max_calls: int
    cluster: str = "none"
    """`none`, or the display name and uid of the cluster that was named for this run."""
    github: str = "none"
    """`none`, or where the GitHub of this run is: `in memory: acme/web, acme/api`."""
    agent: str = "ops"
    """Which agent: `ops`, `command-line`, or the user's own as it is configured."""
    second_wall: str = "absent"
    """`landlock`, `bubblewrap`, or `absent` with the reason."""
    children_network: Literal["isolated", "unchecked"] = "unchecked"


class PromptMessage(Payload):
    """One message as the model was sent it."""

    role: Literal["system", "user", "assistant"]
    content: str
    truncated: bool = False
    full_length: int | None = None


class LlmRequest(Payload):
    """One question to the model."""

    turn: int
    """Counts from 0."""
    messages: list[PromptMessage]
    """All of them in memory; in a written trace those that come after the repeated ones."""
    repeated: int = 0
    """How many messages of the request before it begins with, unchanged. They are not written again."""
    dropped: int = 0
    """How many older observations did not fit the prompt's byte budget."""


class LlmResponse(Payload):
    """One reply of the model."""

    turn: int
    text: str
    """What it said. Native tool calls stand behind it, a line each: `[call] read_file {"path": "a"}`."""
    malformed: str | None = None
    """Why the reply was no valid turn, in one sentence, else None."""
    model: str = ""
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    usd: float | None = None
    duration_ms: float = 0.0
    attempts: int = 1
    """How many requests it took: 429 and 5xx are asked again."""
    truncated: bool = False
    full_length: int | None = None


class ToolCall(Payload):
    """One requested call, whatever becomes of it. Arguments are written in full."""

    call: int
    """Counts from 0 over the run."""
    turn: int
    tool: str
    server: str
    args: dict[str, Any]


class ToolResult(Payload):
    """What became of a call."""

    call: int
    tool: str
    server: str
    state: StateName
    rule: str | None = None
    text: str
    structured: Any = None
    exit_code: int | None = None
    claimed: bool = False
    """The state is a foreign server's own claim."""
    fault: Literal[FaultName, None] = None
    """The fault that the scenario put into this call: what came back is not, or not only, what a server said."""
    truncated: bool = False
    full_length: int | None = None
    duration_ms: float = 0.0


class GuardDenied(Payload):
    """A rule said no."""

    call: int
    tool: str
    server: str
    rule: str
    reason: str
    hint: str = ""
    claimed: bool = False


class ServerAsked(Payload):
    """A server asked its client for something: sampling, roots or elicitation."""

    server: str
    method: str
    """`sampling/createMessage`, `roots/list` or `elicitation/create`."""
    granted: bool
    text: str = ""
    """The beginning of what it said, on one line."""
    call: int | None = None
    """The call that was running on that server."""


class ConfirmationGiven(Payload):
    """Somebody was asked whether a call that changes something may be sent."""

    call: int
    tool: str
    server: str
    tool_class: ToolClassName
    answer: Literal["yes", "no"]
    by: ConfirmedBy
    why: str = ""
    """Half a sentence, such as `the input ended`."""
    waited_ms: float = 0.0


class RunFinish(Payload):
    """How the run ended."""

    finish: Finish
    answer: str | None = None
    error: str | None = None
    calls: int
    turns: int
    duration_ms: float = 0.0


class LeakFound(Payload):
    """A canary was seen where it must not be. The value itself is never written."""

    where: str
    """`args of call 2`, `prompt of turn 3`, `answer`, …"""
    canary: int
    """Number of the canary, from 1."""
    encoding: Encoding
    call: int | None = None


class EffectSeen(Payload):
    """A witness saw the world change."""

    witness: str
    kind: EffectKind
    object: str
    """What changed, such as a path in the workspace."""
    detail: str = ""


class _Event(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    seq: int
    ts: str
    """UTC with milliseconds: `2026-10-07T12:00:03.512Z`."""
    run_id: str


class RunStartEvent(_Event):
    event: Literal["run_start"] = "run_start"
    node: str = "run"
    payload: RunStart


class LlmRequestEvent(_Event):
    event: Literal["llm_request"] = "llm_request"
    node: str = "reason"
    payload: LlmRequest


class LlmResponseEvent(_Event):
    event: Literal["llm_response"] = "llm_response"
    node: str = "reason"
    payload: LlmResponse


class ToolCallEvent(_Event):
    event: Literal["tool_call"] = "tool_call"
    node: str = "act"
    payload: ToolCall


class ToolResultEvent(_Event):
    event: Literal["tool_result"] = "tool_result"
    node: str = "act"
    payload: ToolResult


class GuardDeniedEvent(_Event):
    event: Literal["guard_denied"] = "guard_denied"
    node: str = "act"
    payload: GuardDenied


class ServerAskedEvent(_Event):
    event: Literal["server_asked"] = "server_asked"
    node: str = "act"
    payload: ServerAsked


class ConfirmationEvent(_Event):
    event: Literal["confirmation"] = "confirmation"
    node: str = "act"
    payload: ConfirmationGiven


class RunFinishEvent(_Event):
    event: Literal["run_finish"] = "run_finish"
    node: str = "finalize"
    payload: RunFinish


class LeakFoundEvent(_Event):
    event: Literal["leak_found"] = "leak_found"
    node: str = "witness"
    payload: LeakFound


class EffectSeenEvent(_Event):
    event: Literal["effect_seen"] = "effect_seen"
    node: str = "witness"
    payload: EffectSeen


Event = (
    RunStartEvent
    | LlmRequestEvent
    | LlmResponseEvent
    | ToolCallEvent
    | ToolResultEvent
    | GuardDeniedEvent
    | ServerAskedEvent
    | ConfirmationEvent
    | RunFinishEvent
    | LeakFoundEvent
    | EffectSeenEvent
)
"""Any event. Use `read_event` to get one from a line."""

_ADAPTER: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])
_ALL: TypeAdapter[list[Event]] = TypeAdapter(list[Annotated[Event, Field(discriminator="event")]])
_EVENT_OF: dict[type[Payload], type[Event]] = {
    RunStart: RunStartEvent,
    LlmRequest: LlmRequestEvent,
    LlmResponse: LlmResponseEvent,
    ToolCall: ToolCallEvent,
    ToolResult: ToolResultEvent,
    GuardDenied: GuardDeniedEvent,
    ServerAsked: ServerAskedEvent,
    ConfirmationGiven: ConfirmationEvent,
    RunFinish: RunFinishEvent,
    LeakFound: LeakFoundEvent,
    EffectSeen: EffectSeenEvent,
}
_NAMES: dict[type[Payload], tuple[str, str]] = {
    payload: (event.model_fields["event"].default, event.model_fields["node"].default)
    for payload, event in _EVENT_OF.items()
}
"""Name and node of the event that a payload is wrapped in."""


def envelope(payload: Payload, *, run_id: str, at: datetime) -> dict[str, str]:
    """Return what stands between `seq` and a payload in a trace, in that order. `at` is any aware time."""
    event, node = _NAMES[type(payload)]
    moment = at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    return {"ts": moment, "run_id": run_id, "event": event, "node": node}


def make_event(payload: Payload, *, seq: int, run_id: str, at: datetime) -> Event:
    """Wrap a payload in the event of its class."""
    event: Event = _EVENT_OF[type(payload)].model_validate(
        {"seq": seq, **envelope(payload, run_id=run_id, at=at), "payload": payload}
    )
    return event


def read_events(lines: Sequence[bytes]) -> list[Event]:
    """Read lines of a trace that are events, every one of them.

    Raises:
        pydantic.ValidationError: One of them is not.
    """
    # A line that is several values, or a part of one, would be read with its neighbours.
    found = _ALL.validate_json(b"[" + b",".join(lines) + b"]")
    return found if len(found) == len(lines) else [read_event(line) for line in lines]


def read_event(line: str | bytes) -> Event:
    """Read one line of a trace.

    Raises:
        pydantic.ValidationError: The line is not an event.
    """
    return _ADAPTER.validate_json(line)
