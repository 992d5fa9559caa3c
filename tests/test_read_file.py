import os
from pathlib import Path

import pytest
from calls import OUTSIDE, ask, context_of, make_lab

from mcp_ops.gate import MAX_REPLY_BYTES
from mcp_ops.ops.context import OpsContext
from mcp_ops.ops.tools.read_file import READ_FILE

MEGABYTE = 1024 * 1024


@pytest.fixture
def context(tmp_path: Path) -> OpsContext:
    return context_of(make_lab(tmp_path))


async def text_of(context: OpsContext, content: bytes, **arguments: int) -> str:
    (context.workspace.root / "f.txt").write_bytes(content)
    reply = await ask(READ_FILE, context, {"path": "f.txt", **arguments})
    assert reply.verdict == "executed"
    return reply.text


@pytest.mark.covers("A3")
@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"one\ntwo\n", "one\ntwo"),
        (b"no newline", "no newline"),
        (b"", "[the file is empty]"),
        (b"\n\n", "\n"),
        (b"\xef\xbb\xbfwith a BOM\r\nand CRLF\r\n", "with a BOM\nand CRLF"),
        (b"caf\xe9\n", "caf\ufffd"),
        ("é\u2028x\x0by\x0cz\x85w\n".encode(), "é<U+2028>x<U+000B>y<U+000C>z<U+0085>w"),
        (b"red \x1b[31m\x1b]0;title\x07x\n", "red x"),
        ("a\u202eb\U000e0041".encode(), "a<U+202E>b"),
    ],
)
async def test_a_text_file_comes_back_as_clean_lines(context: OpsContext, content: bytes, text: str) -> None:
    assert await text_of(context, content) == text


@pytest.mark.covers("A3")
async def test_lines_end_at_lf_only_so_that_their_numbers_are_those_of_every_other_tool(context: OpsContext) -> None:
    content = "a\u2028b\x0bc\x85d\nsecond\nthird\n".encode()
    assert (await text_of(context, content, max_lines=2)).startswith(
        "a<U+2028>b<U+000B>c<U+0085>d\nsecond\n[lines 1-2 of 3"
    )


@pytest.mark.covers("A3")
async def test_120_lines_are_shown_by_default_and_the_reply_says_how_to_go_on(context: OpsContext) -> None:
    reply = await ask(READ_FILE, context, {"path": "logs/app.log"})
    lines = reply.text.split("\n")
    assert lines[119] == "line 120 timeout"
    assert lines[120:] == ["[lines 1-120 of 300; go on with run_shell: tail -n +121 logs/app.log]"]
    assert reply.structured["truncated"] is True
    assert reply.structured["lines"] == 300


async def test_the_hint_for_the_rest_is_a_command_that_can_be_typed(context: OpsContext) -> None:
    (context.workspace.root / "on call.md").write_text("a\nb\n")
    reply = await ask(READ_FILE, context, {"path": "on call.md", "max_lines": 1})
    assert reply.text == "a\n[lines 1-1 of 2; go on with run_shell: tail -n +2 'on call.md']"


@pytest.mark.covers("A3")
async def test_the_reply_keeps_whole_lines_within_its_limit(context: OpsContext) -> None:
    text = await text_of(context, b"x" * 99 + b"\n" + b"y" * 999 + b"\n" * 500 + b"z" * 9000, max_lines=2000)
    assert len(text.encode()) <= MAX_REPLY_BYTES
    assert text.endswith("[lines 1-501 of 502; go on with run_shell: tail -n +502 f.txt]")


@pytest.mark.covers("A3")
async def test_one_endless_line_is_cut_on_a_character_and_the_cut_is_said(context: OpsContext) -> None:
    text = await text_of(context, "é".encode() * MEGABYTE)
    shown, note = text.split("\n")
    assert set(shown) == {"é"}
    assert len(text.encode()) <= MAX_REPLY_BYTES
    assert note == f"[the first {len(shown)} characters of line 1 of 1; search_files finds what is further on]"


