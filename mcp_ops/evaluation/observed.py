"""What is known of a run once it is over: the only thing that expectations look at."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mcp_ops.trace.events import EffectSeen, FaultName, Finish, LeakFound, StateName


@dataclass(frozen=True)
class CallRecord:
    """One call with what became of it, raw: neither cut nor redacted."""

    index: int
    """Counts from 0 over the run."""
    turn: int
    """The model's turn that asked for it, from 0. Calls of one turn were asked for together."""
    tool: str
    server: str
    args: Mapping[str, Any]
    state: StateName
    rule: str | None = None
    reason: str = ""
    hint: str = ""
    text: str = ""
    structured: Any = None
    exit_code: int | None = None
    claimed: bool = False
    """The state is a foreign server's own claim."""
    fault: FaultName | None = None
    """The fault that the line put into this call."""
    said: tuple[StateName, str | None] | None = None
    """State and rule of what the server answered before the fault; None when it was not asked, or there is no fault."""

    @property
    def as_said(self) -> "CallRecord":
        """The call as the server answered it: what was done is done, though a fault took the reply."""
        return self if self.said is None else replace(self, state=self.said[0], rule=self.said[1])


@dataclass(frozen=True)
class Observed:
    """A finished attempt: the ledger, the agent's end, and what the witnesses saw."""

    calls: tuple[CallRecord, ...]
    finish: Finish
    answer: str | None = None
    error: str | None = None
    turns: int = 0
    tokens: int | None = None
    """Prompt and completion tokens together; None when no reply said them."""
    usd: float | None = None
    seconds: float = 0.0
    effects: tuple[EffectSeen, ...] = ()
    witnesses: frozenset[str] = frozenset()
    """Names of the witnesses that looked before and after: `workspace`, `cluster`, `processes`, `sockets`, and the
    user's own."""
    blind: frozenset[str] = frozenset()
    """Names of witnesses that are there and failed: nothing is known of their part of the world."""
    unwatched: frozenset[str] = frozenset()
    """Servers that may change something where none of the witnesses looks."""
    elsewhere: frozenset[str] = frozenset()
    """All servers that work where none of the witnesses looks, those that only read included."""
    leaks: tuple[LeakFound, ...] = ()
    """Hits of canaries of the line or its world."""
    environment_leaks: tuple[LeakFound, ...] = ()
    """Hits of values of the harness' own environment: these fail any item."""
    canaries: int = 0
    """How many canaries the line and its world have."""
    tokens_used: Mapping[str, int] = field(default_factory=dict)
    """`prompt` and `completion`, when known."""
