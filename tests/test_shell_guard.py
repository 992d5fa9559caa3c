"""What may run and what may not, beyond the corpus: operands, globs, recursion, patterns, formats, dates, programs."""

import os
import re
import shlex
from pathlib import Path

import pytest
from shelllab import (
    OUTSIDE,
    SECRET,
    build_lab,
    commands,
    judge,
    lines,
    needs_gnu,
    plan_of,
    shell,
    shown,
    unguarded,
    witness,
)

from mcp_ops.gate import Denied, Refuse, State
from mcp_ops.ops.guards.shell import PROGRAMS, RULES, expansion, tree
from mcp_ops.ops.guards.shell.regex import BASIC, EITHER, EXTENDED, Dialect, check_regex, count_states
from mcp_ops.ops.guards.shell.values import check_date, check_format
from mcp_ops.ops.rules import PATH_RULES

pytestmark = needs_gnu


@pytest.fixture(scope="module")
def ws(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_lab(tmp_path_factory.mktemp("guard"))


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A workspace of one's own."""
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


COMMANDS = list(commands())
ANY_RULE = {rule.name for rule in (*RULES, *PATH_RULES)}


@pytest.mark.covers("A4", "A7", "A8", "A9", "A12")
@pytest.mark.parametrize(("rule", "command"), COMMANDS)
def test_a_command_is_allowed_or_denied_by_its_rule(rule: str, command: str, ws: Path) -> None:
    answer = judge(ws, command)
    assert answer not in ANY_RULE if rule == "allowed" else answer == rule


def test_each_rule_of_the_shell_denies_something() -> None:
    tested = {rule for rule, _ in COMMANDS} | {"shell.length", "shell.encoding", "shell.quoting", "shell.recursion"}
    assert {rule.name for rule in RULES if rule.state is State.DENIED} <= tested


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("egrep 'a|b' f", "grep -E"),
        ("sed -n 1,5p f", "head or tail"),
        ("kubectl get pods", "kubectl_get"),
        ("cd logs", "always the workspace"),
        ("rg foo", "grep -rn"),
        ("rm x", "Nothing can be changed"),
        ("sudo cat x", "by its own name"),
        ("cat", "cat FILE"),
        ("uniq a b", "uniq FILE"),
        ("date 0101", "-d"),
        ("find . -type f *.md", "quote a pattern"),
        ("grep x", "grep PATTERN FILE"),
        ("grep -R x .", "grep -r"),
        ("sort -t$'\\t' -k2 f", "the character itself"),
    ],
)
def test_a_denial_says_what_is_possible(command: str, hint: str, ws: Path) -> None:
    with pytest.raises(Denied) as denied:
        plan_of(ws, command)
    assert hint in denied.value.hint


# Globs


@pytest.mark.covers("A4", "A12")
@pytest.mark.parametrize(
    ("pattern", "names", "left_out"),
    [
        ("runbooks/*.md", ["dns.md", "on call.md", "restart.md", "secrets-rotation.md"], 0),
        ("./runbooks/d*", ["dns.md"], 0),
        ("run*/re*.md", ["restart.md"], 0),
        ("*/restart.md", ["restart.md"], 0),
        ("logs/app.log*", ["app.log", "app.log.1"], 0),
        ("logs/app.log.[0-9]", ["app.log.1"], 0),
        ("logs/app.log.[[:digit:]]", ["app.log.1"], 0),
        ("logs/app.log.[^[:alpha:]_]", ["app.log.1"], 0),
        ("logs/app.log.[!0-8]", [], None),
        ("glob/*", ["--output=stolen.txt", "-o", "-ob.txt", "a.txt", "b.txt"], 0),
        ("deep/*/*/*/*.md", ["x.md"], 0),
        ("k8s/*.yaml", ["deploy.yaml", "kustomization.yaml", "web.yaml"], 1),
        ("id_rsa*", ["id_rsa.pub"], 1),
        ("link_*", ["link_ok"], 3),
        ("'runbooks/on call'*", ["on call.md"], 0),
        ("runbooks/'*'.md", [], None),
    ],
)
def test_a_glob_stands_for_the_names_that_may_be_read(
    pattern: str, names: list[str], left_out: int | None, ws: Path
) -> None:
    if left_out is None:
        assert judge(ws, f"wc -l {pattern}") in ("shell.glob", shlex.join(["wc", "-l", "--", shlex.split(pattern)[0]]))
        return
    plan = plan_of(ws, f"wc -l {pattern}")
    files = plan.arguments[plan.arguments.index("--") + 1 :]
    assert [file.rpartition("/")[2] for file in files] == names
    assert all(file.startswith("./") for file in files)
    assert plan.left_out == left_out


