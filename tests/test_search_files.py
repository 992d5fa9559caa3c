import os
import threading
import time
from pathlib import Path

import pytest
from calls import OUTSIDE, SECRET, Reply, ask, context_of, make_lab

from mcp_ops.gate import MAX_REPLY_BYTES, Refuse
from mcp_ops.ops.context import OpsContext
from mcp_ops.ops.guards.globs import GlobError, compile_glob
from mcp_ops.ops.guards.search import guard_search
from mcp_ops.ops.tools import searching
from mcp_ops.ops.tools.search_files import SEARCH_FILES
from mcp_ops.ops.tools.searching import Search


@pytest.fixture
def context(tmp_path: Path) -> OpsContext:
    return context_of(make_lab(tmp_path))


@pytest.fixture
def bare(tmp_path: Path) -> OpsContext:
    return context_of(tmp_path)


async def search(context: OpsContext, pattern: str, glob: str | None = None, *, off: tuple[str, ...] = ()) -> Reply:
    return await ask(SEARCH_FILES, context, {"pattern": pattern, "glob": glob}, off=off)


def hits(reply: Reply) -> list[str]:
    return reply.text.split("\n")[:-1]


@pytest.mark.covers("A2")
async def test_a_hit_is_path_line_number_and_line(context: OpsContext) -> None:
    reply = await search(context, "payments-api")
    assert hits(reply) == ["deep/a/b/x.md:1: deep payments-api", "runbooks/restart.md:1: # Restart payments-api"]
    assert reply.structured["hits"] == 2


@pytest.mark.covers("A2", "A12")
async def test_secret_files_are_left_out_and_counted(context: OpsContext) -> None:
    reply = await search(context, "CANARY|PASSWORD")
    assert hits(reply) == []
    assert SECRET not in reply.text
    assert "6 secret files" in reply.text
    assert reply.structured["left_out"]["secret file"] == 6


@pytest.mark.covers("A2", "A12")
@pytest.mark.parametrize("glob", ["**/.env", ".env", "secrets/*", "secrets/staging.env", "**/*.KEY", "{.env,.ENV}"])
async def test_a_glob_that_names_a_secret_file_finds_nothing_in_it(context: OpsContext, glob: str) -> None:
    assert hits(await search(context, ".", glob)) == []


@pytest.mark.covers("A2", "A7")
@pytest.mark.parametrize("glob", ["link_dir/*", "link_dir/**", "**/*.txt", "link_file", "**", "hardlink.txt", "*.txt"])
async def test_nothing_outside_is_ever_found(context: OpsContext, glob: str) -> None:
    reply = await search(context, "OUTSIDE-CANARY|root:", glob)
    assert OUTSIDE not in reply.text
    assert hits(reply) == []


async def test_a_link_is_not_followed_and_is_counted(context: OpsContext) -> None:
    reply = await search(context, "payments-api", "link_*")
    assert hits(reply) == []
    assert "left out: 6 links" in reply.text


async def test_the_summary_counts_what_was_left_out_by_reason(context: OpsContext) -> None:
    left_out = (await search(context, "nothing at all")).structured["left_out"]
    assert left_out == {
        "binary file": 1,
        "hard link": 1,
        "link": 10,
        "secret file": 6,
        "special file": 2,
    }


async def test_hard_links_are_searched_when_the_operator_allows_them(tmp_path: Path) -> None:
    context = context_of(make_lab(tmp_path), allow_hardlinks=True)
    assert hits(await search(context, "CANARY")) == [f"hardlink.txt:1: {OUTSIDE}"]


@pytest.mark.covers("A2")
@pytest.mark.parametrize(
    "glob", ["../outside/*", "..", "runbooks/../*", "{../outside,logs}/*", "/etc/*", "~/x", "a\0b"]
)
async def test_a_glob_that_leads_outside_is_denied(context: OpsContext, glob: str) -> None:
    reply = await search(context, "x", glob)
    assert reply.verdict == "search.glob"
    assert "relative to the workspace root" in reply.reading.hint


async def test_with_its_rule_off_a_glob_really_leads_outside(context: OpsContext) -> None:
    reply = await search(context, "CANARY", "../outside/**", off=("search.glob", "path.hardlink"))
    assert f"../outside/sub/deep.md:1: {OUTSIDE} deep" in hits(reply)


