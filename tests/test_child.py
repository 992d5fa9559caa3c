"""Children: what they get, what they may use, and that none of them stays."""

import asyncio
import ctypes
import os
import select
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from walls import FREE, NONE, use

from mcp_ops.ops.tools import gnu
from mcp_ops.ops.tools.child import (
    Command,
    Ended,
    Limits,
    bare_environment,
    run_child,
)
from mcp_ops.ops.trusted import trusted_program
from mcp_ops.ops.wall import children_network
from mcp_ops.ops.wall.network import drop_privileges

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="run_shell is honest on Linux only")

OUR_NETWORK = str(Path("/proc/self/ns/net").readlink()) if sys.platform == "linux" else ""


@pytest.fixture(autouse=True)
def no_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a second wall a shell could start nothing that shows what children get."""
    use(NONE, monkeypatch)


async def run(folder: Path, program: str, *arguments: str, limits: Limits = FREE, network: bool = False) -> Ended:
    path = trusted_program(program)
    assert path is not None
    return await run_child(Command(path, arguments, folder, bare_environment(folder), network, limits))


async def script(folder: Path, text: str, limits: Limits = FREE) -> Ended:
    return await run(folder, "sh", "-c", text, limits=limits)


def runs(pid: int) -> bool:
    """Whether a process still runs after a moment in which a killed one is gone."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        return select.select([handle], [], [], 5)[0] == []
    finally:
        os.close(handle)


@pytest.mark.covers("A4")
async def test_a_child_says_what_it_says_and_how_it_ended(tmp_path: Path) -> None:
    ended = await script(tmp_path, "echo out; echo err >&2; exit 3")
    assert ended == Ended(b"out\n", b"err\n", stdout_bytes=4, exit_code=3)


@pytest.mark.covers("A4")
async def test_a_child_gets_an_environment_built_from_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LD_PRELOAD", "TZ", "TMPDIR", "POSIXLY_CORRECT", "_POSIX2_VERSION", "GREP_COLORS", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, "/elsewhere")
    ended = await run(tmp_path, "env")
    assert dict(line.split("=", 1) for line in ended.stdout.decode().splitlines()) == {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "HOME": str(tmp_path),
    }


@pytest.mark.covers("A4")
async def test_a_child_reads_nothing_and_holds_none_of_our_files(tmp_path: Path) -> None:
    with (tmp_path / "held").open("w") as held:
        os.set_inheritable(held.fileno(), True)
        ended = await script(tmp_path, "cat; readlink /proc/$$/fd/0; ls /proc/$$/fd; pwd")
    assert ended.stdout.decode().split() == ["/dev/null", "0", "1", "2", str(tmp_path)]


@pytest.mark.covers("A4")
async def test_a_child_leads_its_own_session(tmp_path: Path) -> None:
    ended = await script(tmp_path, "cut -d' ' -f1,5,6 /proc/$$/stat")
    pid, group, session = map(int, ended.stdout.split())
    assert pid == group == session != os.getsid(0)


@pytest.mark.covers("A4")
async def test_a_child_has_limits(tmp_path: Path) -> None:
    ended = await script(tmp_path, "ulimit -c; ulimit -f; ulimit -t; ulimit -v", Limits(processes=None))
    assert ended.stdout.split() == [b"0", b"0", b"10", b"1048576"]


@pytest.mark.covers("A4")
async def test_a_child_writes_no_file(tmp_path: Path) -> None:
    ended = await script(tmp_path, "echo x > file", Limits(processes=None))
    assert ended.exit_code != 0
    assert (tmp_path / "file").stat().st_size == 0


@pytest.mark.covers("A4")
@pytest.mark.skipif(os.geteuid() == 0, reason="the kernel does not count the processes of root")
async def test_a_child_starts_no_process(tmp_path: Path) -> None:
    ended = await script(tmp_path, "/bin/echo started; echo none", Limits(memory_bytes=None))
    assert b"started" not in ended.stdout


