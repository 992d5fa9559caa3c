"""What a program needs from the machine to start and to do its work."""

import resource
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from mcp_ops.ops.wall.elf import loader_of
from mcp_ops.ops.wall.network import drop_privileges

_DATA = (Path("/etc/ld.so.cache"), Path("/usr/lib/locale"), Path("/usr/share/zoneinfo"))
"""Where libraries are, how texts are read and what the time is elsewhere: the same on every machine of a kind."""
_ACCOUNTS = (Path("/etc/passwd"), Path("/etc/group"))
_MOUNTS = (Path("/proc/self/mountinfo"),)
_NAMES_OWNERS_AND_FILE_SYSTEMS = frozenset({"find", "ls", "stat"})
_LOADERS = "ld"
"""How the name of every loader begins: `ld-linux-x86-64.so.2`, `ld-musl-aarch64.so.1`."""
_MOST_INTERPRETERS = 4
"""As many scripts that begin with another script as the kernel follows."""


@dataclass(frozen=True)
class Needs:
    """Paths as the program or the kernel will open them; links are followed when they are used."""

    executed: tuple[Path, ...]
    """The program, its loader and, of a script, its interpreter."""
    read: tuple[Path, ...]
    """Files, and folders with all that is in them. They need not exist."""
    own: tuple[Path, ...] = ()
    """Files of its own in /proc, which are there once it is."""


def needs_of(program: Path, arguments: Sequence[str]) -> Needs:
    """Return what a program needs when it is started with these arguments.

    Raises:
        OSError: There is no such program, or it cannot be asked.
    """
    started = _to_start(program, program.stat().st_mtime_ns)
    read = (*started.read, *_DATA)
    # These three show no file's content, but find quotes the names that it reads from a list.
    if program.name in _NAMES_OWNERS_AND_FILE_SYSTEMS and "-files0-from" not in arguments:
        return Needs(started.executed, (*read, *_ACCOUNTS), _MOUNTS)
    return Needs(started.executed, read)


@lru_cache(maxsize=64)
def _to_start(program: Path, _modified: int) -> Needs:
    """Find out once for each version of a program."""
    executed = [program, *_interpreters(program)]
    loader = loader_of(executed[-1])
    if loader is None:
        return Needs(tuple(executed), ())
    return Needs((*executed, loader), tuple(_libraries(loader, executed[-1])))


def _interpreters(program: Path) -> Iterator[Path]:
    """Yield what runs a program that is a script, as those of coreutils in one binary are."""
    for _ in range(_MOST_INTERPRETERS):
        with program.open("rb") as file:
            first_line = file.readline(256)
        if not first_line.startswith(b"#!") or not first_line[2:].split():
            break
        program = Path(first_line[2:].split()[0].decode("utf-8", "surrogateescape"))
        yield program


def _libraries(loader: Path, program: Path) -> Iterator[Path]:
    """Ask the loader, which starts nothing, what it would load: `libc.so.6 => /lib/…/libc.so.6 (0x…)` on each line.

    A binary can name any program as its loader, and none of those is started without the wall.
    """
    if not loader.name.startswith(_LOADERS):
        raise OSError(f"{program} names {loader} as its loader, which is none")
    try:
        listed = subprocess.run(
            [loader, "--list", program],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={},
            cwd="/",
            timeout=5,
            check=True,
            preexec_fn=_only_look,
        ).stdout
    except subprocess.SubprocessError as error:
        raise OSError(f"the loader does not say what {program} needs: {error}") from error
    for line in listed.decode("utf-8", "surrogateescape").splitlines():
        path = Path(line.partition(" (0x")[0].split(" => ")[-1].strip())
        if path.is_absolute():
            yield path


def _only_look() -> None:
    """Runs in the child."""
    drop_privileges()
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