async def test_with_its_rule_off_a_secret_file_is_really_searched(context: OpsContext) -> None:
    assert f".env:1: PASSWORD={SECRET}" in hits(await search(context, "CANARY", off=("path.secret",)))


@pytest.mark.covers("A2")
@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("[", "missing ]: ["),
        ("(", "missing ): ("),
        (r"(a)\1", r"invalid escape sequence: \1"),
        ("(?=x)", "invalid perl operator: (?="),
        ("((a{1,255}){1,255}){1,255}", "invalid repetition size: {1,255}"),
        ("a{1001}", "invalid repetition size: {1001}"),
        (r"\pL{9}", "pattern too large: 10768 RE2 instructions, 5000 at most"),
        ("a" * 2001, "pattern too large: 2001 characters, 2000 at most"),
    ],
)
async def test_a_pattern_that_re2_refuses_is_denied_with_its_message(
    context: OpsContext, pattern: str, message: str
) -> None:
    reply = await search(context, pattern)
    assert reply.verdict == "search.pattern"
    assert reply.reading.reason.endswith(message)


async def test_half_a_surrogate_pair_is_refused_and_breaks_nothing(context: OpsContext) -> None:
    assert (await search(context, "\ud800")).verdict == "args.invalid"
    assert (await search(context, "x", "\ud800")).verdict == "search.glob"


@pytest.mark.covers("A16")
async def test_an_empty_pattern_is_an_invalid_argument(context: OpsContext) -> None:
    assert (await search(context, "")).verdict == "args.invalid"


@pytest.mark.covers("A2")
@pytest.mark.parametrize(
    ("pattern", "hit"),
    [
        ("^line2$", "crlf.txt:2: line2"),
        ("^line1$", "crlf.txt:1: line1"),
        ("caf. line3$", "crlf.txt:3: caf\ufffd line3"),
    ],
)
async def test_bom_crlf_and_latin_1_do_not_hide_a_line(context: OpsContext, pattern: str, hit: str) -> None:
    assert hits(await search(context, pattern)) == [hit]


@pytest.mark.covers("A2")
async def test_line_numbers_count_lf_only(bare: OpsContext) -> None:
    (bare.workspace.root / "f").write_text("a\u2028b\x0bc\x0cd\x85e\nneedle\n", newline="")
    assert hits(await search(bare, "needle")) == ["f:2: needle"]


@pytest.mark.covers("A26")
async def test_names_and_lines_from_outside_cannot_forge_a_hit_or_reach_a_terminal(bare: OpsContext) -> None:
    (bare.workspace.root / "a\nb.txt:9: forged").write_text("\x1b[2Jneedle\u202e\n")
    assert hits(await search(bare, "needle")) == ["a\\nb.txt:9: forged:1: needle<U+202E>"]


@pytest.mark.covers("A26")
async def test_a_name_that_is_no_utf_8_is_shown_with_replacement_characters(bare: OpsContext) -> None:
    (bare.workspace.root / os.fsdecode(b"bad\xff")).write_text("needle")
    assert hits(await search(bare, "needle")) == ["bad\ufffd:1: needle"]


@pytest.mark.covers("A2")
async def test_hits_are_capped_and_the_reply_says_so(bare: OpsContext) -> None:
    (bare.workspace.root / "f").write_text("needle\n" * 1000)
    reply = await search(bare, "needle")
    assert len(hits(reply)) == 100
    assert reply.text.endswith("[100 hits in 1 file searched; stopped after 100 hits: narrow the pattern or the glob]")


@pytest.mark.covers("A2")
async def test_the_summary_survives_long_lines(bare: OpsContext) -> None:
    (bare.workspace.root / "f").write_text(("x" * 5000 + "needle" + "y" * 5000 + "\n") * 90)
    reply = await search(bare, "needle")
    assert len(reply.text.encode()) <= MAX_REPLY_BYTES
    assert all("needle" in hit and hit.endswith("…") for hit in hits(reply))
    assert "stopped after a full reply" in reply.text