@pytest.mark.covers("A4")
async def test_a_file_that_is_named_like_an_option_stays_a_file(ws: Path) -> None:
    before = witness(ws)
    reply = await shell(ws, "sort glob/*")
    assert reply.text == "a\nb\nzz\n"
    assert witness(ws) == before


def test_hidden_names_need_a_dot_in_the_glob(empty: Path) -> None:
    for name in (".hidden", "plain"):
        (empty / name).touch()
    assert judge(empty, "ls *") == "ls -- ./plain"
    assert judge(empty, "ls .h*") == "ls -- ./.hidden"


def test_a_glob_that_fits_too_much_is_refused(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "MAX_FITTING", 3)
    for number in (1, 10, 11, 2):
        (empty / f"f{number}").touch()
    assert judge(empty, "ls f*") == "shell.glob"
    assert judge(empty, "ls f1*") == "ls -- ./f1 ./f10 ./f11"


def test_a_glob_whose_names_are_too_many_to_compare_is_refused(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "MAX_READ", 5)
    for folder in "abc":
        (empty / folder).mkdir()
        (empty / folder / "f").touch()
    assert judge(empty, "ls */nosuch*") == "shell.glob"
    assert judge(empty, "ls a/*") == "ls -- ./a/f"


async def test_a_glob_that_fits_nothing_stands_for_the_file_of_that_name(empty: Path) -> None:
    """Web frameworks name folders `[id]`, and nobody quotes them."""
    (empty / "app/[id]").mkdir(parents=True)
    (empty / "app/[id]/page.ts").write_text("page\n")
    (empty / "[x].env").write_text(SECRET)
    (empty / "[o]ut").symlink_to("..")
    assert (await shell(empty, "cat app/[id]/page.ts")).text == "page\n"
    assert judge(empty, "find app/[id] -type f") == "find 'app/[id]' -type f"
    assert judge(empty, "cat [x].env") == "path.secret"
    assert judge(empty, "ls [o]ut") == "shell.glob"
    (empty / "app/i").mkdir()
    assert judge(empty, "ls app/[id]") == "ls -- ./app/i"


async def test_what_a_glob_leaves_out_is_said(ws: Path) -> None:
    reply = await shell(ws, "wc -c id_rsa*")
    assert reply.text.startswith("27 ./id_rsa.pub\n[left out: 1 names withheld")
    assert reply.structured["left_out"] == 1


def test_a_name_that_is_no_utf_8_can_be_reached_by_a_glob(ws: Path) -> None:
    plan = plan_of(ws, "wc -c bad*")
    assert os.fsencode(plan.arguments[-1]) == b"./bad\xff\xfeutf8"


# Recursion


def searched(ws: Path, command: str, **policy: bool) -> list[str]:
    """The files that a recursion reads."""
    arguments = plan_of(ws, command, **policy).arguments
    return list(arguments[arguments.index("--") + 2 :])


@pytest.mark.covers("A12", "A7")
def test_a_recursion_reads_neither_secrets_nor_hard_links_nor_links_nor_devices(ws: Path) -> None:
    files = searched(ws, "grep -r x .")
    assert "./runbooks/restart.md" in files
    assert "./runbooks/secrets-rotation.md" in files
    assert "./-n" in files
    names = {file.rpartition("/")[2] for file in files}
    assert not names & {
        ".env",
        ".ENV",
        ".env.local",
        "prod.env",
        "staging.env",
        "tls.key",
        "tls.pem",
        "id_rsa",
        "secrets.yaml",
    }
    assert not names & {
        "hardlink.txt",
        "link_file",
        "link_ok",
        "innocent.txt",
        "link_passwd",
        "fifo",
        "credentials.json",
    }


@pytest.mark.covers("A7")
async def test_a_recursion_does_not_print_a_hard_linked_file(ws: Path) -> None:
    reply = await shell(ws, "grep -ra CANARY .")
    assert OUTSIDE not in reply.text
    assert SECRET not in reply.text
    allowed = await shell(ws, "grep -ra CANARY .", allow_hardlinks=True)
    assert OUTSIDE in allowed.text
    assert SECRET not in allowed.text


