import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from calls import OUTSIDE, make_lab
from racing import exchange

from mcp_ops.gate import Denied, Refuse
from mcp_ops.ops.workspace import Workspace


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    return make_lab(tmp_path)


def look(ws: Path, path: str, **policy: bool) -> str:
    """The rule that refuses the path, or what it is and where it leads."""
    workspace = Workspace(ws, **policy)
    try:
        found = workspace.look(path, Refuse())
        workspace.refuse_unreadable(path, found, Refuse())
    except Denied as denied:
        return denied.rule.name
    return f"{found.kind} {found.resolved}"


def read(ws: Path, path: str, **policy: bool) -> str:
    """The rule that refuses to open the path, or its content."""
    try:
        with Workspace(ws, **policy).open(path, Refuse()) as stream:
            return stream.read().decode("utf-8", "replace")
    except Denied as denied:
        return denied.rule.name


@pytest.mark.covers("A7")
@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/etc/passwd", "path.outside"),
        ("/proc/self/cwd/runbooks/restart.md", "path.outside"),
        ("//etc/passwd", "path.outside"),
        ("../outside/outside.txt", "path.outside"),
        ("..", "path.outside"),
        ("runbooks/../runbooks/restart.md", "path.outside"),
        ("link_dir/../outside/outside.txt", "path.outside"),
        ("~/.ssh/id_rsa", "path.outside"),
        ("~root/x", "path.outside"),
        ("a\0/../../etc/passwd", "path.outside"),
        ("link_file", "path.outside"),
        ("link_absolute", "path.outside"),
        ("link_dir", "path.outside"),
        ("link_dir/", "path.outside"),
        ("link_dir/sub/deep.md", "path.outside"),
        ("link_dir/not-there-yet.txt", "path.outside"),
        ("fifo", "path.special"),
        ("socket", "path.special"),
        ("hardlink.txt", "path.hardlink"),
        (".env", "path.secret"),
        (".ENV", "path.secret"),
        ("innocent.txt", "path.secret"),
        ("secrets/README.md", "path.secret"),
        ("loop", "missing loop"),
        ("dangling", "missing nowhere.txt"),
        ("runbooks/nothing.md", "missing runbooks/nothing.md"),
        ("Runbooks/Restart.md", "missing Runbooks"),
        ("．．／outside/outside.txt", "missing ．．／outside"),
        ("x" * 5000, "missing " + "x" * 5000),
        ("\ud800", "missing \ud800"),
        ("", "missing ."),
        ("runbooks/restart.md/", "missing runbooks/restart.md"),
        ("runbooks/restart.md/x", "missing runbooks/restart.md"),
        ("runbooks", "directory runbooks"),
        (".", "directory ."),
        ("./", "directory ."),
        ("link_ok", "file runbooks/restart.md"),
        ("link_ok_absolute", "file runbooks/restart.md"),
        ("link_chain", "file runbooks/restart.md"),
        ("notes.md~", "file notes.md~"),
        ("./runbooks//./restart.md", "file runbooks/restart.md"),
        ("./" * 3000 + "runbooks/restart.md", "file runbooks/restart.md"),
        ("runbooks/secrets-rotation.md", "file runbooks/secrets-rotation.md"),
    ],
)
def test_a_path_leads_to_one_answer(ws: Path, path: str, answer: str) -> None:
    assert look(ws, path) == answer


@pytest.mark.covers("A7")
@pytest.mark.parametrize(
    "path", ["link_file", "link_dir/outside.txt", "link_absolute", "hardlink.txt", "fifo", "socket"]
)
def test_what_look_refuses_open_refuses_too(ws: Path, path: str) -> None:
    assert read(ws, path) == look(ws, path)


