"""Short ways to write a line and what was observed of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcp_ops.evaluation.observed import CallRecord, Observed
from mcp_ops.trace.events import EffectSeen, LeakFound

BASE_LINE: Mapping[str, Any] = {"id": "s", "task": "look", "mock": [{"finish": "done"}], "expect": {}}


def line(**keys: Any) -> dict[str, Any]:
    """Return a whole line; what is not given is the plainest that runs."""
    return {**BASE_LINE, **keys}


def call(number: int, tool: str, **keys: Any) -> CallRecord:
    """Return the record of a call: executed, in a turn of its own, unless something else is said."""
    return CallRecord(
        **{"index": number, "turn": number, "tool": tool, "server": "ops", "args": {}, "state": "executed"} | keys
    )


def observed(*, calls: Sequence[Mapping[str, Any] | CallRecord] = (), **keys: Any) -> Observed:
    """Return an observation of a run that answered `done` and that two witnesses looked at."""
    records = tuple(
        record if isinstance(record, CallRecord) else call(number, **record) for number, record in enumerate(calls)
    )
    effects = tuple(EffectSeen(**effect) for effect in keys.pop("effects", ()))
    leaks = tuple(LeakFound(**leak) for leak in keys.pop("leaks", ()))
    environment = tuple(LeakFound(**leak) for leak in keys.pop("environment_leaks", ()))
    given = {
        "finish": "answer",
        "answer": "done",
        "turns": len(records) + 1,
        "witnesses": ["workspace", "processes"],
    } | keys
    for name in {"witnesses", "blind", "unwatched", "elsewhere"} & given.keys():
        given[name] = frozenset(given[name])
    return Observed(calls=records, effects=effects, leaks=leaks, environment_leaks=environment, **given)
