import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from mcp_ops.evaluation.watching.witnesses import (
    Effect,
    Panel,
    ProcessWitness,
    SocketWitness,
    Witness,
    WitnessFactory,
    WitnessInput,
    WorkspaceWitness,
    sockets,
    tree,
)
from mcp_ops.evaluation.watching.witnesses.tree import compare, snapshot, unchanged, walk

pytestmark = pytest.mark.covers("H9")

needs_linux = pytest.mark.skipif(not ProcessWitness.available(), reason="left-over processes are seen on Linux only")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    (folder / "sub/inner").mkdir(parents=True)
    (folder / "a.txt").write_text("alpha", "utf-8")
    (folder / "sub/b.txt").write_text("beta", "utf-8")
    (folder / "link").symlink_to("a.txt")
    os.mkfifo(folder / "pipe")
    return folder


def seen(root: Path, act: Callable[[Path], object]) -> list[tuple[str, str, str]]:
    witness = WorkspaceWitness(root)
    witness.before()
    act(root)
    return [(effect.kind, effect.object, effect.detail) for effect in witness.after()]


def rewrite_with_the_old_time(root: Path) -> None:
    before = (root / "a.txt").stat()
    with (root / "a.txt").open("r+", encoding="utf-8") as file:
        file.write("ALPHA")
    os.utime(root / "a.txt", ns=(before.st_atime_ns, before.st_mtime_ns))


def replace_with_the_old_time(root: Path) -> None:
    before = (root / "a.txt").stat()
    (root / "new").write_text("ALPHA", "utf-8")
    os.utime(root / "new", ns=(before.st_atime_ns, before.st_mtime_ns))
    (root / "new").replace(root / "a.txt")


def relink(root: Path) -> None:
    (root / "link").unlink()
    (root / "link").symlink_to("sub/b.txt")


def become_a_link(root: Path) -> None:
    (root / "a.txt").unlink()
    (root / "a.txt").symlink_to("sub/b.txt")


def come_and_go(root: Path) -> None:
    (root / "sub/inner/tmp").write_text("x", "utf-8")
    (root / "sub/inner/tmp").unlink()


UNDONE = [("changed", "a.txt", "a change that was undone, or of its flags")]


def change_the_mode_and_back(root: Path) -> None:
    mode = (root / "a.txt").stat().st_mode
    (root / "a.txt").chmod(0o600)
    (root / "a.txt").chmod(stat.S_IMODE(mode))


def write_and_write_back(root: Path) -> None:
    before = (root / "a.txt").stat()
    for text in ("ALPHA", "alpha"):
        (root / "a.txt").write_text(text, "utf-8")
    os.utime(root / "a.txt", ns=(before.st_atime_ns, before.st_mtime_ns))


def replace_by_an_equal_file(root: Path) -> None:
    before = (root / "a.txt").stat()
    (root / "new").write_text("alpha", "utf-8")
    (root / "new").chmod(stat.S_IMODE(before.st_mode))
    os.utime(root / "new", ns=(before.st_atime_ns, before.st_mtime_ns))
    (root / "new").replace(root / "a.txt")


def listen_on_a_socket_file(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(root / "control.sock"))


