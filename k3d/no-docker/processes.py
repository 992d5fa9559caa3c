"""Processes that outlive the command that starts them, found again by number and start time."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from places import ClusterError, Places

START_SECONDS = 120.0
STOP_SECONDS = 10.0


def start(places: Places, name: str, command: Sequence[str | Path], environ: Mapping[str, str] | None = None) -> None:
    """Start a process that outlives this one, and write down which one it is."""
    with (places.run / "log" / name).open("ab") as log:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=environ,
        )
    places.pid_file(name).write_text(f"{process.pid} {_started(process.pid)}\n", encoding="utf-8")


def is_alive(places: Places, name: str) -> bool:
    """Return whether the process runs that was started under this name."""
    return _pid(places, name) is not None


def _pid(places: Places, name: str) -> int | None:
    try:
        pid, started = places.pid_file(name).read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        return None
    return int(pid) if _started(int(pid)) == started else None


def _started(pid: int) -> str:
    """Return when a process started: with it a pid is told from the same pid of a later process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return "gone"
    return "gone" if fields[0] in "ZX" else fields[19]


def wait_for(what: str, done: Callable[[], bool], places: Places, process: str) -> None:
    """Wait until something is done.

    Raises:
        ClusterError: The process that it depends on died, or it took too long; the end of its log is in the sentence.
    """
    deadline = time.monotonic() + START_SECONDS
    while True:
        with contextlib.suppress(OSError, ValueError, ClusterError):
            if done():
                return
        if not is_alive(places, process) or time.monotonic() > deadline:
            log = (places.run / "log" / process).read_text(encoding="utf-8", errors="replace").splitlines()[-15:]
            how = "died" if not is_alive(places, process) else f"did not help within {START_SECONDS:g} s"
            raise ClusterError(f"{what} did not come up: {process} {how}; its log ends with\n" + "\n".join(log))
        time.sleep(0.2)


def stop(places: Places, name: str, *, at_once: bool = False) -> None:
    """End a process and its group: by SIGTERM and, when that is not heard, by SIGKILL."""
    pid = _pid(places, name)
    if pid is None:
        return
    _signal(pid, signal.SIGKILL if at_once else signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while _pid(places, name) is not None and time.monotonic() < deadline:
        time.sleep(0.1)
    if _pid(places, name) is not None:
        _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)


def run(command: Sequence[str | Path]) -> str:
    """Run a command to its end and return what it says.

    Raises:
        ClusterError: It fails.
    """
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise ClusterError(f"{Path(words[0]).name} failed: {done.stderr.strip()}")
    return done.stdout
