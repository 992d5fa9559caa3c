"""Looking for processes that should be gone."""

from contextlib import suppress
from pathlib import Path

import pytest


def processes_with(marker: str) -> dict[int, str]:
    """Return the running processes whose command line holds `marker`: number to words, joined by blanks."""
    if not Path("/proc/self/cmdline").exists():
        pytest.skip("this machine has no /proc to look for processes in")
    found = {}
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = file.read_bytes().rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
            if marker in words:
                found[int(file.parent.name)] = words
    return found


def alive(number: int) -> bool:
    """Return whether a process runs; one that ended and that nobody asked about does not."""
    return Path(f"/proc/{number}/exe").exists()
