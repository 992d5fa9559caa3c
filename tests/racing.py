"""A process that lets two names change places without end, and one exchange at a chosen moment."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_WITHOUT_END = f"""
import ctypes, random, sys
one, two = map(bytes, map(str.encode, sys.argv[1:]))
rename = ctypes.CDLL(None).renameat2
print("ready", flush=True)
# In step with its victim it would only ever show one of the two: each stays for a while, and never as long. The second
# one stays for less, because what it makes fail fails at once.
while True:
    for most in (400, 4000):
        rename({_AT_FDCWD}, one, {_AT_FDCWD}, two, {_RENAME_EXCHANGE})
        for _ in range(random.randrange(most)):
            pass
"""


def exchange(one: Path, two: Path) -> None:
    """Let two names change places in one step, as an attacker in the workspace would."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        pytest.skip("this C library has no renameat2")
    done = libc.renameat2(_AT_FDCWD, bytes(one), _AT_FDCWD, bytes(two), _RENAME_EXCHANGE)
    if done != 0:
        pytest.skip(f"this file system cannot exchange two names: {os.strerror(ctypes.get_errno())}")


@contextmanager
def exchanged_without_end(one: Path, two: Path) -> Iterator[None]:
    """Let two names change places over and over in another process, until the block is left.

    What stands under the first name at the beginning stands there most of the time.
    """
    for _ in range(2):
        exchange(one, two)
    command = [sys.executable, "-c", _WITHOUT_END, str(one), str(two)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as racing:
        assert racing.stdout is not None
        racing.stdout.readline()
        try:
            yield
        finally:
            racing.kill()