@pytest.mark.covers("A4")
@pytest.mark.parametrize(
    "command",
    [
        "grep -rn timeout runbooks",
        "grep -rn timeout runbooks/",
        "grep -rn timeout runbooks logs",
        "grep -rn timeout runbooks data/words.txt",
        "grep -rhi timeout runbooks",
        "grep -rc timeout runbooks",
        "grep -rl timeout runbooks",
        "grep -rL timeout runbooks",
        "grep -ro 'time[a-z]*' runbooks --include=*.md",
        "grep -rn timeout runbooks --exclude='d*.md'",
        "grep -rn replicas . --include=*.yaml",
        "grep -r deep . --exclude-dir=deep --include=x.md",
        "grep -rn deep deep --exclude-dir=b",
        "grep -r timeout runbooks/dns.md",
        "grep -rn 'rollout status'",
        "grep -d recurse -n timeout runbooks",
        "grep -d skip timeout runbooks",
        "grep -rd skip timeout runbooks",
        "grep -r -c nosuch deep",
    ],
)
async def test_a_recursion_prints_what_grep_prints(command: str, ws: Path) -> None:
    reply = await shell(ws, command)
    code, output = unguarded(ws, shlex.split(command))
    assert reply.reading.exit_code == code
    assert sorted(shown(reply).splitlines()) == sorted(output.decode("utf-8", "replace").splitlines())


@pytest.mark.covers("A12")
def test_below_a_folder_of_secrets_there_is_nothing_to_read(ws: Path, empty: Path) -> None:
    assert judge(ws, "grep -r x certs") == "path.secret"
    (empty / "a").write_text("x")
    os.link(empty / "a", empty / "b")
    assert judge(empty, "grep -r x .") == "path.hardlink"
    (empty / "void").mkdir()
    assert judge(empty, "grep -r x void") == "grep --devices=skip --directories=skip -- x void"


@pytest.mark.covers("A12")
@pytest.mark.parametrize(
    "option", ["./config", "{config,x}", "config", "config/", "con[!x]ig", "con[[:alpha:]]ig", "**"]
)
async def test_grep_never_walks_by_itself_whatever_its_globs_leave_out(option: str, empty: Path) -> None:
    """A glob that leaves out more to us than to grep must not leave the folder to grep."""
    (empty / "app/config").mkdir(parents=True)
    (empty / "app/config/.env").write_text(f"PASSWORD={SECRET}\n")
    reply = await shell(empty, f"grep -r '--exclude-dir={option}' PASSWORD app")
    assert SECRET not in reply.text
    assert reply.verdict in ("executed", "path.secret")
    assert "-r" not in judge(empty, f"grep -r '--exclude-dir={option}' PASSWORD app").split()


async def test_a_recursion_below_which_nothing_lies_finds_nothing(empty: Path) -> None:
    for command in ("grep -r x", "grep -rc x .", "grep -rL x ."):
        reply = await shell(empty, command)
        assert (reply.text, reply.reading.exit_code) == ("[no output, exit code 1]", 1)