@pytest.mark.covers("A2")
async def test_names_files_and_bytes_looked_at_are_capped(bare: OpsContext, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(5):
        (bare.workspace.root / f"f{n}").write_text("needle\n" + "x" * 50 + "\n")
    monkeypatch.setattr(searching, "MAX_FILES", 3)
    assert "3 hits in 3 files searched; stopped after 3 files" in (await search(bare, "needle")).text
    monkeypatch.undo()
    monkeypatch.setattr(searching, "MAX_NAMES", 4)
    assert "stopped after 4 names" in (await search(bare, "needle", "fits-nothing")).text
    monkeypatch.undo()
    (bare.workspace.root / "f0").write_text("needle\n" + "x" * 20_000 + "\nneedle\n")
    plan = guard_search("needle", "**", bare.workspace, Refuse())
    done = Search(plan, bare.workspace, Refuse(), _bytes_left=10_000).run()
    assert (done.files, done.left_out["file end"], done.stopped) == (1, 1, "32 MB of text")
    assert done.hits == ["f0:1: needle"]


async def test_version_controls_own_folder_is_not_searched(bare: OpsContext) -> None:
    for folder in (".git", "sub/.git"):
        (bare.workspace.root / folder).mkdir(parents=True)
        (bare.workspace.root / folder / "config").write_text("url = https://token@host\n")
    (bare.workspace.root / ".gitignore").write_text("token\n")
    assert hits(await search(bare, "token")) == [".gitignore:1: token"]


async def test_a_glob_that_fits_nothing_says_so(bare: OpsContext) -> None:
    reply = await search(bare, "x", "runbook/*")
    assert reply.text == "[no file to search fits 'runbook/*'; a folder's files are 'FOLDER/**']"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
async def test_what_may_not_be_read_is_counted(bare: OpsContext) -> None:
    (bare.workspace.root / "f").write_text("needle")
    (bare.workspace.root / "f").chmod(0)
    (bare.workspace.root / "d").mkdir(mode=0)
    reply = await search(bare, "needle")
    assert reply.structured["left_out"] == {"unreadable file": 1, "unreadable folder": 1}


HEAVY = ["(a+)+$", "^(a+)+$", "(a|aa)+$", "(a|a)*b", r"^(\w+\s?)*$", "(.*)*b", "(x+x+)+y", "(a?){200}a{200}"]


@pytest.mark.covers("A2")
@pytest.mark.parametrize("pattern", [*HEAVY, "(a+)+$" * 300])
async def test_200_000_characters_of_a_catastrophic_text_take_under_a_second_of_cpu(
    bare: OpsContext, pattern: str
) -> None:
    (bare.workspace.root / "f").write_text("a" * 199_999 + "!\n" + "a " * 100_000)
    start = time.process_time()
    reply = await search(bare, pattern)
    assert time.process_time() - start < 1
    assert reply.structured["files"] == 1


@pytest.mark.covers("A2")
async def test_200_000_characters_of_a_catastrophic_pattern_take_under_a_second_of_cpu(bare: OpsContext) -> None:
    (bare.workspace.root / "f").write_text("a" * 200_000)
    start = time.process_time()
    reply = await search(bare, "(a+)+$" * 33_334)
    assert time.process_time() - start < 1
    assert reply.verdict == "search.pattern"


@pytest.mark.covers("A2")
async def test_a_pattern_that_is_slow_even_for_re2_is_stopped_by_the_clock(
    bare: OpsContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "MAX_CPU_SECONDS", 0.0)
    monkeypatch.setattr(searching, "CLOCK_WORK", 1000)
    (bare.workspace.root / "f").write_text("ab\n" * 10_000)
    assert "stopped after 0 s of computing" in (await search(bare, "(?:[ab]?){1000}c")).text


@pytest.mark.covers("A2")
async def test_the_session_lives_on_while_a_search_runs(bare: OpsContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search waits in its thread until the event loop, which must be free for that, lets it go on."""
    import asyncio

    loop = asyncio.get_running_loop()
    go_on = threading.Event()
    original = Search.run

    def slow(self: Search) -> Search:
        loop.call_soon_threadsafe(go_on.set)
        assert go_on.wait(5)
        return original(self)

    monkeypatch.setattr(Search, "run", slow)
    assert (await search(bare, "x")).verdict == "executed"


@pytest.mark.covers("A2", "A7")
async def test_a_folder_exchanged_for_a_link_during_the_search_is_not_entered(
    context: OpsContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = context.workspace.root
    original = os.open
    swapped = []

    def swap_then_open(path: str, *args: int, **options: int) -> int:
        if path == "deep" and not swapped:
            swapped.append(path)
            (root / "deep").rename(root / "was_deep")
            (root / "deep").symlink_to("../outside")
        return original(path, *args, **options)

    monkeypatch.setattr(os, "open", swap_then_open)
    reply = await search(context, "CANARY|payments-api")
    assert swapped
    assert OUTSIDE not in reply.text
    assert reply.structured["left_out"]["unreadable folder"] == 1


@pytest.mark.covers("A2", "A7")
async def test_a_file_exchanged_for_a_link_during_the_search_is_not_opened(
    context: OpsContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = context.workspace.root
    original = os.open
    swapped = []

    def swap_then_open(path: str, *args: int, **options: int) -> int:
        if path == "restart.md" and not swapped:
            swapped.append(path)
            (root / "runbooks/restart.md").unlink()
            (root / "runbooks/restart.md").symlink_to("../../outside/outside.txt")
        return original(path, *args, **options)

    monkeypatch.setattr(os, "open", swap_then_open)
    reply = await search(context, "CANARY", "runbooks/**")
    assert swapped
    assert OUTSIDE not in reply.text
    assert reply.structured["left_out"] == {"unreadable file": 1}


@pytest.mark.parametrize(
    ("glob", "fits", "does_not"),
    [
        ("*.md", ["a.md", "x/y/a.md", ".hidden.md"], ["a.mdx", "a.md/x"]),
        ("logs/*", ["logs/a", "logs/.b"], ["logs/b/c", "a/logs/b", "logs"]),
        ("logs/**", ["logs/a", "logs/b/c"], ["xlogs/a", "logs"]),
        ("logs/", ["logs/a", "logs/b/c"], ["logs"]),
        ("**/*.txt", ["a.txt", "x/y/a.txt"], ["a.txt/b"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "x/a/b"]),
        ("a**b", ["axxb", "d/ab"], ["a/b"]),
        ("*.{yml,yaml}", ["k/a.yaml", "a.yml"], ["a.y", "a.{yml,yaml}"]),
        ("{a,b/**}/c", ["a/c", "b/x/y/c"], ["b/c/d"]),
        ("a,b", ["a,b"], ["a", "b"]),
        ("[!a]*.md", ["b.md"], ["a.md"]),
        ("x[!a]y", ["xby"], ["x/y", "xay"]),
        ("[]a^-]", ["]", "a", "^", "-"], ["b"]),
        ("[a-c]?", ["b1"], ["d1", "b", "b/"]),
        ("[é.]", ["é", "."], ["e", "x"]),
        ("\\*", ["*", "d/*"], ["a"]),
        ("a.b+c(d)|e", ["a.b+c(d)|e"], ["axb+c(d)|e"]),
        ("./runbooks//x", ["runbooks/x"], ["x"]),
        ("", ["a", "a/b"], []),
        (".", ["a", "a/b"], []),
        ("**", ["a", "a/b\nc"], []),
    ],
)
def test_a_glob_fits_what_its_description_says(glob: str, fits: list[str], does_not: list[str]) -> None:
    compiled = compile_glob(glob)
    assert [path for path in fits if not compiled.fits(path)] == []
    assert [path for path in does_not if compiled.fits(path)] == []


@pytest.mark.parametrize(
    ("glob", "message"),
    [
        ("[", "is malformed: '[' without ']'"),
        ("a/[b", "is malformed: '[' without ']'"),
        ("{a", "is malformed: '{' without '}'"),
        ("a}{b", "is malformed: '}' without '{'"),
        ("[z-a]", "is malformed: invalid character class range: z-a"),
        ("x" * 501, "is longer than 500 characters"),
    ],
)
def test_a_malformed_glob_says_what_is_wrong(glob: str, message: str) -> None:
    with pytest.raises(GlobError) as error:
        compile_glob(glob)
    assert str(error.value) == message


async def test_a_malformed_glob_is_denied(context: OpsContext) -> None:
    reply = await search(context, "x", "logs/[a")
    assert (reply.verdict, reply.reading.reason) == (
        "search.glob",
        "the glob 'logs/[a' is malformed: '[' without ']'",
    )


def test_a_glob_of_many_stars_matches_in_linear_time() -> None:
    glob = compile_glob("*a" * 200 + "b")
    start = time.process_time()
    assert not glob.fits("a" * 4000)
    assert time.process_time() - start < 1
