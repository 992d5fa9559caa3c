"""Which wall a machine has, how that is said, and what a program needs behind it."""

import ctypes
import errno
import os
import struct
import subprocess
import sys
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from walls import NONE, needs_wall, use

from mcp_ops import cli
from mcp_ops.evaluation.config import RunConfig
from mcp_ops.evaluation.line.parse import from_dict
from mcp_ops.evaluation.run import run_scenario, unmet_needs
from mcp_ops.ops import wall as room
from mcp_ops.ops.wall import NoWall, Start, Wall, Walled, describe_second_wall, landlock
from mcp_ops.ops.wall.elf import loader_of
from mcp_ops.ops.wall.needs import needs_of
from mcp_ops.ops.wall.trial import holds
from mcp_ops.servers import ops
from mcp_ops.trace.reader import read_trace

linux = pytest.mark.skipif(sys.platform != "linux", reason="the walls are Linux's")

ABSENT = NoWall("this kernel has no Landlock, or a seccomp filter hides it; bubblewrap is not installed")
LINE = {
    "id": "lists",
    "task": "t",
    "mock": [{"action": {"tool": "run_shell", "args": {"command": "ls"}}}, {"finish": "done"}],
    "expect": {"calls": [{"tool": "run_shell"}]},
}


@dataclass(frozen=True)
class Paper:
    """A wall that is only said to be there."""

    name: str = "paper"
    stands: bool = True

    def around(self, start: Start) -> AbstractContextManager[Walled]:
        return NONE.around(start)


def chosen(monkeypatch: pytest.MonkeyPatch, first: Wall | str, second: Wall | str) -> Wall:
    """Return the choice of a machine whose Landlock and bubblewrap are these."""
    monkeypatch.setattr(room, "find_landlock", lambda: first)
    monkeypatch.setattr(room, "find_bubblewrap", lambda: second)
    return room.second_wall.__wrapped__()


