"""Calls as providers write them."""

from collections.abc import Sequence
from dataclasses import replace

from mcp_ops.llm.base import NativeCall


def with_ids(calls: Sequence[NativeCall]) -> tuple[NativeCall, ...]:
    """Return the calls of one reply, each with an id of its own: some endpoints give none, or one to several."""
    known: set[str] = set()
    named: list[NativeCall] = []
    for number, call in enumerate(calls):
        identity = call.id or f"call_{number}"
        while identity in known:
            identity += "_"
        known.add(identity)
        named.append(replace(call, id=identity))
    return tuple(named)