async def test_what_grows_by_cleaning_still_fits(context: OpsContext) -> None:
    text = await text_of(context, b"\x01\x02\xff" * 2000 + b"\n" + b"\x01" * 5000 + b"\n")
    assert len(text.encode()) <= MAX_REPLY_BYTES
    assert text.endswith("search_files finds what is further on]")


@pytest.mark.covers("A3")
async def test_a_file_over_64_mb_is_read_in_part_and_its_lines_are_not_counted(context: OpsContext) -> None:
    big = context.workspace.root / "big.log"
    big.write_bytes(b"first\nsecond\n" + b"x\n" * SNIFFED)
    os.truncate(big, 65 * MEGABYTE)
    reply = await ask(READ_FILE, context, {"path": "big.log", "max_lines": 1})
    assert reply.text.startswith(f"first\n[lines 1-1 of a file of {65 * MEGABYTE} bytes, too large to count its lines;")
    assert reply.structured["full_length"] == 65 * MEGABYTE
    assert reply.structured["lines"] is None


SNIFFED = 5000


@pytest.mark.covers("A3")
@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("bin.dat", "path.binary"),
        ("runbooks", "path.is_directory"),
        (".", "path.is_directory"),
        ("nothing.md", "path.not_found"),
        ("loop", "path.not_found"),
        ("dangling", "path.not_found"),
        ("runbooks/restart.md/", "path.not_found"),
        ("fifo", "path.special"),
        ("socket", "path.special"),
        ("hardlink.txt", "path.hardlink"),
        ("link_file", "path.outside"),
        ("/etc/passwd", "path.outside"),
        ("a\0b", "path.outside"),
        ("x" * 300, "args.invalid"),
        ("runbooks/" + "é" * 128, "args.invalid"),
        ("x" * 4096 + "/" * 100, "args.invalid"),
        ("./" * 3000 + "empty.txt", "args.invalid"),
    ],
)
async def test_what_is_no_readable_text_has_one_defined_answer(context: OpsContext, path: str, rule: str) -> None:
    reply = await ask(READ_FILE, context, {"path": path})
    assert reply.verdict == rule
    assert OUTSIDE not in reply.text


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("hello\n".encode("utf-16"), "'f.txt' is UTF-16 and not UTF-8, 14 bytes"),
        (b"text\0text", "'f.txt' is a binary file, 9 bytes"),
    ],
)
async def test_a_binary_answer_says_what_the_file_is(context: OpsContext, content: bytes, reason: str) -> None:
    (context.workspace.root / "f.txt").write_bytes(content)
    reply = await ask(READ_FILE, context, {"path": "f.txt"})
    assert (reply.verdict, reply.reading.reason) == ("path.binary", reason)
    assert reply.text == f"path_binary: {reason}"


@pytest.mark.covers("A16")
@pytest.mark.parametrize("max_lines", [0, -1, 1_000_000_000, "3", 3.5, 3.0, True, [], {"a": 1}])
async def test_a_line_count_that_is_no_integer_in_range_is_an_invalid_argument(
    context: OpsContext, max_lines: object
) -> None:
    reply = await ask(READ_FILE, context, {"path": "runbooks/restart.md", "max_lines": max_lines})
    assert reply.verdict == "args.invalid"
    assert reply.text.startswith("GUARD DENIED: 'max_lines': ")


@pytest.mark.covers("A16")
async def test_null_for_the_optional_line_count_means_the_default(context: OpsContext) -> None:
    reply = await ask(READ_FILE, context, {"path": "logs/app.log", "max_lines": None})
    assert "[lines 1-120 of 300;" in reply.text


async def test_a_file_that_is_called_like_a_flag_is_a_file(context: OpsContext) -> None:
    (context.workspace.root / "--output=x").write_text("just a name\n")
    assert (await ask(READ_FILE, context, {"path": "--output=x"})).text == "just a name"


async def test_a_file_changed_into_a_fifo_after_the_guard_is_refused_and_not_waited_for(context: OpsContext) -> None:
    from mcp_ops.gate import Denied, Refuse
    from mcp_ops.ops.tools.read_file import ReadPlan

    with pytest.raises(Denied, match="not a regular file"):
        await READ_FILE.run(ReadPlan("fifo", 1), context, Refuse())