class TestChoice:
    def test_a_wall_that_stops_nothing_when_it_is_tried_is_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert not holds(Paper())
        assert not holds(NONE)
        wall = chosen(monkeypatch, Paper("landlock (ABI 7)"), "bubblewrap is not installed")
        assert not wall.stands
        assert wall.name == (
            "absent: landlock (ABI 7) does not hold when it is tried; bubblewrap is not installed; "
            "the option tables and path checks are the only wall"
        )

    def test_bubblewrap_stands_in_where_landlock_is_absent(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(room, "holds", lambda wall: True)
        assert chosen(monkeypatch, "no Landlock", Paper("bubblewrap")).name == "bubblewrap"
        assert chosen(monkeypatch, Paper("landlock (ABI 1)"), Paper("bubblewrap")).name == "landlock (ABI 1)"

    @linux
    @pytest.mark.parametrize(
        ("number", "said"),
        [
            (errno.ENOSYS, "this kernel has no Landlock, or a seccomp filter hides it"),
            (errno.EOPNOTSUPP, "Landlock is switched off in this kernel"),
            (errno.EPERM, "Landlock cannot be used: operation not permitted"),
        ],
    )
    def test_why_there_is_no_landlock_is_said(self, number: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuses(*arguments: object) -> int:
            ctypes.set_errno(number)
            return -1

        monkeypatch.setattr(landlock, "_syscall", refuses)
        assert landlock.find_landlock() == said

    @linux
    def test_rights_of_a_newer_landlock_than_is_known_are_not_claimed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(landlock, "_syscall", lambda *arguments: 12)
        found = landlock.find_landlock()
        assert not isinstance(found, str)
        assert found.name == "landlock (ABI 7)"

    def test_another_system_has_neither(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "platform", "darwin")
        assert landlock.find_landlock() == "Landlock exists on Linux only"

    @linux
    @pytest.mark.parametrize(
        ("abi", "words"),
        [
            (1, [(1 << 13) - 1]),
            (2, [(1 << 14) - 1]),
            (3, [(1 << 15) - 1]),
            (4, [(1 << 15) - 1, 3]),
            (5, [(1 << 16) - 1, 3]),
            (6, [(1 << 16) - 1, 3, 3]),
            (7, [(1 << 16) - 1, 3, 3]),
        ],
    )
    def test_every_right_that_a_version_knows_is_handled(
        self, abi: int, words: list[int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sent: list[bytes] = []

        def create(number: int, attributes: bytes, size: ctypes.c_size_t, flags: int) -> int:
            assert (size.value, flags) == (len(attributes), 0)
            sent.append(attributes)
            return 5

        monkeypatch.setattr(landlock, "_syscall", create)
        assert landlock._create_ruleset(abi) == 5
        assert list(struct.unpack(f"{len(words)}Q", *sent)) == words


class TestSaying:
    @pytest.mark.covers("H34")
    def test_a_server_that_requires_a_wall_does_not_start_without_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ops, "second_wall", lambda: ABSENT)
        ops.create_server(tmp_path)
        sentence = "a second wall is required, and on this machine it is absent: this kernel has no Landlock"
        with pytest.raises(ValueError, match=sentence):
            ops.create_server(tmp_path, require_second_wall=True)

    @needs_wall
    def test_a_server_that_requires_a_wall_starts_where_there_is_one(self, tmp_path: Path) -> None:
        ops.create_server(tmp_path, require_second_wall=True)
        command = [sys.executable, "-m", "mcp_ops.cli", "serve", "ops", "--workspace", tmp_path]
        done = subprocess.run([*command, "--require-second-wall"], input=b"", capture_output=True)
        assert (done.returncode, done.stdout) == (0, b""), done.stderr

    def test_serve_says_in_one_sentence_that_the_wall_is_absent(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(ops, "second_wall", lambda: ABSENT)
        assert cli.main(["serve", "ops", "--workspace", str(tmp_path), "--require-second-wall"]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err == f"mcp-ops: a second wall is required, and on this machine it is {ABSENT.name}\n"

    @pytest.mark.parametrize("wall", [ABSENT, Paper("landlock (ABI 3)")])
    def test_guards_says_which_wall_there_is(
        self, wall: Wall, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(room, "second_wall", lambda: wall)
        assert cli.main(["guards"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= 120
        said = " ".join(lines[next(n for n, line in enumerate(lines) if line.startswith("Second wall: ")) : -1])
        assert said == f"Second wall: {wall.name}"

    @pytest.mark.covers("H34")
    def test_a_need_for_a_wall_is_unmet_only_where_there_is_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        scenario = from_dict({**LINE, "needs": ["second_wall"]})
        monkeypatch.setattr(room, "second_wall", lambda: ABSENT)
        assert unmet_needs(scenario, RunConfig()) == ("second_wall",)
        monkeypatch.setattr(room, "second_wall", Paper)
        assert unmet_needs(scenario, RunConfig()) == ()

    @pytest.mark.covers("A20")
    @pytest.mark.parametrize("wall", [ABSENT, Paper("landlock (ABI 3)")])
    async def test_a_trace_says_which_wall_there_was(
        self, wall: Wall, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(room, "second_wall", lambda: wall)
        use(NONE, monkeypatch)
        outcome = await run_scenario(LINE, config=RunConfig(rootdir=tmp_path, trace_dir=tmp_path / "traces"))
        assert outcome.trace is not None
        start = read_trace(outcome.trace).start
        assert start is not None
        assert start.second_wall == wall.name

    def test_this_machine_has_one_or_says_why_not(self) -> None:
        beginnings = ("landlock (ABI ", "bubblewrap", "absent: ")
        assert describe_second_wall().startswith(beginnings)


def elf(*, bits: int, order: str, name: bytes) -> bytes:
    """Return the beginning of a binary that names its loader in the second entry of its table."""
    header, entry, word = (64, 56, "Q") if bits == 64 else (52, 32, "I")
    head = bytearray(b"\x7fELF" + bytes([2 if bits == 64 else 1, 1 if order == "<" else 2]) + bytes(header - 6))
    struct.pack_into(order + word, head, 32 if bits == 64 else 28, header)
    struct.pack_into(order + "HH", head, 54 if bits == 64 else 42, entry, 2)
    table = bytearray(2 * entry)
    struct.pack_into(order + "I", table, 0, 6)
    struct.pack_into(order + "I", table, entry, 3)
    offset, size = (8, 32) if bits == 64 else (4, 16)
    struct.pack_into(order + word, table, entry + offset, header + 2 * entry)
    struct.pack_into(order + word, table, entry + size, len(name))
    return bytes(head + table) + name + bytes(64)


class TestNeeds:
    @pytest.mark.parametrize("bits", [32, 64])
    @pytest.mark.parametrize("order", ["<", ">"])
    def test_the_loader_of_a_binary_is_the_one_it_names(self, bits: int, order: str, tmp_path: Path) -> None:
        program = tmp_path / "program"
        program.write_bytes(elf(bits=bits, order=order, name=b"/lib/ld.so.1\0"))
        assert loader_of(program) == Path("/lib/ld.so.1")

    @pytest.mark.parametrize(
        "content",
        [
            *(b"", b"\x7fELF", b"#!/bin/sh\n", b"\x7fELF\x09" + bytes(100), b"\x7fELF\x02\x01" + bytes(100)),
            elf(bits=64, order="<", name=b"/lib/ld.so.1\0")[:130],
        ],
    )
    def test_what_names_no_loader_has_none(self, content: bytes, tmp_path: Path) -> None:
        (tmp_path / "program").write_bytes(content)
        assert loader_of(tmp_path / "program") is None

    @linux
    def test_a_program_needs_itself_its_loader_and_its_libraries(self) -> None:
        needs = needs_of(Path("/usr/bin/cat"), ())
        assert needs.executed[0] == Path("/usr/bin/cat")
        assert needs.executed[1:] == (loader_of(Path("/usr/bin/cat")),)
        assert any(path.name.startswith("libc.so") for path in needs.read)
        assert all(path.exists() for path in needs.executed)

    @linux
    def test_a_script_needs_its_interpreter_too(self, tmp_path: Path) -> None:
        (tmp_path / "inner").write_text("#!/bin/sh -e\n")
        (tmp_path / "outer").write_text(f"#! {tmp_path}/inner\n")
        assert needs_of(tmp_path / "outer", ()).executed == (
            *(tmp_path / "outer", tmp_path / "inner", Path("/bin/sh")),
            loader_of(Path("/bin/sh")),
        )

    @linux
    @pytest.mark.parametrize(
        ("words", "named"),
        [
            (["ls", "-l"], True),
            (["stat", "x"], True),
            (["find", ".", "-ls"], True),
            (["find", "-files0-from", "/etc/passwd"], False),
            (["cat", "/etc/passwd"], False),
        ],
    )
    def test_only_what_names_owners_and_shows_no_content_reads_the_accounts(
        self, words: list[str], named: bool
    ) -> None:
        needs = needs_of(Path("/usr/bin") / words[0], words[1:])
        assert (Path("/etc/passwd") in needs.read) is named
        assert (needs.own == (Path("/proc/self/mountinfo"),)) is named

    @linux
    def test_a_program_that_is_named_as_a_loader_is_not_started(self, tmp_path: Path) -> None:
        started = tmp_path / "started"
        named = tmp_path / "named"
        named.write_text(f"#!/bin/sh\n: > {started}\n")
        named.chmod(0o755)
        (tmp_path / "program").write_bytes(elf(bits=64, order="<", name=bytes(named) + b"\0"))
        with pytest.raises(OSError, match=f"names {named} as its loader, which is none"):
            needs_of(tmp_path / "program", ())
        assert not started.exists()

    @linux
    def test_a_loader_that_is_asked_can_write_nothing(self, tmp_path: Path) -> None:
        loader = tmp_path / "ld-false.so.1"
        loader.write_text(f"#!/bin/sh\necho written > {tmp_path}/file\necho 'libc.so.6 => /lib/libc.so.6 (0x1)'\n")
        loader.chmod(0o755)
        (tmp_path / "program").write_bytes(elf(bits=64, order="<", name=bytes(loader) + b"\0"))
        with suppress(OSError):
            needs_of(tmp_path / "program", ())
        assert (tmp_path / "file").read_text() == ""

    @linux
    def test_a_program_is_asked_again_when_it_was_replaced(self, tmp_path: Path) -> None:
        program = tmp_path / "program"
        program.write_text("#!/bin/sh\n")
        os.utime(program, (1, 1))
        assert Path("/bin/sh") in needs_of(program, ()).executed
        program.write_bytes(b"no script")
        os.utime(program, (2, 2))
        assert needs_of(program, ()).executed == (program,)

    def test_a_program_that_is_not_there_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            needs_of(tmp_path / "program", ())
