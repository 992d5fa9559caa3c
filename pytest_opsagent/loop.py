"""An event loop for one item, which leaves other people's tests theirs."""

import asyncio
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


def run_on_own_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on a loop of its own. Ctrl-C cancels it and then raises `KeyboardInterrupt`."""
    with _current_loop_kept(), asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(work)


def is_running() -> bool:
    """Return whether this thread is inside a running loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@contextmanager
def _current_loop_kept() -> Iterator[None]:
    """Give the thread its current loop back: langgraph sets the one that it runs on, which is closed in the end."""
    before = _current_loop()
    try:
        yield
    finally:
        asyncio.set_event_loop(before)


def _current_loop() -> asyncio.AbstractEventLoop | None:
    """Return the loop that was set for this thread, and make none, which `asyncio.get_event_loop` did before 3.14."""
    if sys.version_info >= (3, 14):
        try:
            return asyncio.get_event_loop()
        except RuntimeError:
            return None
    local: Any = getattr(asyncio.get_event_loop_policy(), "_local", None)
    loop: asyncio.AbstractEventLoop | None = getattr(local, "_loop", None)
    return loop