@pytest.mark.covers("A4")
async def test_a_flood_is_cut_while_it_is_read(tmp_path: Path) -> None:
    ended = await run(tmp_path, "yes", limits=Limits(read_bytes=300_000, kept_bytes=1000))
    assert ended.flooded
    assert not ended.timed_out
    assert ended.exit_code is None
    assert len(ended.stdout) == 1000
    assert 300_000 < ended.stdout_bytes < 1_000_000


@pytest.mark.covers("A4")
async def test_a_flood_of_errors_is_cut_too(tmp_path: Path) -> None:
    ended = await script(tmp_path, "exec yes >&2", Limits(read_bytes=300_000, kept_bytes=1000))
    assert (ended.flooded, len(ended.stderr), ended.stdout_bytes) == (True, 1000, 0)


@pytest.mark.covers("A4")
async def test_what_is_read_to_its_end_is_counted_though_not_kept(tmp_path: Path) -> None:
    ended = await run(tmp_path, "seq", "1", "20000", limits=Limits(kept_bytes=100))
    assert (len(ended.stdout), ended.stdout_bytes, ended.exit_code) == (100, 108894, 0)


@pytest.mark.covers("A4")
async def test_a_deadline_ends_the_child_and_all_that_it_started(tmp_path: Path) -> None:
    ended = await script(
        tmp_path, "tail -f /dev/null & echo $!; tail -f /dev/null", Limits(seconds=0.5, processes=None)
    )
    assert ended.timed_out
    assert ended.signal == signal.SIGKILL
    assert not runs(int(ended.stdout))


@pytest.mark.covers("A4")
async def test_the_limit_of_processor_time_counts_as_a_deadline(tmp_path: Path) -> None:
    ended = await script(tmp_path, "while :; do :; done", Limits(cpu_seconds=1, processes=None))
    assert ended.timed_out


@pytest.mark.covers("A4")
async def test_who_left_the_group_and_holds_the_pipe_is_not_waited_for(tmp_path: Path) -> None:
    ended = await script(tmp_path, "setsid tail -f /dev/null & echo $!", Limits(seconds=0.5, processes=None))
    escaped = int(ended.stdout)
    assert ended.timed_out
    os.kill(escaped, signal.SIGKILL)


@pytest.mark.covers("A4")
@pytest.mark.skipif(os.geteuid() != 0, reason="only a child of root could have a capability")
async def test_a_child_of_root_has_no_capability_and_can_get_none(tmp_path: Path) -> None:
    ended = await run(tmp_path, "grep", "-E", "^(Cap(Prm|Eff|Bnd)|NoNewPrivs):", "/proc/self/status")
    values = [line.split()[1] for line in ended.stdout.decode().splitlines()]
    assert values == ["0" * 16] * 3 + ["1"]


def capabilities() -> int:
    """Return those of this process as a set of bits."""
    if sys.platform != "linux":
        return 0
    return int(Path("/proc/self/status").read_text().partition("CapPrm:")[2].split()[0], 16)


def pass_everything_on() -> None:
    """Make every capability of this process inheritable and one ambient, as container engines and systemd can."""
    held = capabilities()
    low, high = held & 0xFFFFFFFF, held >> 32
    libc = ctypes.CDLL(None)
    assert libc.capset(struct.pack("=Ii", 0x20080522, 0), struct.pack("=6I", *(low,) * 3, *(high,) * 3)) == 0
    assert libc.prctl(47, 2, (held & -held).bit_length() - 1, 0, 0) == 0


def drop_what_was_passed_on() -> None:
    pass_everything_on()
    drop_privileges()


