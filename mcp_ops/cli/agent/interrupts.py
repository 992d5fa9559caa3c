"""What Ctrl-C and the other ways to be told to end do to a run."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from mcp_ops.cli.agent.terminal import Terminal

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Ends the run at a signal; but the first Ctrl-C while somebody is asked is the answer no.

    Args:
        terminal: Where somebody may be asked.
    """

    def __init__(self, terminal: Terminal | None) -> None:
        self._terminal = terminal
        self._said_no = False
        self.number: int | None = None
        """The signal that ended the run."""

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Heed signals while the current task runs the block."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in a task
        # What is ignored stays so: that is what `nohup` is for.
        heeded = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
        for number in heeded:
            loop.add_signal_handler(number, self._heed, number, task)
        try:
            yield
        finally:
            for number in heeded:
                loop.remove_signal_handler(number)

    def _heed(self, number: int, task: "asyncio.Task[object]") -> None:
        waiting = self._terminal is not None and self._terminal.interrupt()
        if number == signal.SIGINT and waiting and not self._said_no:
            self._said_no = True
            return
        self.number = number
        task.cancel()
