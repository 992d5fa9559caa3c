"""Calls that change something: each waits for a yes, and a run may make so many."""

import asyncio
import copy
import time
from collections.abc import Callable, Mapping
from typing import Any

from mcp_ops.agent.policies.classes import class_of
from mcp_ops.agent.policies.confirmation import Ask, Confirmation, Decision
from mcp_ops.agent.session import ToolInfo
from mcp_ops.evaluation.session.replies import Answer, refused
from mcp_ops.evaluation.session.rules import CONFIRM_DECLINED, WRITES_SPENT
from mcp_ops.text import one_line
from mcp_ops.trace.events import ConfirmationGiven, ToolCall, ToolClassName


class Writes:
    """Has the writes of one run confirmed.

    Args:
        confirm: Who is asked; None asks nobody, and everything is sent.
        limit: How many writes may be confirmed.
        classes: What is known of tools beside what they say of themselves, see `class_of`.
        emit: Takes the event of each answer.
    """

    def __init__(
        self,
        confirm: Confirmation | None,
        *,
        limit: int,
        classes: Mapping[str, ToolClassName] | None,
        emit: Callable[[ConfirmationGiven], None],
    ) -> None:
        self._confirm = confirm
        self._limit = limit
        self._classes = classes
        self._emit = emit
        self._confirmed = 0
        self._one_question = asyncio.Lock()
        self._waited_ms: dict[int, float] = {}

    async def refusal(self, asked: ToolCall, args: Mapping[str, Any], tool: ToolInfo | None) -> Answer | None:
        """Return why a call may not be sent, or None. One question is asked at a time, without a limit of time.

        Args:
            asked: The call.
            args: Its arguments, as they will be sent.
            tool: What is called; None when no server lists it, which its server is left to say.
        """
        if self._confirm is None or tool is None:
            return None
        tool_class = class_of(tool, self._classes)
        if tool_class == "read_only":
            return None
        async with self._one_question:
            return await self._asked(self._confirm, asked, args, tool_class, own=tool.own)

    def waited_ms(self, call: int) -> float:
        """Return how long a call waited for its answer."""
        return self._waited_ms.get(call, 0.0)

    async def _asked(
        self,
        confirm: Confirmation,
        asked: ToolCall,
        args: Mapping[str, Any],
        tool_class: ToolClassName,
        *,
        own: bool,
    ) -> Answer | None:
        if self._confirmed >= self._limit:
            return refused(WRITES_SPENT, f"the run's {self._limit} confirmed writes are used up")
        started = time.perf_counter()
        # Nobody who is asked can change what will be sent.
        shown = copy.deepcopy(dict(args))
        decision = await confirm(Ask(asked.call, asked.tool, asked.server, shown, tool_class, own))
        if decision is None:
            return None
        waited_ms = self._waited_ms[asked.call] = (time.perf_counter() - started) * 1000
        self._confirmed += decision.yes
        self._emit(_event(asked, tool_class, decision, waited_ms))
        if decision.yes:
            return None
        why = f": {decision.why}" if decision.why else ""
        return refused(CONFIRM_DECLINED, f"{one_line(asked.tool, 60)} was not confirmed{why}")


def _event(asked: ToolCall, tool_class: ToolClassName, decision: Decision, waited_ms: float) -> ConfirmationGiven:
    return ConfirmationGiven(
        call=asked.call,
        tool=asked.tool,
        server=asked.server,
        tool_class=tool_class,
        answer="yes" if decision.yes else "no",
        by=decision.by,
        why=decision.why,
        waited_ms=waited_ms,
    )
