"""Whether a call that changes something may be sent: what is asked, and what was answered."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mcp_ops.trace.events import ConfirmedBy, ToolClassName

MAX_WRITES = 3
"""How many calls that change something a run may make, unless it says otherwise, however they were confirmed."""


@dataclass(frozen=True)
class Ask:
    """A call of class mutating or destructive that was asked for and not sent yet."""

    call: int
    """Counts from 0 over the run."""
    tool: str
    """Its name as the agent knows it."""
    server: str
    arguments: Mapping[str, Any]
    """All of them, raw: exactly what would be sent."""
    tool_class: ToolClassName
    own: bool = False
    """The server ships here."""


@dataclass(frozen=True)
class Decision:
    """What somebody said to it."""

    yes: bool
    by: ConfirmedBy
    """Who said so: a person, the script of a line, an option of the command line, or nobody, which is a no."""
    why: str = ""
    """Half a sentence, such as `the input ended`; empty where the answer says it all."""


class Confirmation(Protocol):
    """Somebody who is asked before a call that changes something is sent."""

    async def __call__(self, asked: Ask) -> Decision | None:
        """Return the answer; None when this call needs none, and is sent."""
        ...


async def own_writes_declined(asked: Ask) -> Decision | None:
    """Say no to the writes of servers that ship here, as nobody is there, and leave those of others alone."""
    return Decision(yes=False, by="nobody", why="nobody is there to be asked") if asked.own else None