def test_a_recursion_over_too_many_files_is_refused(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MAX_ENTRIES", 10)
    for folder in "abc":
        (empty / folder).mkdir()
        for number in range(4):
            (empty / folder / str(number)).touch()
    assert judge(empty, "grep -r x .") == "shell.recursion"
    assert judge(empty, "grep -r x a b c") == "shell.recursion"
    assert judge(empty, "grep -r x a b").startswith("grep ")
    assert judge(empty, "grep -r x . --exclude-dir='[ab]'").startswith("grep ")


def test_a_recursion_over_names_longer_than_arguments_may_be_is_refused(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "MAX_ARGUMENT_BYTES", 20)
    (empty / "a-long-name-of-a-file").touch()
    assert judge(empty, "grep -r x .") == "shell.recursion"


def test_a_recursion_over_too_many_levels_is_refused(empty: Path) -> None:
    folder = empty
    for _ in range(102):
        folder /= "d"
        folder.mkdir()
    assert judge(empty, "grep -r x .") == "shell.recursion"


# Patterns, formats, dates


@pytest.mark.parametrize(
    ("pattern", "dialect", "states"),
    [
        ("abc", BASIC, 0),
        ("x{1,2000}", EXTENDED, 1999),
        ("x{1,2000}", BASIC, 1),
        (r"x\{1,2000\}", BASIC, 1999),
        (r"x\{1,2000\}", EXTENDED, 1),
        ("x{2000,}", EXTENDED, 250),
        ("x{,5}", EXTENDED, 5),
        ("(ab){1,3}", EXTENDED, 4),
        ("(a|b){1,9}", EXTENDED, 16),
        (r"\(a\|b\)\{1,9\}", BASIC, 16),
        ("((a{1,10}){1,10}){1,10}", EXTENDED, 1000),
        ("(a?){10}", EXTENDED, 10),
        ("[{](a){2,4}", EXTENDED, 2),
        ("[]{1,9}]{1,3}", EXTENDED, 2),
        ("[[:digit:]]{1,3}", EXTENDED, 2),
        ("[^]]{1,3}", EXTENDED, 2),
        (".{1,3}", EXTENDED, 17),
        ("{abc}{", EXTENDED, 0),
        ("(((", EXTENDED, 0),
        (")))a{1,3}", EXTENDED, 2),
        ("[abc", EXTENDED, 0),
        (r"a{1,3}\{1,3\}", EITHER, 9),
    ],
)
def test_states_of_a_pattern_are_counted(pattern: str, dialect: Dialect, states: int) -> None:
    assert count_states(pattern, dialect) == states


@pytest.mark.parametrize("pattern", [r"\1", r"a\9", r"[a]\1", r"\\\1", r"x{2}\2"])
def test_a_back_reference_is_seen(pattern: str) -> None:
    with pytest.raises(Denied, match="back-reference"):
        check_regex(pattern, BASIC, 4096, Refuse())


@pytest.mark.parametrize("pattern", [r"\\1", r"[\1]", r"\0", r"\w\b1", "1", r"[]\1]", "[[:alpha:]\\1]"])
def test_what_only_resembles_a_back_reference_is_none(pattern: str) -> None:
    check_regex(pattern, BASIC, 4096, Refuse())


@pytest.mark.parametrize(
    "text", ["%F", "%10Y", "%9999Y", "%%99999", "12345%Y", "%s%3N", "%-d", "100%", "%", "%A@ 12345"]
)
def test_a_narrow_format_is_allowed(text: str) -> None:
    check_format(text, Refuse())


@pytest.mark.parametrize(
    "text", ["%10000Y", "%-_99999d", "%%%12345n", "x%.00001Y", "%#12345x", "%12345", "%E99999Y".replace("E", "")]
)
def test_a_wide_format_is_refused(text: str) -> None:
    with pytest.raises(Denied):
        check_format(text, Refuse())


@pytest.mark.parametrize(
    "text", ["now", 'TZ="UTC" now', 'TZ="Asia/Tokyo" 09:00', '  TZ="EST5EDT" x', "next tz", 'TZ="Etc/GMT+3" 1']
)
def test_a_date_with_a_plain_zone_is_allowed(text: str) -> None:
    check_date(text, Refuse())


# Rules switched off


@pytest.mark.parametrize(
    "rule", [rule for rule in (*RULES, *PATH_RULES) if rule.state is State.DENIED], ids=lambda rule: rule.name
)
def test_with_a_rule_switched_off_the_guard_keeps_its_senses(rule: object, ws: Path) -> None:
    """Nothing is run here: what an unguarded line would do is known."""
    name = getattr(rule, "name", "")
    answers = {line["id"]: judge(ws, line["command"], name) for line in lines("shell.jsonl")}
    assert name not in answers.values()
    denied = [answer for answer in answers.values() if re.fullmatch(r"[a-z]+\.[a-z_]+", answer)]
    assert len(denied) > 80
    assert all(judge(ws, command, name) != name for rule, command in COMMANDS if rule == name)


@pytest.mark.parametrize(
    ("command", "off", "arguments"),
    [
        ("sort -o x data/hosts.txt", "shell.option", "--output=x -- data/hosts.txt"),
        ("find . -delete", "shell.option", "-delete"),
        ("find . -exec ls '{}' +", "shell.option", "-exec ls '{}' +"),
        ("ls --nosuch", "shell.option", "--nosuch"),
        ("cat .env", "path.secret", ".env"),
        ("cat ../outside/sub/deep.md", "path.outside", "../outside/sub/deep.md"),
        ("uniq data/hosts.txt out", "shell.operand", "data/hosts.txt out"),
        ("cat fifo", "path.special", "fifo"),
        ("cat *.nosuch", "shell.glob", "'*.nosuch'"),
        ("date +%99999Y", "shell.width", "+%99999Y"),
        ("grep -r CANARY certs", "path.secret", "certs/tls.key certs/tls.pem"),
        ("grep -r CANARY hardlink.txt", "path.hardlink", "hardlink.txt"),
    ],
)
def test_what_a_switched_off_rule_refused_reaches_the_program(command: str, off: str, arguments: str, ws: Path) -> None:
    assert judge(ws, command, off).endswith(arguments)


def test_every_program_is_one_of_the_twelve() -> None:
    assert " ".join(sorted(PROGRAMS)) == "cat date du find grep head ls sort stat tail uniq wc"
