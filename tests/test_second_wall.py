"""The wall of the kernel around a child: what is stopped although every guard said yes."""

import asyncio
import json
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from calls import Reply, ask
from racing import exchanged_without_end
from shelllab import OUTSIDE, build_lab, commands, lines, needs_gnu, shell, witness
from walls import FREE, NONE, SCRIPT, needs_wall, perl, use, wall, wall_named

from mcp_ops.gate import State
from mcp_ops.ops.context import OpsContext
from mcp_ops.ops.tools import child, run_shell
from mcp_ops.ops.tools.child import Command, Limits, bare_environment, run_child
from mcp_ops.ops.tools.run_shell import RUN_SHELL
from mcp_ops.ops.wall import Wall
from mcp_ops.ops.wall.elf import loader_of
from mcp_ops.ops.wall.landlock import Landlock, find_landlock
from mcp_ops.ops.wall.trial import holds
from mcp_ops.ops.workspace import Workspace
from mcp_ops.servers import ops

__all__ = ["wall"]

pytestmark = needs_gnu

EVERY_RULE = [rule.name for rule in ops.RULES if rule.state is State.DENIED]
ATTACKS = {
    "landlock": list(
        dict.fromkeys(
            [line["command"] for line in lines("shell.jsonl") if line["expect"] == "deny"]
            + [command for rule, command in commands() if rule != "allowed"]
        )
    ),
    "bubblewrap": [line["command"] for line in lines("shell.jsonl") if line["expect"] == "deny"],
}
READING = (
    "cat ../outside/outside.txt",
    "cat link_file",
    "cat /etc/passwd",
    "grep -e x -- /etc/passwd",
    "date -f /etc/passwd",
)
WRITING = (
    "sort -oout.txt data/hosts.txt",
    "uniq -c data/hosts.txt data/words.txt",
    "find . -fls out.txt",
    "find . -maxdepth 0 -fprint runbooks/restart.md",
    "find . -maxdepth 1 -name evil.sh -execdir {} \\;",
    "find runbooks -name dns.md -exec rm {} +",
    "find runbooks -name '*.md' -delete",
)


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    folder = build_lab(tmp_path)
    # A hard link is a file of the workspace like any other; only its rule stops it.
    (folder / "hardlink.txt").unlink()
    return folder


async def unguarded(ws: Path, command: str) -> Reply:
    """Give a command to `run_shell` with every rule switched off, to be answered within its ten seconds."""
    async with asyncio.timeout(10):
        return await ask(RUN_SHELL, OpsContext(Workspace(ws)), {"command": command}, off=EVERY_RULE)


def leaves_the_lab(command: str) -> bool:
    """Whether a command would remove something outside the lab, should no wall hold."""
    return "-delete" in command and re.search(r"\s(/|~|\.\.)", command) is not None


@pytest.mark.covers("A4", "A8", "A9")
async def test_with_every_rule_off_no_attack_writes_anything_or_reads_what_is_outside(
    wall: Wall, ws: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_shell, "LIMITS", Limits(seconds=0.5))
    attacks = ATTACKS[wall.name.split()[0]]
    assert not list(filter(leaves_the_lab, attacks))
    before, slots = witness(ws), asyncio.Semaphore(8)

    async def attack(command: str) -> Reply:
        async with slots:
            return await unguarded(ws, command)

    replies = dict(zip(attacks, await asyncio.gather(*map(attack, attacks)), strict=True))
    assert witness(ws) == before
    assert [command for command, reply in replies.items() if reaches_outside(reply)] == []
    assert {reply.reading.state for reply in replies.values()} == {State.EXECUTED, State.FAILED, State.UNAVAILABLE}


def reaches_outside(reply: Reply) -> bool:
    said = reply.text + json.dumps(reply.structured)
    return OUTSIDE in said or "root:x:0:0" in said