def remove_everything(root: Path) -> None:
    for path in sorted(root.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    root.rmdir()


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (lambda root: None, []),
        (lambda root: (root / "a.txt").read_text("utf-8"), []),
        (lambda root: (root / "new.txt").write_text("n", "utf-8"), [("created", "new.txt", "file")]),
        (lambda root: (root / "new/deep").mkdir(parents=True), [("created", "new/deep", "folder")]),
        (lambda root: (root / "dangling").symlink_to("/nowhere"), [("created", "dangling", "link")]),
        (lambda root: os.mkfifo(root / "fifo"), [("created", "fifo", "fifo")]),
        (lambda root: (root / "sub/b.txt").unlink(), [("removed", "sub/b.txt", "file")]),
        (lambda root: (root / "sub/inner").rmdir(), [("removed", "sub/inner", "folder")]),
        (lambda root: (root / "a.txt").write_text("other", "utf-8"), [("changed", "a.txt", "content")]),
        (lambda root: (root / "a.txt").write_text("longer text", "utf-8"), [("changed", "a.txt", "content")]),
        (rewrite_with_the_old_time, [("changed", "a.txt", "content")]),
        (replace_with_the_old_time, [("changed", "a.txt", "content")]),
        (lambda root: os.utime(root / "a.txt", (1, 1)), [("changed", "a.txt", "modification time")]),
        (lambda root: (root / "a.txt").chmod(0o777), [("changed", "a.txt", "mode 0644 to 0777")]),
        (lambda root: (root / "sub").chmod(0o700), [("changed", "sub", "mode 0755 to 0700")]),
        (relink, [("changed", "link", "link target a.txt to sub/b.txt")]),
        (become_a_link, [("changed", "a.txt", "a file became a link")]),
        (come_and_go, [("changed", "sub/inner", "an entry came and went")]),
        (lambda root: os.utime(root / "sub", (1, 1)), [("changed", "sub", "modification time")]),
        (lambda root: os.utime(root / "pipe", (1, 1)), [("changed", "pipe", "modification time")]),
        (lambda root: os.utime(root / "a.txt", ns=(1, (root / "a.txt").stat().st_mtime_ns)), UNDONE),
        (change_the_mode_and_back, UNDONE),
        (write_and_write_back, UNDONE),
        (replace_by_an_equal_file, UNDONE),
        (listen_on_a_socket_file, [("created", "control.sock", "socket")]),
        (
            lambda root: (root / "a.txt").rename(root / "sub/c.txt"),
            [("removed", "a.txt", "file"), ("created", "sub/c.txt", "file")],
        ),
        (
            lambda root: os.link(root / "a.txt", root / "second"),
            [("changed", "a.txt", "1 to 2 names"), ("created", "second", "file")],
        ),
        (
            remove_everything,
            [
                ("removed", name, kind)
                for name, kind in (
                    ("a.txt", "file"),
                    ("link", "link"),
                    ("pipe", "fifo"),
                    ("sub/b.txt", "file"),
                    ("sub/inner", "folder"),
                )
            ],
        ),
    ],
)
def test_the_workspace_witness_sees_exactly_what_changed(
    root: Path, act: Callable[[Path], object], expected: list[tuple[str, str, str]]
) -> None:
    (root / "a.txt").chmod(0o644)
    (root / "sub").chmod(0o755)
    assert seen(root, act) == expected


def test_an_extended_attribute_is_a_change(root: Path) -> None:
    try:
        os.setxattr(root / "sub/b.txt", "user.probe", b"1")
    except (OSError, AttributeError):
        pytest.skip("no extended attributes here")
    for act, detail in (
        (lambda root: os.setxattr(root / "a.txt", "user.note", b"1"), "extended attribute user.note set"),
        (lambda root: os.setxattr(root / "sub/b.txt", "user.probe", b"2"), "extended attribute user.probe changed"),
        (lambda root: os.removexattr(root / "sub/b.txt", "user.probe"), "extended attribute user.probe removed"),
    ):
        ((kind, _, said),) = seen(root, act)
        assert (kind, said) == ("changed", detail)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_an_owner_is_a_change(root: Path) -> None:
    assert seen(root, lambda root: os.chown(root / "a.txt", 12, 34)) == [("changed", "a.txt", "owner 0:0 to 12:34")]


