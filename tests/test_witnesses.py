import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcp_ops.evaluation.watching.witnesses import ProcessWitness, WorkspaceWitness, tree
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
        (relink, [("changed", "link", "link target")]),
        (become_a_link, [("changed", "a.txt", "a file became a link")]),
        (come_and_go, [("changed", "sub/inner", "an entry came and went")]),
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
    assert seen(root, lambda root: os.setxattr(root / "a.txt", "user.note", b"1")) == [
        ("changed", "a.txt", "extended attributes")
    ]


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
    assert (effect.witness, effect.kind, effect.object) == ("processes", "left_over", "sleep 321")
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