@pytest.mark.parametrize("command", READING)
async def test_without_the_wall_an_attack_of_the_corpus_reads_what_is_outside(
    command: str, ws: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command in ATTACKS["landlock"]
    use(NONE, monkeypatch)
    assert reaches_outside(await unguarded(ws, command))


@pytest.mark.parametrize("command", WRITING)
async def test_without_the_wall_an_attack_of_the_corpus_writes(
    command: str, ws: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command in ATTACKS["landlock"]
    use(NONE, monkeypatch)
    # A child of root may start others, and only one of those writes here.
    if "-exec" in command and os.geteuid() != 0:
        monkeypatch.setattr(run_shell, "LIMITS", FREE)
    before = witness(ws)
    await unguarded(ws, command)
    assert witness(ws) != before


INSIDE = {
    "write a file": 'open(F, "+<", "notes.md") and print "did"',
    "append to a file": 'open(F, ">>", "notes.md") and print "did"',
    "truncate a file": 'truncate("notes.md", 0) and print "did"',
    "make a file": 'open(F, ">", "new") and print "did"',
    "make a folder": 'mkdir("new") and print "did"',
    "make a link": 'symlink("notes.md", "new") and print "did"',
    "make a hard link": 'link("notes.md", "folder/new") and print "did"',
    "make a socket": 'socket(S, 1, 1, 0); bind(S, pack("Sa*", 1, "new")) and print "did"',
    "move a file": 'rename("notes.md", "folder/new") and print "did"',
    "remove a file": 'unlink("notes.md") and print "did"',
    "remove a folder": 'rmdir("folder") and print "did"',
    "run a script": 'system("./script") == 0 and print "did"',
}
OUTSIDE_OF_IT = {
    "read a file": 'open(F, "<", "../outside/outside.txt") and print "did"',
    "read by a link": 'open(F, "<", "link") and print "did"',
    "read by its absolute path": 'open(F, "<", "$ARGV[0]/outside/outside.txt") and print "did"',
    "read a file of the system": 'open(F, "<", "/etc/hostname") and print "did"',
    "read of a process": 'open(F, "<", "/proc/self/environ") and print "did"',
    "list a folder": 'opendir(D, "../outside") and print "did"',
    "write a file": 'open(F, "+<", "../outside/outside.txt") and print "did"',
    "make a file": 'open(F, ">", "../outside/new") and print "did"',
    "run another program": 'system("/bin/true") == 0 and print "did"',
}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/outside.txt").write_text(OUTSIDE)
    (tmp_path / "ws/folder").mkdir(parents=True)
    (tmp_path / "ws/notes.md").write_text("notes")
    (tmp_path / "ws/script").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "ws/script").chmod(0o755)
    (tmp_path / "ws/link").symlink_to("../outside/outside.txt")
    return tmp_path / "ws"


@pytest.mark.covers("A4")
@pytest.mark.parametrize(
    "script",
    [
        *(pytest.param(script, id=f"inside, {what}") for what, script in INSIDE.items()),
        *(pytest.param(script, id=f"outside, {what}") for what, script in OUTSIDE_OF_IT.items()),
    ],
)
async def test_a_child_behind_the_wall_cannot_though_it_could(
    script: str, wall: Wall, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (small / SCRIPT).write_text(script)
    before = witness(small)
    ended = await perl(small, script, small.parent)
    assert (ended.stdout, ended.exit_code) == (b"", 0), ended.stderr
    assert witness(small) == before
    use(NONE, monkeypatch)
    assert (await perl(small, script, small.parent)).stdout == b"did"


@pytest.mark.covers("A4")
async def test_a_child_behind_the_wall_reads_and_lists_the_workspace(wall: Wall, small: Path) -> None:
    ended = await perl(small, 'opendir(D, "."); print join(" ", sort readdir D); open(F, "<", "notes.md"); print <F>')
    assert ended.stdout == b". .. attempt.pl folder link notes.md scriptnotes"


@pytest.mark.covers("A4")
async def test_a_child_that_may_read_no_folder_reads_none(wall: Wall, small: Path) -> None:
    cat = Path("/usr/bin/cat")
    ended = await run_child(Command(cat, ("notes.md",), small, bare_environment(small), limits=FREE))
    assert (ended.stdout, ended.exit_code) == (b"", 1)


@pytest.fixture
def open_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """No empty network does the wall's work."""
    monkeypatch.setattr(child, "isolation", lambda: None)


@pytest.mark.covers("H2")
async def test_a_child_behind_the_wall_connects_to_nothing(
    wall: Wall, small: Path, open_network: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    _needs_version(wall, 4)
    connect = r'socket(S, 2, 1, 0); connect(S, pack("Sna4x8", 2, $ARGV[0], "\x7f\0\0\1")) and print "did"'
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert (await perl(small, connect, port)).stdout == b""
        use(NONE, monkeypatch)
        assert (await perl(small, connect, port)).stdout == b"did"


@pytest.mark.covers("H2")
async def test_a_child_behind_the_wall_reaches_no_abstract_socket(
    wall: Wall, small: Path, open_network: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    _needs_version(wall, 6)
    connect = r'socket(S, 1, 1, 0); connect(S, pack("Sa*", 1, "\0$ARGV[0]")) and print "did"'
    name = f"opsagent-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"\0{name}")
        listening.listen()
        assert (await perl(small, connect, name)).stdout == b""
        use(NONE, monkeypatch)
        assert (await perl(small, connect, name)).stdout == b"did"


@pytest.mark.covers("A4")
async def test_a_child_behind_the_wall_signals_nobody(wall: Wall, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _needs_version(wall, 6)
    # In a user namespace of its own a child could not signal anybody, whatever the wall.
    monkeypatch.setattr(child, "isolation", lambda: None)
    ask_for_it = 'kill(0, $ARGV[0]) and print "did"'
    assert (await perl(small, ask_for_it, os.getpid())).stdout == b""
    use(NONE, monkeypatch)
    assert (await perl(small, ask_for_it, os.getpid())).stdout == b"did"


def _needs_version(wall: Wall, abi: int) -> None:
    if isinstance(wall, Landlock) and wall.abi < abi:
        pytest.skip(f"this came with ABI {abi} of Landlock, and this kernel has {wall.abi}")


@pytest.mark.covers("A4")
async def test_what_the_loader_is_told_to_run_finds_the_same_wall(
    wall: Wall, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy("/usr/bin/cat", small / "cat")
    loader = loader_of(small / "cat")
    script = 'exec @ARGV, "./cat", "notes.md", "../outside/outside.txt"'
    assert (await perl(small, script, loader)).stdout == b"notes"
    use(NONE, monkeypatch)
    assert (await perl(small, script, loader)).stdout == b"notes" + OUTSIDE.encode()


@pytest.mark.covers("A4")
async def test_a_child_with_leave_for_the_network_has_no_wall(wall: Wall, small: Path) -> None:
    cat = Path("/usr/bin/cat")
    command = Command(cat, ("../outside/outside.txt",), small, {}, network=True, limits=FREE)
    assert (await run_child(command)).stdout.decode() == OUTSIDE


async def test_what_landlock_does_not_stop_is_what_the_page_says(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(wall_named("landlock"), monkeypatch)
    os.link(small.parent / "outside/outside.txt", small / "hard")
    assert (await perl(small, 'open(F, "<", "hard"); print <F>')).stdout.decode() == OUTSIDE
    assert (await perl(small, 'print -s "../outside/outside.txt"')).stdout.decode() == str(len(OUTSIDE))
    assert (await perl(small, 'chmod(0600, "notes.md") and print "did"')).stdout == b"did"


@pytest.fixture
def exchanged(small: Path) -> Iterator[Path]:
    """A workspace in which `place` is, in turns, a folder and a link that leads outside."""
    (small / "place").mkdir()
    (small / "place/outside.txt").write_text("INSIDE")
    (small / "other").symlink_to("../outside")
    with exchanged_without_end(small / "place", small / "other"):
        yield small


@pytest.mark.covers("A7")
async def test_a_link_that_is_exchanged_under_a_child_leads_nowhere(wall: Wall, exchanged: Path) -> None:
    replies = [await shell(exchanged, "cat place/outside.txt") for _ in range(300)]
    assert [reply.text for reply in replies if OUTSIDE in reply.text] == []
    assert [reply for reply in replies if reply.text == "INSIDE"]


async def test_without_the_wall_an_exchanged_link_would_lead_outside(
    exchanged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(NONE, monkeypatch)
    for _ in range(3000):
        if OUTSIDE in (await shell(exchanged, "cat place/outside.txt")).text:
            return
    pytest.fail("the race was never lost, so the test of the wall would not notice that it is gone")


AS_NOBODY = """
import asyncio, ctypes, json, os, pwd, sys
from pathlib import Path
import anyio
from mcp_ops.ops.tools.child import Command, bare_environment, run_child
from mcp_ops.ops.wall import describe_second_wall

# All is imported before there is nothing left that may read it.
asyncio.run(anyio.sleep(0))
nobody, dumpable = pwd.getpwnam("nobody"), 4
os.setgroups([])
os.setresgid(*[nobody.pw_gid] * 3)
os.setresuid(*[nobody.pw_uid] * 3)
# Who changed its user owns nothing in /proc, unlike whom nobody's shell started.
ctypes.CDLL(None).prctl(dumpable, 1, 0, 0, 0)

async def said(*words):
    ws = Path(sys.argv[1])
    program = Path("/usr/bin") / words[0]
    return (await run_child(Command(program, words[1:], ws, bare_environment(ws), reads=ws))).stdout.decode()

async def main():
    reads = await said("cat", "notes.md", "../outside/outside.txt")
    await said("sort", "-o", "new", "notes.md")
    print(json.dumps([describe_second_wall(), reads, os.listdir(sys.argv[1])]))

asyncio.run(main())
"""


@pytest.mark.covers("A4")
@needs_wall
@pytest.mark.skipif(os.geteuid() != 0, reason="no test here has a privilege")
def test_the_wall_needs_no_privilege() -> None:
    source = Path(ops.__file__).parents[2]
    if not all(folder.stat().st_mode & 0o005 == 0o005 for folder in (source, *source.parents)):
        pytest.skip(f"nobody may read {source}")
    with tempfile.TemporaryDirectory() as folder:
        top, nobody = Path(folder), pwd.getpwnam("nobody")
        top.chmod(0o755)
        (top / "ws").mkdir()
        (top / "outside").mkdir()
        (top / "outside/outside.txt").write_text(OUTSIDE)
        (top / "ws/notes.md").write_text("notes")
        os.chown(top / "ws", nobody.pw_uid, nobody.pw_gid)
        done = subprocess.run([sys.executable, "-c", AS_NOBODY, top / "ws"], capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [ops.describe_second_wall(), "notes", ["notes.md"]]


@pytest.mark.covers("A4")
@pytest.mark.parametrize("abi", range(1, 8))
def test_an_older_landlock_stops_files_too(abi: int) -> None:
    newest = find_landlock()
    if isinstance(newest, str) or newest.abi < abi:
        pytest.skip("this kernel is older still")
    assert holds(Landlock(abi))


@pytest.mark.covers("A4")
async def test_a_child_that_cannot_enter_its_wall_is_not_started(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(Landlock(abi=7), monkeypatch)
    monkeypatch.setattr("mcp_ops.ops.wall.landlock._create_ruleset", lambda abi: os.open("/dev/null", os.O_RDONLY))
    monkeypatch.setattr("mcp_ops.ops.wall.landlock._allow", lambda ruleset, rights, paths: None)
    command = Command(Path("/usr/bin/cat"), ("notes.md",), small, bare_environment(small), reads=small)
    with pytest.raises(subprocess.SubprocessError):
        await run_child(command)
