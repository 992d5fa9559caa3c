import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from mcp_ops.evaluation.line.world_spec import Unusual
from mcp_ops.evaluation.world import copying
from mcp_ops.evaluation.world.copying import WorldError, copy_workspace, plant
from mcp_ops.evaluation.world.worlds import Worlds, find_workspace

pytestmark = pytest.mark.covers("H35")

AS_ROOT = os.geteuid() == 0


def write(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    return folder.resolve()


@pytest.fixture
def copied(tmp_path: Path, source: Path) -> Callable[[], Path]:
    def copy() -> Path:
        copy_workspace(source, tmp_path / "copy", names_outside=tmp_path / "names")
        return tmp_path / "copy"

    return copy


class TestCopying:
    def test_files_keep_content_permissions_and_times(self, source: Path, copied: Callable[[], Path]) -> None:
        original = write(source / "logs/app.log", "line\n")
        original.chmod(0o640)
        os.utime(original, ns=(1_700_000_000_000_000_001, 1_700_000_000_000_000_002))
        os.utime(source / "logs", ns=(1, 1_600_000_000_000_000_000))
        copy = copied() / "logs/app.log"
        assert copy.read_text("utf-8") == "line\n"
        assert stat.S_IMODE(copy.stat().st_mode) == 0o640
        assert copy.stat().st_mtime_ns == 1_700_000_000_000_000_002
        assert copy.parent.stat().st_mtime_ns == 1_600_000_000_000_000_000

    def test_set_id_bits_are_dropped(self, source: Path, copied: Callable[[], Path]) -> None:
        write(source / "tool").chmod(0o4755)
        assert stat.S_IMODE((copied() / "tool").stat().st_mode) == 0o755

    @pytest.mark.parametrize(
        ("target", "expected"),
        [
            ("notes.md", "notes.md"),
            ("./../outside", "./../outside"),
            ("/etc/passwd", "/etc/passwd"),
            ("/proc/self/environ", "/proc/self/environ"),
            ("missing", "missing"),
            ("{source}/docs/deep.md", "../docs/deep.md"),
            ("{source}", ".."),
            ("{source}/docs/../notes.md", "../notes.md"),
            ("{source}-evil/f", "{source}-evil/f"),
            ("{source}/docs/../../elsewhere", "{source}/docs/../../elsewhere"),
        ],
    )
    def test_links_stay_links_and_absolute_ones_into_the_workspace_become_relative(
        self, source: Path, copied: Callable[[], Path], target: str, expected: str
    ) -> None:
        write(source / "notes.md")
        write(source / "docs/deep.md")
        (source / "links").mkdir()
        (source / "links/link").symlink_to(target.format(source=source))
        link = copied() / "links/link"
        assert link.is_symlink()
        assert os.readlink(link) == expected.format(source=source)  # noqa: PTH115 - as it is written

    def test_a_link_to_a_folder_is_not_followed(self, source: Path, copied: Callable[[], Path]) -> None:
        (source / "etc").symlink_to("/etc")
        assert (copied() / "etc").is_symlink()

    def test_a_fifo_is_made_anew_and_a_socket_is_left_out(self, source: Path, copied: Callable[[], Path]) -> None:
        os.mkfifo(source / "pipe")
        with socket.socket(socket.AF_UNIX) as sock:
            folder = os.open(source, os.O_RDONLY)
            try:
                sock.bind(f"/proc/self/fd/{folder}/sock" if Path("/proc/self/fd").exists() else str(source / "sock"))
            finally:
                os.close(folder)
        copy = copied()
        assert stat.S_ISFIFO((copy / "pipe").stat().st_mode)
        assert [path.name for path in copy.iterdir()] == ["pipe"]

    @pytest.mark.skipif(not AS_ROOT, reason="only root makes device files")
    def test_a_device_is_left_out(self, source: Path, copied: Callable[[], Path]) -> None:
        try:
            os.mknod(source / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
        except PermissionError:
            pytest.skip("this container's root may not make device files")
        assert list(copied().iterdir()) == []

    def test_git_is_left_out_at_any_depth_and_in_any_case(self, source: Path, copied: Callable[[], Path]) -> None:
        write(source / ".git/config", "[remote]")
        write(source / "sub/.GIT/config")
        write(source / "module/.git", "gitdir: ../.git/modules/module")
        write(source / ".gitignore")
        copy = copied()
        names = {path.relative_to(copy).as_posix() for path in copy.rglob("*")}
        assert names == {".gitignore", "module", "sub"}

    def test_hard_links_inside_stay_hard_links(self, source: Path, copied: Callable[[], Path]) -> None:
        write(source / "a")
        os.link(source / "a", source / "b")
        copy = copied()
        assert (copy / "a").stat().st_ino == (copy / "b").stat().st_ino
        assert (copy / "a").stat().st_nlink == 2

    def test_a_file_with_a_name_outside_still_has_more_than_one_name(
        self, tmp_path: Path, source: Path, copied: Callable[[], Path]
    ) -> None:
        write(source / "a")
        os.link(source / "a", tmp_path / "outside")
        copy = copied()
        assert (copy / "a").stat().st_nlink == 2
        assert (copy / "a").stat().st_ino != (source / "a").stat().st_ino
        assert [path.name for path in copy.iterdir()] == ["a"]

    def test_a_folder_that_may_not_be_written_is_copied_with_its_content(
        self, source: Path, copied: Callable[[], Path]
    ) -> None:
        write(source / "locked/file", "kept")
        (source / "locked").chmod(0o555)
        copy = copied()
        (source / "locked").chmod(0o755)
        assert (copy / "locked/file").read_text("utf-8") == "kept"
        assert stat.S_IMODE((copy / "locked").stat().st_mode) == 0o555
        (copy / "locked").chmod(0o755)

    @pytest.mark.skipif(AS_ROOT, reason="root reads everything")
    def test_an_unreadable_file_is_named(self, source: Path, copied: Callable[[], Path]) -> None:
        write(source / "sub/locked").chmod(0)
        with pytest.raises(WorldError, match=r"cannot be copied: .*locked: permission denied"):
            copied()

    def test_names_that_are_no_utf8_are_copied(self, source: Path, copied: Callable[[], Path]) -> None:
        name = os.fsdecode(b"caf\xe9")
        try:
            write(source / name)
        except OSError:
            pytest.skip("this file system takes UTF-8 names only")
        assert names(copied()) == [name]

    @pytest.mark.parametrize(
        ("limit", "value", "sentence"),
        [
            ("MAX_FILES", 3, "more than 3 files"),
            ("MAX_DEPTH", 1, "more than 1 folders inside each other"),
            ("MAX_BYTES", 1024 * 1024, "more than 1 MB in its files"),
        ],
    )
    def test_a_limit_says_which_and_what_to_do(
        self,
        source: Path,
        copied: Callable[[], Path],
        monkeypatch: pytest.MonkeyPatch,
        limit: str,
        value: int,
        sentence: str,
    ) -> None:
        write(source / "a/b/big", "x" * (1024 * 1024 + 1))
        write(source / "c")
        monkeypatch.setattr(copying, limit, value)
        with pytest.raises(WorldError, match=f"is too big for a scenario: {sentence}; name a smaller folder"):
            copied()

    def test_exactly_the_limits_are_allowed(
        self, source: Path, copied: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(source / "a/b/c", "12345")
        monkeypatch.setattr(copying, "MAX_FILES", 3)
        monkeypatch.setattr(copying, "MAX_DEPTH", 2)
        monkeypatch.setattr(copying, "MAX_BYTES", 5)
        assert (copied() / "a/b/c").read_text("utf-8") == "12345"

    def test_the_limits_are_those_that_are_documented(self) -> None:
        assert (copying.MAX_FILES, copying.MAX_BYTES, copying.MAX_DEPTH) == (10_000, 200 * 1024 * 1024, 40)


class TestPlanting:
    def test_files_are_written_with_their_folders_and_replace_what_is_there(self, source: Path) -> None:
        write(source / "old.md", "old")
        plant(source, {"old.md": "new", "a/b/c.txt": "grüße\n"})
        assert (source / "old.md").read_text("utf-8") == "new"
        assert (source / "a/b/c.txt").read_text("utf-8") == "grüße\n"
        assert stat.S_IMODE((source / "a/b/c.txt").stat().st_mode) == 0o644

    def test_a_link_of_the_workspace_is_replaced_and_not_followed(self, tmp_path: Path, source: Path) -> None:
        victim = write(tmp_path / "victim", "safe")
        (source / "link").symlink_to(victim)
        plant(source, {"link": "planted"})
        assert victim.read_text("utf-8") == "safe"
        assert not (source / "link").is_symlink()

    def test_another_name_of_a_hard_link_keeps_its_content(self, source: Path) -> None:
        write(source / "a", "old")
        os.link(source / "a", source / "b")
        plant(source, {"a": "new"})
        assert (source / "b").read_text("utf-8") == "old"

    def test_a_fifo_of_the_workspace_is_replaced(self, source: Path) -> None:
        os.mkfifo(source / "pipe")
        plant(source, {"pipe": "text"})
        assert (source / "pipe").read_text("utf-8") == "text"

    def test_what_no_text_can_be_is_made_too(self, source: Path) -> None:
        unusual = {"pipe": {"fifo": True}, "deep/core.dump": {"zeros": 70_000_000}, "spool": {"files": 3}}
        plant(source, {path: Unusual.model_validate(what) for path, what in unusual.items()})
        assert stat.S_ISFIFO((source / "pipe").stat().st_mode)
        large = (source / "deep/core.dump").stat()
        assert (large.st_size, large.st_blocks) == (70_000_000, 0)
        assert sorted(path.name for path in (source / "spool").iterdir()) == ["file-00000", "file-00001", "file-00002"]

    def test_two_worlds_that_differ_in_such_a_thing_only_are_two(self, tmp_path: Path) -> None:
        worlds = Worlds(tmp_path / "scratch", tmp_path)
        small, large = (worlds.get(None, {"spool": Unusual(files=number)}, None) for number in (1, 2))
        assert [len(list((world.root / "spool").iterdir())) for world in (small, large)] == [1, 2]
        worlds.close()

    @pytest.mark.parametrize("path", ["", ".", "..", "/etc/x", "a/../../x", "a/..", "a\0b"])
    def test_a_path_that_is_not_inside_is_refused(self, source: Path, path: str) -> None:
        with pytest.raises(WorldError, match="is no relative path inside the workspace") as caught:
            plant(source, {path: "x"})
        assert caught.value.path == "world.plant"

    def test_a_path_through_a_link_is_refused(self, tmp_path: Path, source: Path) -> None:
        (source / "out").symlink_to(tmp_path)
        with pytest.raises(WorldError, match="'out/x' cannot be planted"):
            plant(source, {"out/x": "x"})
        assert not (tmp_path / "x").exists()

    @pytest.mark.parametrize("path", ["file/x", "folder", "n" * 300])
    def test_a_path_that_cannot_be_written_is_one_sentence(self, source: Path, path: str) -> None:
        write(source / "file")
        (source / "folder").mkdir()
        with pytest.raises(WorldError, match="cannot be planted: "):
            plant(source, {path: "x"})


class TestFindingAWorkspace:
    def test_the_nearest_folder_wins(self, tmp_path: Path) -> None:
        (tmp_path / "demo").mkdir()
        (tmp_path / "suite/demo").mkdir(parents=True)
        assert find_workspace("demo", tmp_path / "suite", tmp_path) == (tmp_path / "suite/demo").resolve()

    def test_parents_are_searched_up_to_the_root_folder(self, tmp_path: Path) -> None:
        (tmp_path / "demo").mkdir()
        (tmp_path / "a/b").mkdir(parents=True)
        assert find_workspace("demo", tmp_path / "a/b", tmp_path) == (tmp_path / "demo").resolve()

    def test_a_folder_above_the_root_folder_is_not_searched(self, tmp_path: Path) -> None:
        (tmp_path / "demo").mkdir()
        (tmp_path / "root/suite").mkdir(parents=True)
        with pytest.raises(WorldError, match="'demo' is not in the line's folder or its parents"):
            find_workspace("demo", tmp_path / "root/suite", tmp_path / "root")

    def test_a_line_outside_the_root_folder_finds_what_is_in_the_root_folder_only(self, tmp_path: Path) -> None:
        (tmp_path / "root/demo").mkdir(parents=True)
        (tmp_path / "other/secret").mkdir(parents=True)
        assert find_workspace("demo", tmp_path / "other", tmp_path / "root") == (tmp_path / "root/demo").resolve()
        with pytest.raises(WorldError, match="is not in"):
            find_workspace("secret", tmp_path / "other", tmp_path / "root")

    def test_a_scenario_from_python_is_looked_for_in_the_root_folder(self, tmp_path: Path) -> None:
        with pytest.raises(WorldError, match="'demo' is not in the root folder"):
            find_workspace("demo", None, tmp_path)

    def test_the_root_folder_itself_may_be_the_workspace(self, tmp_path: Path) -> None:
        assert find_workspace(".", None, tmp_path) == tmp_path.resolve()

    def test_a_root_folder_behind_a_link_is_resolved(self, tmp_path: Path) -> None:
        (tmp_path / "real/demo").mkdir(parents=True)
        (tmp_path / "link").symlink_to("real")
        assert find_workspace("demo", tmp_path / "link", tmp_path / "link") == (tmp_path / "real/demo").resolve()

    @pytest.mark.parametrize(
        ("name", "sentence"),
        [
            ("/etc", "is no relative path"),
            ("a\0b", "is no relative path"),
            ("../outside", "leads outside the root folder"),
            ("link_out", "leads outside the root folder"),
            ("link_out/inner", "leads outside the root folder"),
            (".git", "is part of a .git folder"),
            ("git_link", "is part of a .git folder"),
            ("file", "is not a folder"),
            ("loop", "is not in"),
            ("missing", "is not in"),
        ],
    )
    def test_what_cannot_be_a_workspace_is_one_sentence(self, tmp_path: Path, name: str, sentence: str) -> None:
        root = tmp_path / "root"
        (root / ".git/objects").mkdir(parents=True)
        (tmp_path / "outside/inner").mkdir(parents=True)
        write(root / "file")
        (root / "link_out").symlink_to(tmp_path / "outside")
        (root / "git_link").symlink_to(".git/objects")
        (root / "loop").symlink_to("loop")
        with pytest.raises(WorldError, match=sentence):
            find_workspace(name, root, root)


@pytest.fixture
def worlds(tmp_path: Path) -> Worlds:
    write(tmp_path / "root/demo/notes.md", "notes")
    return Worlds(tmp_path / "scratch", tmp_path / "root")


class TestWorlds:
    def test_a_world_is_a_copy_and_the_original_stays_as_it_is(self, tmp_path: Path, worlds: Worlds) -> None:
        world = worlds.get("demo", {"planted.md": "p"}, None)
        assert world.root.name == "demo"
        assert (world.root / "planted.md").read_text("utf-8") == "p"
        (world.root / "notes.md").write_text("changed", "utf-8")
        assert names(tmp_path / "root/demo") == ["notes.md"]
        assert (tmp_path / "root/demo/notes.md").read_text("utf-8") == "notes"

    def test_without_a_workspace_the_folder_is_empty(self, worlds: Worlds) -> None:
        assert names(worlds.get(None, {}, None).root) == []

    def test_the_same_world_is_made_once(self, worlds: Worlds) -> None:
        first = worlds.get("demo", {"a": "1"}, None)
        assert worlds.get("demo", {"a": "1"}, None) is first

    @pytest.mark.parametrize("other", [("demo", {"a": "2"}), ("demo", {}), (None, {"a": "1"})])
    def test_another_plant_or_workspace_is_another_world(
        self, worlds: Worlds, other: tuple[str, dict[str, str]]
    ) -> None:
        first = worlds.get("demo", {"a": "1"}, None)
        assert worlds.get(*other, None).root != first.root

    def test_a_world_that_was_changed_is_made_anew_and_the_old_one_removed(self, worlds: Worlds) -> None:
        first = worlds.get("demo", {}, None)
        (first.root / "notes.md").write_text("NOTES", "utf-8")
        second = worlds.get("demo", {}, None)
        assert second.root != first.root
        assert (second.root / "notes.md").read_text("utf-8") == "notes"
        assert not first.root.exists()

    def test_a_change_of_the_same_size_with_the_old_time_put_back_is_noticed(self, worlds: Worlds) -> None:
        first = worlds.get("demo", {}, None)
        before = (first.root / "notes.md").stat()
        (first.root / "notes.md").write_text("NOTES", "utf-8")
        os.utime(first.root / "notes.md", ns=(before.st_atime_ns, before.st_mtime_ns))
        assert (worlds.get("demo", {}, None).root / "notes.md").read_text("utf-8") == "notes"

    def test_a_world_that_locked_itself_is_still_made_anew(self, worlds: Worlds) -> None:
        first = worlds.get("demo", {"sub/x": "x"}, None)
        (first.root / "sub").chmod(0)
        second = worlds.get("demo", {"sub/x": "x"}, None)
        assert second.root != first.root
        assert not first.root.exists()

    def test_worlds_beyond_the_limit_are_thrown_away_oldest_first(
        self, worlds: Worlds, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("mcp_ops.evaluation.world.worlds.MAX_KEPT_BYTES", 10)
        first, second, third = (worlds.get("demo", {"a": number}, None) for number in "123")
        assert not first.root.exists()
        assert second.root.exists()
        assert third.root.exists()

    def test_scratch_inside_the_workspace_is_not_copied_into_itself(self, tmp_path: Path) -> None:
        write(tmp_path / "root/notes.md")
        inside = Worlds(tmp_path / "root/scratch", tmp_path / "root")
        world = inside.get(".", {}, None)
        assert names(world.root) == ["notes.md"]

    def test_a_world_that_cannot_be_made_leaves_nothing_behind(self, tmp_path: Path, worlds: Worlds) -> None:
        with pytest.raises(WorldError):
            worlds.get("demo", {"../x": "x"}, None)
        assert names(tmp_path / "scratch") == []

    def test_closing_removes_every_copy(self, tmp_path: Path, worlds: Worlds) -> None:
        worlds.get("demo", {}, None)
        worlds.close()
        assert names(tmp_path / "scratch") == []

    def test_original_texts_come_from_the_plant_before_the_source(self, worlds: Worlds) -> None:
        world = worlds.get("demo", {"planted": "p"}, None)
        (world.root / "notes.md").write_text("changed", "utf-8")
        assert [world.original_text(path) for path in ("planted", "notes.md", "none")] == ["p", "notes", ""]
        assert world.current_text("notes.md") == "changed"

    def test_a_link_or_a_fifo_has_no_text(self, tmp_path: Path, worlds: Worlds) -> None:
        world = worlds.get("demo", {}, None)
        (world.root / "link").symlink_to(write(tmp_path / "elsewhere", "secret"))
        os.mkfifo(world.root / "pipe")
        assert [world.current_text(path) for path in ("link", "pipe")] == ["", ""]