@pytest.mark.covers("A4")
@pytest.mark.skipif(os.geteuid() != 0 or not capabilities(), reason="no capability that a child could inherit")
def test_a_capability_that_is_inheritable_or_ambient_is_gone_too() -> None:
    def of_a_child(before: Callable[[], None]) -> set[str]:
        shown = subprocess.run(["/usr/bin/cat", "/proc/self/status"], preexec_fn=before, capture_output=True, text=True)
        return {line.split()[1] for line in shown.stdout.splitlines() if line.startswith("Cap")}

    assert of_a_child(pass_everything_on) != {"0" * 16}
    assert of_a_child(drop_what_was_passed_on) == {"0" * 16}


@pytest.mark.covers("A4")
async def test_what_a_child_left_running_is_killed_when_it_ends(tmp_path: Path) -> None:
    ended = await script(tmp_path, "tail -f /dev/null >/dev/null 2>&1 & echo $!")
    assert ended.exit_code == 0
    assert not runs(int(ended.stdout))


@pytest.mark.covers("A4", "H44")
async def test_a_cancelled_call_leaves_no_process(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "started")
    text = "tail -f /dev/null & echo $$ $! > started; tail -f /dev/null"
    task = asyncio.create_task(script(tmp_path, text))
    pids = (await asyncio.to_thread((tmp_path / "started").read_text)).split()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [pid for pid in pids if runs(int(pid))] == []


@pytest.mark.covers("H2")
@pytest.mark.skipif(children_network() == "unchecked", reason="this machine lets nobody make a network namespace")
async def test_a_child_without_leave_has_no_network_and_keeps_its_user(tmp_path: Path) -> None:
    interfaces = await script(tmp_path, "cut -sd: -f1 /proc/self/net/dev | grep -v '|'")
    assert interfaces.stdout.split() == [b"lo"]
    ours = await run(tmp_path, "readlink", "/proc/self/ns/net", network=True)
    theirs = await run(tmp_path, "readlink", "/proc/self/ns/net")
    assert ours.stdout.decode().strip() == OUR_NETWORK != theirs.stdout.decode().strip()
    user = await run(tmp_path, "id", "-u")
    assert int(user.stdout) == os.geteuid()


@pytest.mark.covers("H2")
def test_the_network_of_children_is_told_as_it_is() -> None:
    assert children_network() in ("isolated", "unchecked")


async def test_a_program_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    assert trusted_program("nosuchprogram") is None
    with pytest.raises(FileNotFoundError):
        await run_child(Command(Path("/usr/bin/nosuchprogram"), (), tmp_path, {}))


@pytest.mark.covers("A4")
async def test_a_program_is_used_if_its_version_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gnu, "_asked", {})
    path = await gnu.gnu_program("ls", "GNU coreutils")
    assert isinstance(path, Path)
    assert path.is_absolute()


@pytest.mark.covers("A4")
@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("echo 'ls (uutils coreutils) 0.2.2'", "not from GNU coreutils"),
        ("echo 'BusyBox v1.36 multi-call binary'; exit 1", "not from GNU coreutils"),
        ("echo 'ls (GNU coreutils) 9.1'; exit 1", "not from GNU coreutils"),
        ("echo x; echo 'GNU coreutils'", "not from GNU coreutils"),
    ],
)
async def test_a_program_of_another_make_is_not_used(
    version: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ls").write_text(f"#!/bin/sh\n{version}\n")
    (tmp_path / "ls").chmod(0o755)
    monkeypatch.setattr(gnu, "trusted_program", lambda name: tmp_path / name)
    monkeypatch.setattr(gnu, "_asked", {})
    answer = await gnu.gnu_program("ls", "GNU coreutils")
    assert why in str(answer)


@pytest.mark.covers("A4")
async def test_a_program_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def nowhere(name: str) -> None:
        asked.append(name)

    monkeypatch.setattr(gnu, "trusted_program", nowhere)
    monkeypatch.setattr(gnu, "_asked", {})
    assert await gnu.gnu_program("ls", "GNU coreutils") == "ls is not installed"
    assert await gnu.gnu_program("ls", "GNU coreutils") == "ls is not installed"
    assert asked == ["ls"]
