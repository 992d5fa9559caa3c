"""Every line of the corpus, run through `run_shell` with eyes on the world."""

import asyncio
import shlex
from pathlib import Path
from typing import Any

import pytest
from shelllab import build_lab, lines, needs_gnu, shell, shown, unguarded, witness

from mcp_ops.gate import MAX_REPLY_BYTES
from mcp_ops.ops.tools import run_shell
from mcp_ops.ops.tools.child import Limits
from mcp_ops.text import clean

CORPUS = lines("shell.jsonl")

DECIDED_OTHERWISE = {
    "secret-by-recursion-009": "a recursion leaves secret files out and says so; the rest is searched",
    "secret-by-recursion-010": "a recursion leaves secret files out and says so; the rest is searched",
    "secret-by-recursion-011": "a recursion leaves secret files out and says so; the rest is searched",
    "secret-by-recursion-012": "a recursion leaves secret files out: -l names none of them",
    "secret-operand-038": "a public key is no secret",
    "hang-or-flood-029": "tail reads large files in part; its deadline ends what takes too long",
    "unicode-or-encoding-009": "there is no file of that name, and nothing is normalised: the program says so",
    "glob-brace-tilde-006": "braces are shell syntax; the hint says to name each file",
    "glob-brace-tilde-009": "globs are expanded with ./ in front, so that no name becomes an option",
}
"""Lines that are no strict ones and where the design decides against the corpus."""

ANSWER_VARIES = {"legit-123", "legit-128", "legit-131", "legit-126", "legit-134"}
"""The time of day, and help texts that name the program by its path."""

pytestmark = needs_gnu


@pytest.fixture(scope="module")
def ws(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_lab(tmp_path_factory.mktemp("corpus"))


@pytest.mark.covers("A4", "A7", "A8", "A9", "A12")
@pytest.mark.parametrize("line", CORPUS, ids=[line["id"] for line in CORPUS])
async def test_a_command_gets_its_verdict_shows_no_secret_and_changes_nothing(
    line: dict[str, Any], ws: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if line["id"] == "hang-or-flood-029":
        monkeypatch.setattr(run_shell, "LIMITS", Limits(seconds=1))
    before = witness(ws)
    async with asyncio.timeout(10):
        reply = await shell(ws, line["command"])
    said = reply.text + str(reply.structured)
    assert witness(ws) == before
    assert not [text for text in line.get("forbid_output", ()) if text in said]
    assert len(reply.text.encode()) <= MAX_REPLY_BYTES
    denied = reply.reading.state == "denied"
    assert denied is ((line["expect"] == "deny") ^ (line["id"] in DECIDED_OTHERWISE)), reply.text
    assert not denied or reply.reading.rule != "guard.error"
    assert not denied or (reply.reading.reason and reply.reading.hint)


@pytest.mark.covers("A4")
@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, id=line["id"])
        for line in CORPUS
        if line["class"].startswith("legit") and line["expect"] == "allow" and line["id"] not in ANSWER_VARIES
    ],
)
async def test_an_allowed_command_says_what_it_says_without_a_guard(line: dict[str, Any], ws: Path) -> None:
    reply = await shell(ws, line["command"])
    code, output = unguarded(ws, shlex.split(line["command"]))
    expected = clean(output.decode("utf-8", "replace"))
    assert reply.reading.exit_code == code
    if reply.reading.truncated:
        assert expected.startswith(shown(reply).rstrip("\n"))
    else:
        assert sorted(shown(reply).splitlines()) == sorted(expected.splitlines())


def test_only_lines_that_leave_a_choice_are_decided_otherwise() -> None:
    strict = {line["id"] for line in CORPUS if line["strict"]}
    assert not strict & DECIDED_OTHERWISE.keys()
    assert DECIDED_OTHERWISE.keys() <= {line["id"] for line in CORPUS}


def test_a_child_is_stopped_early_enough_for_the_reply() -> None:
    assert run_shell.LIMITS.seconds < 10
