"""The recording session: what an agent gets instead of MCP clients, and what writes the ledger.

Every agent, ours and a user's, reaches servers through it. So the ledger does not depend on an agent's honesty.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from mcp_types import CallToolResult

from mcp_ops.agent.policies.confirmation import MAX_WRITES, Confirmation
from mcp_ops.agent.session import Observation, ToolInfo
from mcp_ops.evaluation.observed import CallRecord
from mcp_ops.evaluation.session.asked import Asked
from mcp_ops.evaluation.session.calling import send_call, untaken
from mcp_ops.evaluation.session.connection import Connection
from mcp_ops.evaluation.session.fault_plan import Fault, FaultPlan
from mcp_ops.evaluation.session.replies import (
    Answer,
    answer_of_error,
    answer_of_foreign,
    answer_of_ours,
    answer_without_form,
    failed,
    refused,
)
from mcp_ops.evaluation.session.routing import routes, tool_info
from mcp_ops.evaluation.session.rules import BUDGET_SPENT, SERVER_DIED, SERVER_ERROR, SERVER_TOO_LARGE
from mcp_ops.evaluation.session.writes import Writes
from mcp_ops.gate import ARGS_INVALID, TIME_LIMIT, TOOL_UNKNOWN, AuditRecord, unknown_tool
from mcp_ops.llm.references import PastCall
from mcp_ops.text import cap, clean, one_line
from mcp_ops.trace.events import GuardDenied, ServerAsked, StateName, ToolCall, ToolClassName, ToolResult
from mcp_ops.trace.ledger import Ledger

CALL_SECONDS = 60.0
"""How long one call may take. Our own tools stop earlier."""
MAX_OBSERVATION_BYTES = 64 * 1024
"""Most bytes of a reply that an agent is shown. Our own servers cap earlier."""
MAX_REFUSED_CALLS = 1000
"""Calls beyond the budget after which an agent that does not stop is stopped."""
MAX_ASKED = 20
"""Most requests of servers to their client that one run records."""

_ENDED = "the run ended during this call"


class CallsWithoutEnd(Exception):
    """The agent goes on calling tools although every call is refused."""


class RunIsOver(RuntimeError):
    """A call was asked for after the agent had ended. It reaches no server."""


class RecordingSession:
    """A connection to one or several servers that writes the ledger: `tool_call`, `tool_result` and what lies between.

    Args:
        connections: Connected servers, in the order in which their tools are listed.
        ledger: Where the events go.
        max_calls: Calls after which none runs any more.
        call_seconds: How long one call may take.
        faults: What goes wrong on purpose, and in which calls.
        confirm: Who is asked before a call of a tool that is not read-only is sent; None asks nobody.
        max_writes: How many such calls may be confirmed.
        tool_classes: What is known of tools beside what they say of themselves, see `class_of`.
    """

    def __init__(
        self,
        connections: Sequence[Connection],
        ledger: Ledger,
        *,
        max_calls: int,
        call_seconds: float = CALL_SECONDS,
        faults: FaultPlan | None = None,
        confirm: Confirmation | None = None,
        max_writes: int = MAX_WRITES,
        tool_classes: Mapping[str, ToolClassName] | None = None,
    ) -> None:
        self._connections = connections
        self._ledger = ledger
        self._max_calls = max_calls
        self._call_seconds = call_seconds
        self._faults = faults or FaultPlan()
        self._writes = Writes(confirm, limit=max_writes, classes=tool_classes, emit=ledger.emit)
        self._asked = 0
        self._over = False
        self._running: dict[int, tuple[ToolCall, asyncio.Task[Any] | None]] = {}
        self._records: dict[int, CallRecord] = {}
        self._sent: dict[str, list[int]] = {connection.name: [] for connection in connections}
        self._said: dict[int, tuple[StateName, str | None]] = {}
        self._asked_by_servers = 0
        for connection in connections:
            connection.on_asked = partial(self._note_asked, connection.name)
        self._routes = routes(connections)
        self._roster = {name: tool_info(name, *route) for name, route in self._routes.items()}
        self.problems: list[str] = []
        """Why the run cannot be judged: one sentence each."""

    @property
    def records(self) -> tuple[CallRecord, ...]:
        """Every call so far, in the order in which they were asked for."""
        return tuple(self._records[index] for index in sorted(self._records))

    def past_calls(self) -> list[PastCall]:
        """Return what a scripted model may refer to."""
        return [PastCall(clean(call.text), call.state, call.rule, clean(call.reason)) for call in self.records]

    async def list_tools(self) -> Sequence[ToolInfo]:
        """Return every tool of every server, as they were listed when the session began."""
        return tuple(self._roster.values())

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Observation:
        """Make a call, record it, and return what the agent may know of it.

        Raises:
            CallsWithoutEnd: The agent does not take no for an answer.
            RunIsOver: The agent has ended, and something that it left behind goes on.
        """
        if self._over:
            self.problems.append(f"the agent asked for {one_line(str(name), 60)} after it had ended")
            raise RunIsOver("the run is over; await every call before the agent returns")
        index, turn, started = self._asked, self._ledger.turn, time.perf_counter()
        self._asked += 1
        if index >= self._max_calls + MAX_REFUSED_CALLS:
            raise CallsWithoutEnd(f"the agent made {MAX_REFUSED_CALLS} calls after its {self._max_calls} were spent")
        name, args = str(name), _as_json(arguments)
        connection = self._connection_for(name)
        server = connection.name if connection else ""
        asked = ToolCall(call=index, turn=turn, tool=name, server=server, args=args or {})
        self._running[index] = asked, asyncio.current_task()
        self._ledger.emit(asked)
        answer = failed(TIME_LIMIT, _ENDED)
        try:
            answer = await self._answer(asked, args, connection)
        finally:
            if self._running.pop(index, None) is not None:
                took_ms = (time.perf_counter() - started) * 1000 - self._writes.waited_ms(index)
                self._record(asked, answer, took_ms)
        shown = cap(clean(answer.text), MAX_OBSERVATION_BYTES).text
        return Observation(index, name, answer.state, shown, clean(answer.hint))

    def end(self) -> None:
        """Take no more calls. One that still runs is stopped, recorded as failed and noted: nobody saw how it ended."""
        self._over = True
        while self._running:
            index, (asked, task) = self._running.popitem()
            self.problems.append(f"the agent ended while call {index + 1} ({one_line(asked.tool, 60)}) was running")
            self._record(asked, failed(TIME_LIMIT, _ENDED), 0.0)
            if task is not None:
                task.cancel()

    def compare_audits(self) -> None:
        """Note a problem for each of our servers whose own record of the calls differs from the ledger."""
        for connection in self._connections:
            if connection.audit is not None:
                sent = [self._records[index].as_said for index in self._sent[connection.name]]
                self.problems += _audit_problems(connection, sent)

    def _connection_for(self, name: str) -> Connection | None:
        if name in self._routes:
            return self._routes[name][0]
        # Our server's own word for an unknown tool is better evidence than ours.
        only = self._connections[0] if len(self._connections) == 1 else None
        return only if only is not None and only.own else None

    async def _answer(self, asked: ToolCall, args: dict[str, Any] | None, connection: Connection | None) -> Answer:
        index, name = asked.call, asked.tool
        if index >= self._max_calls:
            return refused(BUDGET_SPENT, f"the run's {self._max_calls} calls are used up")
        if connection is None:
            return refused(TOOL_UNKNOWN, unknown_tool(name, self._routes))
        if args is None or (connection.on_a_wire and not _is_text(name, args)):
            return refused(ARGS_INVALID, "the arguments are no JSON object that can be sent")
        if connection.died_in is not None:
            return failed(SERVER_DIED, f"server {connection.name!r} ended in an earlier call")
        if (refusal := await self._writes.refusal(asked, args, self._roster.get(name))) is not None:
            return refusal
        fault = self._faults.take(asked)
        if fault is not None and fault.instead_of_the_call:
            return fault.answer(connection.name)
        return await self._answer_of_server(asked, args, connection, fault)

    async def _answer_of_server(
        self, asked: ToolCall, args: dict[str, Any], connection: Connection, fault: Fault | None
    ) -> Answer:
        index, name = asked.call, asked.tool
        self._sent[connection.name].append(index)
        own_name = self._routes[name][1].name if name in self._routes else name
        try:
            async with asyncio.timeout(self._call_seconds):
                reply = await send_call(connection, own_name, args)
        except (Exception, SystemExit) as error:
            # A server in this process that calls sys.exit must not end the suite.
            answer = answer_of_error(error, connection.name)
        else:
            answer = self._read(connection, name, reply)
            if fault is not None:
                self._said[index] = answer.state, answer.rule
                answer = fault.answer(connection.name, answer, own=connection.own)
        if answer.rule == SERVER_DIED.name:
            connection.died_in = f"call {index + 1} ({one_line(name, 60)})"
        return answer

    def _read(self, connection: Connection, name: str, reply: CallToolResult) -> Answer:
        if not connection.own:
            wrong = untaken(connection.name, self._routes[name][1], reply)
            return wrong or answer_of_foreign(reply, connection.denied_pattern)
        answer = answer_of_ours(reply)
        if answer is None:
            self.problems.append(f"server {connection.name!r} sent a reply that is not in its own form")
            return answer_without_form(connection.name)
        return answer

    def _note_asked(self, server: str, asked: Asked) -> None:
        self._asked_by_servers += 1
        if self._asked_by_servers > MAX_ASKED:
            return
        running = [call.call for call, _ in self._running.values() if call.server == server]
        self._ledger.emit(
            ServerAsked(
                server=server,
                method=asked.method,
                granted=asked.granted,
                text=asked.text,
                call=max(running, default=None),
            )
        )

    def _record(self, asked: ToolCall, answer: Answer, took_ms: float) -> None:
        self._records[asked.call] = CallRecord(
            index=asked.call,
            turn=asked.turn,
            tool=asked.tool,
            server=asked.server,
            args=asked.args,
            state=answer.state,
            rule=answer.rule,
            reason=answer.reason,
            hint=answer.hint,
            text=answer.text,
            structured=answer.structured,
            exit_code=answer.exit_code,
            claimed=answer.claimed,
            fault=answer.fault,
            said=self._said.get(asked.call),
        )
        self._ledger.emit(
            ToolResult(
                call=asked.call,
                tool=asked.tool,
                server=asked.server,
                state=answer.state,
                rule=answer.rule,
                text=answer.text,
                structured=answer.structured,
                exit_code=answer.exit_code,
                claimed=answer.claimed,
                fault=answer.fault,
                truncated=answer.truncated,
                full_length=answer.full_length,
                duration_ms=took_ms,
            )
        )
        if answer.state == "denied" and answer.rule is not None:
            self._ledger.emit(
                GuardDenied(
                    call=asked.call,
                    tool=asked.tool,
                    server=asked.server,
                    rule=answer.rule,
                    reason=answer.reason,
                    hint=answer.hint,
                    claimed=answer.claimed,
                )
            )


def _as_json(arguments: object) -> dict[str, Any] | None:
    """Return a copy that nobody else can change, or None when it is no JSON object."""
    try:
        plain = dict(arguments) if isinstance(arguments, Mapping) else arguments
        copied = json.loads(json.dumps(plain, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return None
    return copied if isinstance(copied, dict) else None


def _is_text(name: str, args: dict[str, Any]) -> bool:
    """Return whether every string can be written as UTF-8."""
    try:
        (name + json.dumps(args, ensure_ascii=False)).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


_UNSURE = frozenset(rule.name for rule in (TIME_LIMIT, SERVER_DIED, SERVER_ERROR, SERVER_TOO_LARGE))


def _audit_problems(connection: Connection, sent: Sequence[CallRecord]) -> list[str]:
    """Compare, whatever the order: calls of one turn may overlap. A call without an answer may have a record or not."""
    recorded_calls = connection.audit or ()
    if len(recorded_calls) == len(sent) and all(map(_agree, recorded_calls, sent)):
        return []
    unsure = [call for call in sent if call.rule in _UNSURE]
    recorded = Counter(
        _audit_key(record.tool, record.arguments, record.state.value, record.rule) for record in recorded_calls
    )
    ledger = Counter(_audit_key(call.tool, call.args, call.state, call.rule) for call in sent if call not in unsure)
    only_ledger, only_audit = list((ledger - recorded).elements()), list((recorded - ledger).elements())
    if not only_ledger and len(only_audit) <= len(unsure):
        return []
    ours = only_ledger[0] if only_ledger else "no such call"
    theirs = only_audit[0] if only_audit else "no such call"
    return [f"the audit disagrees: server {connection.name!r} recorded {theirs}, the ledger says {ours}"]


def _agree(record: AuditRecord, call: CallRecord) -> bool:
    """Return whether two records say the same, letter by letter: 1, 1.0 and true are equal only to Python."""
    said = (record.tool, record.state.value, record.rule) == (call.tool, call.state, call.rule)
    return said and repr(record.arguments) == repr(call.args)


def _audit_key(tool: str, arguments: Mapping[str, Any], state: str, rule: str | None) -> str:
    told = json.dumps(arguments, sort_keys=True)
    return one_line(f"{tool} {told} {state}" + (f" ({rule})" if rule else ""), 300)