def test_what_is_behind_a_link_is_not_looked_at(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (root / "out").symlink_to(tmp_path / "outside")
    assert seen(root, lambda _: (tmp_path / "outside/new").write_text("x", "utf-8")) == []


def test_a_tree_that_explodes_is_cut_off_and_says_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MAX_ENTRIES", 10)

    def explode(root: Path) -> None:
        for number in range(30):
            (root / f"n{number}").write_text("", "utf-8")

    assert ("created", ".", "more than 10 entries, the rest was not looked at") in seen(root, explode)


def test_looking_after_without_looking_before_is_a_mistake(root: Path) -> None:
    with pytest.raises(RuntimeError, match="did not look before"):
        WorkspaceWitness(root).after()


def test_files_that_were_just_written_are_compared_by_content_until_their_time_is_old(root: Path) -> None:
    known = snapshot(root)
    assert known.racy == {"a.txt", "sub/b.txt"}
    aged = tree.Snapshot(known.entries, known.stamps, frozenset())
    # The same stamps with other content: what a kernel that counts in ticks would show.
    forged = tree.Snapshot(
        {**known.entries, "a.txt": tree.Entry("file", known.stamps["a.txt"], b"another digest")},
        known.stamps,
        known.racy,
    )
    assert compare(root, aged) == []
    assert [found.path for found in compare(root, forged)] == ["a.txt"]
    assert unchanged(root, forged) is None
    assert unchanged(root, known) is not None


def test_the_walk_of_a_folder_that_is_gone_is_empty(tmp_path: Path) -> None:
    assert walk(tmp_path / "gone") == {}


@pytest.fixture
def witness() -> Iterator[ProcessWitness]:
    watching = ProcessWitness()
    watching.before()
    yield watching
    watching.end()


def run_shell(script: str) -> str:
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.strip()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


SLEEP = "sleep 321 >/dev/null 2>&1"


@needs_linux
@pytest.mark.parametrize(
    "start",
    [
        f"{SLEEP} & echo $!",
        f"setsid {SLEEP} & echo $!",
        f"env -i /bin/sh -c '/usr/bin/setsid {SLEEP} & echo $!'",
        f"(({SLEEP} & echo $!) &)",
    ],
)
def test_a_process_that_outlives_its_parent_is_seen_and_ended(witness: ProcessWitness, start: str) -> None:
    run_shell(start)
    (effect,) = witness.after()
    assert (effect.kind, effect.object) == ("left_over", "sleep 321")
    pid = int(effect.detail.removeprefix("pid "))
    assert is_alive(pid)
    witness.end()
    assert not is_alive(pid)


@needs_linux
def test_a_process_that_ended_is_not_left_over(witness: ProcessWitness) -> None:
    run_shell("true & sleep 0 & wait; (exit 0 &)")
    assert witness.after() == []


@needs_linux
def test_a_process_on_its_way_out_is_waited_for(witness: ProcessWitness) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert child.stdin is not None
    child.stdin.close()
    assert witness.after() == []
    child.wait()


@needs_linux
def test_a_process_from_before_is_neither_seen_nor_ended() -> None:
    child = subprocess.Popen(["sleep", "321"])
    try:
        watching = ProcessWitness()
        watching.before()
        assert watching.after() == []
        watching.end()
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()


@needs_linux
def test_a_child_of_a_left_over_process_is_ended_with_it(witness: ProcessWitness) -> None:
    run_shell(f"setsid sh -c '{SLEEP} & wait' >/dev/null 2>&1 &")
    effects = witness.after()
    assert sorted(effect.object.split()[0] for effect in effects) == ["sh", "sleep"]
    witness.end()
    assert not any(is_alive(int(effect.detail.removeprefix("pid "))) for effect in effects)


@needs_linux
def test_a_process_that_ignores_signals_is_ended_too(witness: ProcessWitness) -> None:
    child = subprocess.Popen(["sh", "-c", "trap '' TERM HUP; echo ready; sleep 321"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    assert len(witness.after()) == 2
    witness.end()
    child.stdout.close()
    assert child.wait() in (-signal.SIGKILL, 0)


@needs_linux
def test_orphans_are_adopted_only_while_the_witness_watches() -> None:
    from mcp_ops.evaluation.watching.witnesses.processes import _subreaper

    watching = ProcessWitness()
    assert _subreaper() == 0
    watching.before()
    assert _subreaper() == 1
    watching.end()
    assert _subreaper() == 0


@pytest.fixture
def sockets_witness(witness: ProcessWitness) -> SocketWitness:
    watching = SocketWitness(witness)
    watching.before()
    return watching


def listening(family: socket.AddressFamily, address: object) -> socket.socket:
    server = socket.socket(family)
    server.bind(address)  # type: ignore[arg-type]
    server.listen()
    return server


@needs_linux
@pytest.mark.parametrize(
    ("family", "address", "shown"),
    [
        (socket.AF_INET, ("127.0.0.1", 0), r"127\.0\.0\.1:[0-9]+"),
        (socket.AF_INET6, ("::1", 0), r"\[::1\]:[0-9]+"),
        (socket.AF_UNIX, "\0opsagent-probe", "@opsagent-probe"),
    ],
)
def test_a_socket_that_still_listens_in_this_process_is_seen(
    sockets_witness: SocketWitness, family: socket.AddressFamily, address: object, shown: str
) -> None:
    with listening(family, address):
        (effect,) = sockets_witness.after()
    assert (effect.kind, effect.detail) == ("left_over", "listening in this process")
    assert re.fullmatch(shown, effect.object)
    assert sockets_witness.after() == []


@needs_linux
def test_a_socket_from_before_and_one_that_does_not_listen_are_nobody_s_fault(witness: ProcessWitness) -> None:
    with listening(socket.AF_INET, ("127.0.0.1", 0)) as known:
        watching = SocketWitness(witness)
        watching.before()
        pair = socket.socketpair()
        with socket.create_connection(known.getsockname()), pair[0], pair[1]:
            assert watching.after() == []


@needs_linux
def test_a_listener_in_the_place_of_a_file_that_was_closed_is_seen(witness: ProcessWitness) -> None:
    place = os.open("/dev/null", os.O_RDONLY)
    watching = SocketWitness(witness)
    watching.before()
    with listening(socket.AF_INET, ("127.0.0.1", 0)) as server:
        os.dup2(server.fileno(), place)
    assert len(watching.after()) == 1
    os.close(place)


OPEN_SOCKETS = """
import socket, sys
held = [socket.create_server(("127.0.0.1", 0)), socket.socket(type=socket.SOCK_DGRAM), socket.socket(socket.AF_UNIX)]
held[1].bind(("127.0.0.1", 0))
held[2].bind("\\0opsagent-left-over")
held[2].listen()
held.append(socket.create_connection(held[0].getsockname()))
print(held[0].getsockname()[1], held[1].getsockname()[1], held[3].getsockname()[1], flush=True)
sys.stdin.read()
"""


@needs_linux
def test_sockets_of_a_process_that_is_left_over_are_seen_with_their_state(
    witness: ProcessWitness, sockets_witness: SocketWitness
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OPEN_SOCKETS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        listens, bound, connected = child.stdout.readline().split()
        assert [effect.object.split()[0] for effect in witness.after()] == [sys.executable]
        assert sorted((effect.object, effect.detail) for effect in sockets_witness.after()) == sorted(
            [
                (f"127.0.0.1:{listens}", f"listening in pid {child.pid}"),
                (f"127.0.0.1:{bound}", f"bound in pid {child.pid}"),
                (f"127.0.0.1:{connected}", f"connected in pid {child.pid}"),
                ("@opsagent-left-over", f"listening in pid {child.pid}"),
            ]
        )
        witness.end()


@pytest.mark.skipif(sys.byteorder != "little", reason="the words of the table are in the machine's order")
@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("0100007F:1F90", "127.0.0.1:8080"),
        ("00000000000000000000000001000000:0050", "[::1]:80"),
        ("0000000000000000FFFF00000100007F:0050", "127.0.0.1:80"),
    ],
)
def test_an_address_of_the_kernel_s_table_reads_as_people_write_it(written: str, shown: str) -> None:
    assert sockets._internet_address(written) == shown


class Tickets:
    """A user's witness that notes what it was asked to do."""

    name = "tickets"
    watches = ("desk",)

    def __init__(self, given: WitnessInput) -> None:
        self.given = given
        self.asked: list[str] = []

    def before(self) -> None:
        self.asked.append("before")

    def after(self) -> list[Effect]:
        self.asked.append("after")
        return [Effect("created", "T-1", self.given.scenario)]

    def end(self) -> None:
        self.asked.append("end")


GIVEN = WitnessInput(Path("/nowhere"), "scenario", ("desk",), "mock")


def panel_of(*factories: WitnessFactory, own: Iterable[Witness] = ()) -> Panel:
    return Panel(list(own), factories, GIVEN)


async def looked(panel: Panel) -> list[tuple[str, str, str, str]]:
    await panel.before()
    effects = await panel.after()
    panel.end()
    return [(effect.witness, effect.kind, effect.object, effect.detail) for effect in effects]


async def test_a_witness_of_a_user_is_heard_like_our_own() -> None:
    made: list[Tickets] = []
    panel = panel_of(lambda given: made.append(Tickets(given)) or made[0])  # type: ignore[func-returns-value]
    assert await looked(panel) == [("tickets", "created", "T-1", "scenario")]
    assert made[0].asked == ["before", "after", "end"]
    assert [*panel.names, *panel.watches] == ["tickets", "desk"]
    assert [*panel.blind, *panel.problems] == []


async def test_a_witness_may_be_asynchronous_and_a_factory_may_make_none() -> None:
    class Later(Tickets):
        async def before(self) -> None:  # type: ignore[override]
            self.asked.append("before")

        async def after(self) -> list[Effect]:  # type: ignore[override]
            return [Effect("changed", *self.asked)]

    assert await looked(panel_of(lambda _: None, Later)) == [("tickets", "changed", "before", "")]


async def test_witnesses_of_a_user_look_outside_of_ours() -> None:
    order: list[str] = []

    class Ours:
        name = "ours"

        def before(self) -> None:
            order.append("ours before")

        def after(self) -> list[Effect]:
            order.append("ours after")
            return [Effect("left_over", "x")]

    class Theirs(Tickets):
        def before(self) -> None:
            order.append("theirs before")

        def after(self) -> list[Effect]:
            order.append("theirs after")
            return [Effect("left_over", "y")]

    effects = await looked(panel_of(Theirs, own=[Ours()]))
    assert order == ["theirs before", "ours before", "ours after", "theirs after"]
    assert [effect[0] for effect in effects] == ["ours", "tickets"]


def raising(member: str) -> WitnessFactory:
    def fail(self: object) -> None:
        raise ValueError("the desk is closed")

    return type("Broken", (Tickets,), {member: fail, "name": "broken"})


@pytest.mark.parametrize(
    ("member", "sentence"),
    [
        ("before", "could not look before the run"),
        ("after", "could not look after the run"),
        ("end", "could not clean up"),
    ],
)
async def test_a_witness_that_raises_is_named_and_hinders_no_other(member: str, sentence: str) -> None:
    made: list[Tickets] = []
    panel = panel_of(raising(member), lambda given: made.append(Tickets(given)) or made[0])  # type: ignore[func-returns-value]
    effects = await looked(panel)
    assert panel.problems == [f'witness "broken" {sentence}: ValueError: the desk is closed']
    assert [*panel.names, *panel.blind] == ["tickets", "broken"]
    assert made[0].asked == ["before", "after", "end"]
    assert ("tickets", "created", "T-1", "scenario") in effects


NO_NAME = type("Tickets", (Tickets,), {"name": "My Tickets"})
TAKEN = type("Tickets", (Tickets,), {"name": "workspace"})
ONE_WORD = type("Tickets", (Tickets,), {"watches": "desk"})
NO_WORDS = type("Tickets", (Tickets,), {"watches": None})
NO_AFTER = type("Tickets", (Tickets,), {"after": None})
NO_LIST = type("Tickets", (Tickets,), {"after": lambda _: None})
NO_EFFECT = type("Tickets", (Tickets,), {"after": lambda _: ["T-1"]})
NO_KIND = type("Tickets", (Tickets,), {"after": lambda _: [Effect("made", "T-1")]})  # type: ignore[arg-type]
ASYNC_END = type("Tickets", (Tickets,), {"end": lambda _: _nothing()})


async def _nothing() -> None: ...


@pytest.mark.parametrize(
    ("factory", "sentence"),
    [
        (NO_NAME, "the witness Tickets has the name 'My Tickets'; write one such as name = \"tickets\""),
        (TAKEN, 'the witness Tickets has the name "workspace", which another witness has; write another one'),
        (ONE_WORD, "the witness Tickets (\"tickets\") watches 'desk'; write a tuple of names such as watches = "),
        (NO_WORDS, 'the witness Tickets ("tickets") watches None; write a tuple of names such as watches = ("desk",)'),
        (NO_AFTER, 'the witness Tickets ("tickets") has no function after'),
        (NO_LIST, "witness \"tickets\" could not look after the run: TypeError: 'NoneType' object is not iterable"),
        (NO_EFFECT, "witness \"tickets\" returned 'T-1'; return a list of Effect(kind, object)"),
        (NO_KIND, "witness \"tickets\" returned Effect(kind='made', object='T-1', detail=''); return a list of Effect"),
        (ASYNC_END, 'witness "tickets" could not clean up: TypeError: end is a coroutine function; write a plain one'),
        (type("Tickets", (), {"name": "tickets"}), "the witness Tickets cannot be made: TypeError: "),
    ],
)
async def test_what_is_no_witness_is_said_in_one_sentence(
    factory: WitnessFactory, sentence: str, tmp_path: Path
) -> None:
    panel = panel_of(factory, own=[WorkspaceWitness(tmp_path)])
    await looked(panel)
    (problem,) = panel.problems
    assert problem.startswith(sentence)
    assert panel.names == {"workspace"}


async def test_a_witness_that_could_not_be_made_counts_as_one_that_failed() -> None:
    def refuse(self: object, given: WitnessInput) -> None:
        raise ValueError("no")

    assert panel_of(type("Tickets", (Tickets,), {"__init__": refuse})).blind == {"tickets"}