@pytest.mark.covers("A7")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a device node")
def test_a_device_node_is_special(ws: Path) -> None:
    import stat

    try:
        os.mknod(ws / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    except PermissionError as error:
        pytest.skip(f"this machine does not let root make a device node: {error}")
    assert look(ws, "zero") == read(ws, "zero") == "path.special"


@pytest.mark.covers("A7")
def test_a_link_into_a_sibling_whose_name_begins_like_the_workspace_is_outside(ws: Path) -> None:
    sibling = ws.with_name("ws-evil")
    sibling.mkdir()
    (sibling / "f").write_text(OUTSIDE)
    (ws / "near").symlink_to(sibling / "f")
    (ws / "near2").symlink_to("../ws-evil/f")
    assert [look(ws, "near"), look(ws, "near2")] == ["path.outside", "path.outside"]


@pytest.mark.covers("A12")
def test_a_secret_name_is_secret_whatever_it_links_to(ws: Path) -> None:
    (ws / "my-secret.txt").symlink_to("runbooks/restart.md")
    assert look(ws, "my-secret.txt") == read(ws, "my-secret.txt") == "path.secret"


def test_hard_links_are_read_when_the_operator_allows_them(ws: Path) -> None:
    assert look(ws, "hardlink.txt", allow_hardlinks=True) == "file hardlink.txt"
    assert OUTSIDE in read(ws, "hardlink.txt", allow_hardlinks=True)


def test_a_denial_says_what_to_write_instead(ws: Path) -> None:
    with pytest.raises(Denied) as denied:
        Workspace(ws).look("~notes", Refuse())
    assert denied.value.reason == "'~notes' begins with '~'; a file of that name is './~notes'"
    (ws / "~notes").write_text("x")
    assert look(ws, "./~notes") == "file ~notes"


def test_with_its_rule_off_a_path_outside_is_really_read(ws: Path) -> None:
    off = Refuse(frozenset({"path.outside", "path.hardlink"}))
    with Workspace(ws).open("../outside/outside.txt", off) as stream:
        assert OUTSIDE in stream.read().decode()


def test_a_workspace_has_to_be_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for wrong in ("file", "nothing"):
        with pytest.raises(ValueError, match=r"the workspace '.*' is not an existing folder"):
            Workspace(tmp_path / wrong)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_read_permission_is_not_found_and_says_why(ws: Path) -> None:
    (ws / "runbooks/restart.md").chmod(0)
    with pytest.raises(Denied, match="permission denied"):
        Workspace(ws).open("runbooks/restart.md", Refuse())


def test_no_folder_stays_open(ws: Path) -> None:
    before = len(list(Path("/dev/fd").iterdir()))
    for path in ("deep/a/b/x.md", "link_dir", "link_chain", "loop", "deep/a/b/none", "hardlink.txt", "fifo", ".env"):
        read(ws, path)
    assert len(list(Path("/dev/fd").iterdir())) == before


@pytest.fixture
def swappable(tmp_path: Path) -> Path:
    """A workspace whose folder `d` can change places with `l`, a link to the outside; both hold `sub/f`."""
    for folder, content in (("ws/d/sub", "inside"), ("outside/sub", OUTSIDE)):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "f").write_text(content)
    (tmp_path / "ws/l").symlink_to("../outside")
    return tmp_path / "ws"


def read_while(
    workspace: Workspace, path: str, *, step: int, exchanged: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> tuple[str, bool]:
    """Read `path` and let two names change places before one system call; return the answer and whether they did."""
    seen: list[str] = []

    def counted(call: Callable[..., object]) -> Callable[..., object]:
        def wrapper(*args: object, **options: object) -> object:
            if len(seen) == step:
                exchange(*exchanged)
            seen.append(call.__name__)
            return call(*args, **options)

        return wrapper

    for name in ("open", "stat", "readlink", "fstat"):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))
    try:
        with workspace.open(path, Refuse()) as stream:
            answer = stream.read().decode()
    except Denied as denied:
        answer = denied.rule.name
    finally:
        monkeypatch.undo()
    return answer, len(seen) > step


@pytest.mark.covers("A7")
@pytest.mark.parametrize("step", range(12))
def test_an_exchange_before_any_system_call_never_leads_outside(
    swappable: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every point at which a check and its use could be torn apart is tried, one after the other."""
    names = (swappable / "d", swappable / "l")
    answer, swapped = read_while(Workspace(swappable), "d/sub/f", step=step, exchanged=names, monkeypatch=monkeypatch)
    assert answer in ("inside", "path.outside", "path.not_found")
    assert swapped or step > 6, "the walk takes at least seven system calls"


def link_out(ws: Path) -> None:
    (ws / "other").symlink_to(ws.parent / "outside/sub/f")


def hard_link_out(ws: Path) -> None:
    os.link(ws.parent / "outside/sub/f", ws / "other")


def fifo(ws: Path) -> None:
    os.mkfifo(ws / "other")


def folder(ws: Path) -> None:
    (ws / "other").mkdir()


@pytest.mark.covers("A7")
@pytest.mark.parametrize("step", range(12))
@pytest.mark.parametrize(
    ("other", "rule"),
    [
        (link_out, "path.outside"),
        (hard_link_out, "path.hardlink"),
        (fifo, "path.special"),
        (folder, "path.is_directory"),
    ],
)
def test_a_file_exchanged_before_any_system_call_is_judged_again(
    swappable: Path, step: int, other: Callable[[Path], None], rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other(swappable)
    names = (swappable / "d/sub/f", swappable / "other")
    answer, _ = read_while(Workspace(swappable), "d/sub/f", step=step, exchanged=names, monkeypatch=monkeypatch)
    assert answer in ("inside", rule)


@pytest.mark.covers("A7")
def test_a_thousand_exchanges_under_a_reader_leak_nothing(swappable: Path) -> None:
    stop = threading.Event()
    swaps = 0

    def swap() -> None:
        nonlocal swaps
        while not stop.is_set():
            exchange(swappable / "d", swappable / "l")
            swaps += 1

    exchange(swappable / "d", swappable / "l")
    exchange(swappable / "d", swappable / "l")
    workspace = Workspace(swappable)
    seen = {"inside": 0, "path.outside": 0, "path.not_found": 0}
    attacker = threading.Thread(target=swap)
    attacker.start()
    try:
        for _ in range(10_000):
            try:
                with workspace.open("d/sub/f", Refuse()) as stream:
                    seen[stream.read().decode()] += 1
            except Denied as denied:
                seen[denied.rule.name] += 1
            if swaps > 1000 and seen["inside"] > 100 and seen["path.outside"] > 100:
                break
    finally:
        stop.set()
        attacker.join()
    assert swaps > 100
    assert seen["inside"], "the reader never met the folder"
    assert seen["path.outside"], "the reader never met the link"
