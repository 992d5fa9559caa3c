"""What `run_shell` answers, and the cases of the shell's engine and of secret names, each by its id."""

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from calls import Reply, ask
from shelllab import SECRET, build_lab, judge, lines, needs_gnu, shell, witness

from mcp_ops.gate import MAX_REPLY_BYTES
from mcp_ops.ops.context import OpsContext
from mcp_ops.ops.guards.shell import ShellPlan
from mcp_ops.ops.guards.shell.rules import SHELL_UNAVAILABLE
from mcp_ops.ops.tools import gnu, run_shell
from mcp_ops.ops.tools.child import Limits
from mcp_ops.ops.tools.run_shell import RUN_SHELL
from mcp_ops.ops.workspace import Workspace

pytestmark = needs_gnu

Case = Callable[[Path], Awaitable[None]]

CASES: dict[str, Case] = {}
ANSWERED_ELSEWHERE: dict[str, str] = {}
"""None: every case of the two areas is run here."""


def case(*ids: str) -> Callable[[Case], Case]:
    """Answer the cases `ids` with a coroutine that gets the lab's workspace."""

    def answer(run: Case) -> Case:
        CASES.update(dict.fromkeys(ids, run))
        return run

    return answer


@pytest.fixture(scope="module")
def ws(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_lab(tmp_path_factory.mktemp("cases"))


def verdicts(ws: Path, commands: list[str]) -> list[str]:
    return [judge(ws, command) for command in commands]


@case("shell-engine-001")
async def no_child_reads_the_protocol_stream(ws: Path) -> None:
    assert verdicts(ws, ["cat", "cat -", "head", "grep x", "sort", "uniq", "wc -l"]) == ["shell.stdin"] * 7
    reply = await ask(RUN_SHELL, OpsContext(Workspace(ws)), {"command": "cat -n"}, off=["shell.stdin"])
    assert reply.text == "[no output, exit code 0]"


@case("shell-engine-002")
async def a_flood_is_cut_while_it_is_read(ws: Path) -> None:
    reply = await ask(RUN_SHELL, OpsContext(Workspace(ws)), {"command": "date +%999999999Y"}, off=["shell.width"])
    assert reply.reading.truncated
    assert reply.reading.exit_code is None
    assert len(reply.text.encode()) <= MAX_REPLY_BYTES
    assert "more than" in reply.text


@case("shell-engine-004")
async def a_name_that_is_no_utf_8_is_shown_all_the_same(ws: Path) -> None:
    reply = await shell(ws, "ls -N")
    assert "bad\ufffd\ufffdutf8" in reply.text


@case("shell-engine-005")
async def a_reply_is_cut_between_characters(ws: Path) -> None:
    folder = ws.parent / "cut" / "folder"
    folder.mkdir(parents=True)
    for number in range(60):
        (folder / f"{number:03}{'é' * 100}").touch()
    for shift in ("x", "xx"):
        (folder / shift).touch()
        reply = await shell(folder.parent, "ls -N folder")
        assert reply.reading.truncated
        assert "\ufffd" not in reply.text
        assert len(reply.text.encode()) <= MAX_REPLY_BYTES
        assert reply.reading.full_length == sum(len(os.fsencode(file.name)) + 1 for file in folder.iterdir())


@case("shell-engine-007")
async def a_hostile_environment_changes_nothing(ws: Path) -> None:
    hostile = {"LD_PRELOAD": "x.so", "TZ": "/fifo", "TMPDIR": "/elsewhere", "POSIXLY_CORRECT": "1"}
    hostile |= {"_POSIX2_VERSION": "199209", "LC_ALL": "C", "GREP_COLORS": "x", "KUBECONFIG": "x", "GITHUB_TOKEN": "t"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in hostile.items():
            patch.setenv(name, value)
        assert (await shell(ws, "sort data/hosts.txt -r")).text == "web-2\nweb-1\nweb-1\ndb-1\ndb-1\ndb-1\n"
        assert (await shell(ws, "date -d @0 +%Z")).text == "UTC\n"


@case("shell-engine-008")
async def a_program_of_the_workspace_is_never_run(ws: Path) -> None:
    before = witness(ws)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f".:{ws}:{ws / 'bin'}:")
        reply = await shell(ws, "cat data/words.txt")
    assert reply.text == "x o y\nz o a\n"
    assert witness(ws) == before
    assert verdicts(ws, ["./cat x", "bin/ls", "/usr/bin/cat x"]) == ["shell.binary"] * 3


@case("shell-engine-010")
async def a_bundle_that_ends_in_an_output_file_is_denied(ws: Path) -> None:
    assert judge(ws, "sort -nuout.txt data/hosts.txt") == "shell.option"


@case("shell-engine-011")
async def a_pattern_glued_to_its_option_is_no_option(ws: Path) -> None:
    assert (await shell(ws, "grep -ef data/words.txt")).reading.exit_code == 1


@case("shell-engine-012")
async def a_separator_glued_to_its_option_is_no_option(ws: Path) -> None:
    assert (await shell(ws, "sort -to -k1 data/words.txt")).reading.exit_code == 0


@case("shell-engine-015")
async def no_name_that_a_glob_fits_becomes_an_option(ws: Path) -> None:
    before = witness(ws)
    reply = await shell(ws / "glob", "sort *")
    assert reply.text == "a\nb\nzz\n"
    assert witness(ws) == before


@case("shell-engine-017")
async def a_command_that_cannot_be_parsed_is_denied(ws: Path) -> None:
    assert verdicts(ws, ["ls 'unterminated", 'ls "x', "ls x\\"]) == ["shell.quoting"] * 3


@case("shell-engine-019", "shell-engine-023", "shell-engine-026")
async def what_would_run_a_second_program_is_denied(ws: Path) -> None:
    commands = ["cat <(rm x)", "find . -name x -exec sh -c id \\;", " && ".join(["ls"] * 60) + " && rm x"]
    assert verdicts(ws, commands) == ["shell.syntax", "shell.option", "shell.syntax"]


@case("secret-name-001", "secret-name-002", "secret-name-003", "secret-name-005")
async def secret_names_are_refused_by_the_shell_too(ws: Path) -> None:
    folder = ws.parent / "names"
    secret = [".ENV", "prod.Env", "tls.KEY", "Credentials.json", "SECRETS.yaml", "staging.env.bak", "staging.env~"]
    secret += [
        "id_ed25519",
        ".netrc",
        ".pgpass",
        ".npmrc",
        ".git-credentials",
        "kubeconfig",
        "server.p12",
        "keystore.jks",
    ]
    secret += [".kube/config", "public.pem", "certs/ca.pem", "secrets/README.md"]
    harmless = [
        "env",
        "env.staging",
        ".docker/config.json",
        "aws_credentials",
        "token",
        "passwords.txt",
    ]
    harmless += ["runbooks/secrets-rotation.md", "docs/secret-management.md", "id_rsa.pub", ".env.example"]
    for name in (*secret, *harmless):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    assert verdicts(folder, [f"cat {name}" for name in secret]) == ["path.secret"] * len(secret)
    replies = [await shell(folder, f"cat {name}") for name in harmless]
    assert [reply.text for reply in replies] == harmless
    found = await shell(folder, "grep -rho . .")
    assert sorted(found.text.split("\n[")[0].replace("\n", "")) == sorted("".join(harmless))


@case("secret-name-008")
async def names_from_a_secret_file_do_not_come_back_as_errors(ws: Path) -> None:
    commands = ["wc --files0-from=secrets/staging.env", "date -f secrets/staging.env", "du --files0-from=.env"]
    commands += ["sort --files0-from=.env", "find -files0-from .env"]
    assert verdicts(ws, commands) == ["shell.option"] * 5
    for command in commands:
        reply = await ask(RUN_SHELL, OpsContext(Workspace(ws)), {"command": command}, off=["shell.option"])
        assert SECRET not in reply.text


@pytest.mark.covers("A4")
async def test_many_files_are_merged_without_a_temporary_one(ws: Path) -> None:
    reply = await shell(ws, "sort -m" + " data/hosts.txt" * 40)
    assert reply.reading.exit_code == 0
    assert reply.text.count("web-2") == 40


@pytest.mark.covers("A4", "A7", "A8", "A12", "A26")
@pytest.mark.parametrize("name", [line["id"] for line in lines("shell_cases.jsonl")])
async def test_a_case_is_answered(name: str, ws: Path) -> None:
    await CASES[name](ws)


def test_no_answer_is_without_a_case() -> None:
    assert CASES.keys() == {line["id"] for line in lines("shell_cases.jsonl")}


async def text_of(ws: Path, command: str) -> str:
    return (await shell(ws, command)).text


@pytest.mark.covers("A4")
@pytest.mark.parametrize(
    ("command", "text", "code"),
    [
        ("cat data/words.txt", "x o y\nz o a\n", 0),
        ("cat nonl.txt", "no newline", 0),
        ("cat nosuch", "[stderr]\ncat: nosuch: No such file or directory", 1),
        ("cat nonl.txt nosuch", "no newline\n[stderr]\ncat: nosuch: No such file or directory", 1),
        ("cat empty.txt", "[no output, exit code 0]", 0),
        ("grep nosuch data/words.txt", "[no output, exit code 1]", 1),
        ("cat runbooks", "[stderr]\ncat: runbooks: Is a directory", 1),
        (
            "ls nosuch runbooks/dns.md",
            "runbooks/dns.md\n[stderr]\nls: cannot access 'nosuch': No such file or directory",
            2,
        ),
    ],
)
async def test_a_reply_is_output_then_errors_whatever_the_exit_code(
    command: str, text: str, code: int, ws: Path
) -> None:
    reply = await shell(ws, command)
    assert reply.text == text
    assert reply.structured == {
        "state": "executed",
        "exit_code": code,
        "left_out": 0,
        "truncated": False,
        "full_length": reply.structured["full_length"],
    }


@pytest.mark.covers("A4")
async def test_a_long_reply_says_how_long_it_would_be(ws: Path) -> None:
    reply = await shell(ws, "cat big.txt")
    assert len(reply.text.encode()) <= MAX_REPLY_BYTES
    assert reply.text.startswith("1 padding padding\n2 padding")
    assert reply.text.endswith("of 6788895 bytes; ask for less]")
    assert (reply.reading.truncated, reply.reading.full_length, reply.reading.exit_code) == (True, 6788895, 0)


async def test_errors_are_shown_behind_a_long_output(ws: Path) -> None:
    reply = await shell(ws, "cat big.txt nosuch")
    assert reply.text.endswith("bytes; ask for less]\n[stderr]\ncat: nosuch: No such file or directory")
    assert len(reply.text.encode()) <= MAX_REPLY_BYTES


@pytest.mark.covers("A26")
@pytest.mark.parametrize(
    "command", ["cat ansi.txt", "ls -N", "ls --hyperlink=always runbooks", "grep --color=always x data/words.txt"]
)
async def test_nothing_in_a_reply_acts_on_a_terminal(command: str, ws: Path) -> None:
    reply = await shell(ws, command)
    said = json.dumps(reply.structured) + reply.text
    assert not set(said) & {chr(code) for code in (*range(9), *range(11, 32), 127, *range(128, 160))}


@pytest.mark.covers("A12")
async def test_what_looks_like_a_credential_in_an_error_is_hidden(ws: Path) -> None:
    reply = await shell(ws, "cat 'DB_PASSWORD=hunter2-Qx81vv'")
    assert "No such file" in reply.text
    assert "hunter2" not in reply.text


@pytest.mark.covers("A4")
async def test_a_program_that_takes_too_long_fails(ws: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_shell, "LIMITS", Limits(seconds=0.2))
    reply = await shell(ws, "wc -m sparse.img")
    assert reply.verdict == "time.limit"
    assert reply.text == "time_limit: wc did not finish within 0.2 seconds"


@pytest.mark.covers("A4")
async def test_a_program_that_a_signal_ends_fails(ws: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_shell, "LIMITS", Limits(memory_bytes=100_000))
    reply = await shell(ws, "cat data/words.txt")
    assert reply.verdict == "shell.killed"
    assert reply.reading.state == "failed"


@pytest.mark.covers("A4")
async def test_a_program_that_is_not_gnu_is_unavailable(
    ws: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ls").write_text("#!/bin/sh\necho 'ls: illegal option -- -' >&2\nexit 1\n")
    (tmp_path / "ls").chmod(0o755)
    monkeypatch.setattr(gnu, "trusted_program", lambda name: tmp_path / name)
    monkeypatch.setattr(gnu, "_asked", {})
    reply = await shell(ws, "ls")
    assert (reply.reading.state, reply.verdict) == ("unavailable", "shell.unavailable")
    assert reply.text == "shell_unavailable: ls cannot run: ls on this machine is not from GNU coreutils"
    assert (await shell(ws, "ls -L")).verdict == "shell.option"


async def test_a_program_without_a_table_does_not_run_even_if_its_rule_is_switched_off(ws: Path) -> None:
    before = witness(ws)
    for command in ("rm data/words.txt", "./evil.sh", "''", ""):
        reply: Reply = await ask(RUN_SHELL, OpsContext(Workspace(ws)), {"command": command}, off=["shell.binary"])
        assert reply.verdict == SHELL_UNAVAILABLE.name
    assert witness(ws) == before


@pytest.mark.covers("A4")
@pytest.mark.parametrize(
    "arguments", [{}, {"command": 1}, {"command": "ls", "cwd": "/"}, {"command": None}, {"command": ["ls"]}]
)
async def test_other_arguments_are_denied(arguments: dict[str, object], ws: Path) -> None:
    assert (await ask(RUN_SHELL, OpsContext(Workspace(ws)), arguments)).verdict == "args.invalid"


def test_a_plan_is_all_that_the_runner_gets(ws: Path) -> None:
    assert RUN_SHELL.definition.annotations is not None
    assert RUN_SHELL.definition.annotations.read_only_hint is True
    assert ShellPlan("ls", ()) == ShellPlan("ls", (), 0)
