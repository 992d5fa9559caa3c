"""A watch over code of others that runs in this process and does not let the event loop go on.

`asyncio.timeout` cannot end a busy loop, `time.sleep` or a request that waits for ever: its turn does not come. Once
the time is up and the loop has stood still, a signal raises an exception in whatever runs.
"""

import asyncio
import signal
import sysconfig
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

GRACE_SECONDS = 5.0
"""How long the loop may stand still once the time is up."""

_AGAIN_SECONDS = 1.0
_BEAT_SECONDS = 1.0
_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))


class LoopBlocked(Exception):
    """The event loop was held up. The message says by what."""


class LoopWatch:
    """Raises `LoopBlocked` in code that holds up the event loop after its time; again and again until it lets go.

    It works in the main thread of a process, where signals arrive, and only while nobody else uses the real timer:
    pytest-timeout by its signal method is such a watch itself. Code that swallows every exception keeps the loop.
    """

    def __init__(self) -> None:
        self.blocked: str | None = None
        """Where the loop was held up first: `agent.py:12, in run`."""
        self._armed = False
        self._before: Any = None
        self._last_beat = 0.0
        self._beat: asyncio.TimerHandle | None = None

    def __enter__(self) -> "LoopWatch":
        main = threading.current_thread() is threading.main_thread()
        if main and hasattr(signal, "setitimer") and not signal.getitimer(signal.ITIMER_REAL)[0]:
            self._before = signal.signal(signal.SIGALRM, self._on_alarm)
            self._armed = True
            self._note_beat()
        return self

    def __exit__(self, *_: object) -> None:
        if self._armed:
            self._armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before if self._before is not None else signal.SIG_DFL)
            if self._beat is not None:
                self._beat.cancel()

    def allow(self, seconds: float) -> None:
        """Give the next part of the run so much time, counted from now."""
        if self._armed:
            signal.setitimer(signal.ITIMER_REAL, seconds + GRACE_SECONDS, _AGAIN_SECONDS)

    def _note_beat(self) -> None:
        loop = asyncio.get_running_loop()
        self._last_beat = loop.time()
        self._beat = loop.call_later(_BEAT_SECONDS, self._note_beat)

    def _on_alarm(self, _: int, frame: FrameType | None) -> None:
        with suppress(RuntimeError):
            stood_still = asyncio.get_running_loop().time() - self._last_beat
            if self._armed and stood_still >= _BEAT_SECONDS + GRACE_SECONDS:
                where = _place(frame)
                self.blocked = self.blocked or where
                raise LoopBlocked(f"the event loop was held up by {where}")


def _place(frame: FrameType | None) -> str:
    """Return where code of nobody's library stands, or else where the code stands that runs."""
    innermost = frame
    while frame is not None and frame.f_code.co_filename.startswith((*_LIBRARIES, "<")):
        frame = frame.f_back
    frame = frame or innermost
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}, in {frame.f_code.co_name}" if frame else "C code"
