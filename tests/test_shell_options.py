"""The option tables against measured effects, against the programs' own help, and against the C library's getopt."""

import random
import re
import shlex
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from shelllab import build_lab, judge, lines, needs_gnu, plan_of, shell, shown, unguarded, witness

from mcp_ops.gate import Denied, Refuse
from mcp_ops.ops.guards.shell.getopt import parse
from mcp_ops.ops.guards.shell.options import Argument, Operands, Option, Program
from mcp_ops.ops.guards.shell.tables import PROGRAMS
from mcp_ops.ops.guards.shell.words import Word
from mcp_ops.text import clean

EFFECTS = lines("option_effects.jsonl")
BY_NAME = {f"{line['binary']} {line['option']}": line for line in EFFECTS}
ALLOWED = {name: line for name, line in BY_NAME.items() if line["verdict"] != "forbid"}
FORBIDDEN = {name: line for name, line in BY_NAME.items() if line["verdict"] == "forbid"}

REFUSED_ALL_THE_SAME = {
    "find -P": "measured behind a folder, where it is no option and find itself refuses it; in front it is allowed",
}
"""Options to allow whose measured command is refused."""

VARYING = re.compile(r"date |sort (-R|--random-sort)|stat (-f|--file-system)|.* (--?help|-V)$")
"""Options whose output tells the time or free space, is shuffled, or names the program by its path."""

pytestmark = needs_gnu


@pytest.fixture(scope="module")
def ws(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_lab(tmp_path_factory.mktemp("options"))


def argv_of(line: dict[str, Any]) -> list[str]:
    """The measured command, without the link that was there to see whether it is followed."""
    return [word for word in line["command"].split(" ") if word not in ("", "link_file", "link_dir")]


@pytest.mark.covers("A4")
@pytest.mark.parametrize("name", sorted(ALLOWED))
async def test_a_harmless_option_is_allowed_and_means_what_the_program_takes_it_for(name: str, ws: Path) -> None:
    argv = argv_of(ALLOWED[name])
    command = shlex.join(argv)
    if name in REFUSED_ALL_THE_SAME:
        assert judge(ws, command) == "shell.option"
        return
    reply = await shell(ws, command)
    code, output = unguarded(ws, argv)
    assert reply.reading.state == "executed", reply.text
    assert reply.reading.exit_code == code
    if not VARYING.match(name) and not reply.reading.truncated:
        assert sorted(shown(reply).splitlines()) == sorted(clean(output.decode("utf-8", "replace")).splitlines())


@cache
def help_of(program: str) -> tuple[frozenset[str], frozenset[str]]:
    """The letters and long names that the program on this machine tells of itself."""
    text = subprocess.run([program, "--help"], capture_output=True, text=True, env={"LANG": "C.UTF-8"}).stdout
    options = "\n".join(re.findall(r"^\s+(-.*?)(?:  |$)", text, re.MULTILINE))
    return frozenset(re.findall(r"(?<![\w-])-(\w)", options)), frozenset(re.findall(r"--([\w-]+)", options))


def spellings(program: str, option: str) -> list[list[str]]:
    """Every way to write a forbidden option: alone, bundled, glued, with a value, abbreviated, behind an operand."""
    file = "runbooks/dns.md"
    if program == "find":
        return [
            [option, ".", "x"],
            [".", option, "x"],
            [".", "-name", "y", "-o", option, "x"],
            [".", "(", option, "x", ")"],
        ]
    if not option.startswith("--"):
        letter = option[1]
        harmless = {"date": "u", "tail": "q", "stat": "t", "grep": "n", "du": "a", "ls": "l", "sort": "n"}[program]
        forms = [
            [f"-{letter}"],
            [f"-{letter}", "x"],
            [f"-{letter}x"],
            [f"-{harmless}{letter}"],
            [f"-{harmless}{letter}x"],
        ]
    else:
        known = help_of(program)[1]
        names = [option[2:end] for end in range(3, len(option) + 1)]
        names = [name for name in names if name == option[2:] or name not in known]
        forms = [[f"--{name}{rest}", *value] for name in names for rest, value in (("", ()), ("=x", ()), ("", ("x",)))]
    return [where for form in forms for where in ([*form, file], [file, *form])]


@pytest.mark.covers("A4", "A9")
@pytest.mark.parametrize("name", sorted(FORBIDDEN))
def test_a_forbidden_option_is_denied_in_every_spelling(name: str, ws: Path) -> None:
    program, option = name.split(" ")
    tried = spellings(program, option)
    assert len(tried) > 3
    for arguments in tried:
        command = shlex.join([program, *arguments])
        assert judge(ws, command) in ("shell.option", "path.outside"), command


@pytest.mark.parametrize("name", sorted(FORBIDDEN))
def test_the_measured_command_of_a_forbidden_option_is_denied(name: str, ws: Path) -> None:
    before = witness(ws)
    assert judge(ws, shlex.join(argv_of(FORBIDDEN[name]))) == "shell.option"
    assert witness(ws) == before


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "find"])
def test_a_table_knows_what_the_program_on_this_machine_knows(name: str) -> None:
    version = subprocess.run([name, "--version"], capture_output=True, text=True).stdout.partition("\n")[0]
    if not version.endswith((" 9.1", " 3.8")):
        pytest.skip(f"the tables were written for coreutils 9.1 and grep 3.8, and this is {version}")
    letters, names = help_of(name)
    assert names
    assert not names - PROGRAMS[name].by_name.keys()
    assert not letters - PROGRAMS[name].by_letter.keys() - set("0123456789N")


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_no_two_options_of_a_table_share_a_name(name: str) -> None:
    program = PROGRAMS[name]
    assert len(program.by_letter) == sum(len(option.letters) for option in program.options)
    assert len(program.by_name) == sum(len(option.names) for option in program.options)


def random_arguments(program: Program, dice: random.Random) -> list[str]:
    """Arguments that a program might get: bundles, glued values, abbreviations, operands, `--`."""
    value = dice.choice(["5", "x", "-x", "a=b", "=", "--help", "-"])
    words: list[str] = []
    for _ in range(dice.randrange(7)):
        option = dice.choice(program.options)
        if dice.random() < 0.3:
            words.append(dice.choice(["file", "-", "a b", "=", "x-y", ""]))
        elif option.names and (not option.letters or dice.random() < 0.5):
            words += _long(program, option, value, dice)
        else:
            bundle = [flag for flag in program.options if flag.letters and flag.argument is Argument.NONE]
            before = "".join(flag.letters[0] for flag in dice.sample(bundle, dice.randrange(3)))
            takes = option.argument is Argument.REQUIRED
            glued = dice.random() < 0.5 and option.argument is not Argument.NONE
            words.append(f"-{before}{option.letters[0]}{value if glued else ''}")
            words += [value] if takes and not glued else []
        if dice.random() < 0.05:
            words.append("--")
    return words


def _long(program: Program, option: Option, value: str, dice: random.Random) -> list[str]:
    full = dice.choice(option.names)
    name = full[: dice.randint(1, len(full))]
    fitting = [known for known in program.by_name if known.startswith(name)]
    name = name if len(fitting) == 1 else full
    if option.argument is Argument.NONE:
        return [f"--{name}"]
    if option.argument is Argument.OPTIONAL:
        return [dice.choice([f"--{name}", f"--{name}={value}"])]
    return dice.choice([[f"--{name}={value}"], [f"--{name}", value]])


def by_the_c_library(program: Program, arguments: list[str]) -> list[str]:
    """What glibc's getopt_long makes of the arguments, by the getopt(1) of util-linux."""
    colons = {Argument.NONE: "", Argument.REQUIRED: ":", Argument.OPTIONAL: "::"}
    letters = "".join(letter + colons[option.argument] for option in program.options for letter in option.letters)
    names = ",".join(name + colons[option.argument] for option in program.options for name in option.names)
    done = subprocess.run(
        ["getopt", "-o", letters, "-l", names, "--", *arguments], capture_output=True, text=True, check=True, env={}
    )
    return shlex.split(done.stdout)


def by_the_guard(program: Program, arguments: list[str]) -> list[str]:
    parsed = parse(program, [Word(argument) for argument in arguments], Refuse(frozenset({"shell.option"})))
    words: list[str] = []
    for given in parsed.options:
        words.append(given.spelling)
        if given.option.argument is not Argument.NONE:
            words.append(given.value or "")
    return [*words, "--", *(word.text for word in parsed.operands)]


@pytest.mark.covers("A4")
@pytest.mark.skipif(shutil.which("getopt") is None, reason="there is no getopt(1) to compare with")
@pytest.mark.parametrize("name", ["ls", "cat", "wc", "du", "stat", "sort", "date"])
def test_arguments_are_told_apart_as_the_c_library_does(name: str) -> None:
    dice = random.Random(name)
    for _ in range(40):
        arguments = random_arguments(PROGRAMS[name], dice)
        if name == "sort" and any(re.fullmatch(r"\+\d+", word) for word in arguments):
            continue
        assert by_the_guard(PROGRAMS[name], arguments) == by_the_c_library(PROGRAMS[name], arguments), arguments


@pytest.mark.parametrize(
    "name", [name for name, program in PROGRAMS.items() if program.operands is not Operands.EXPRESSION]
)
def test_what_the_guard_writes_anew_means_the_same_to_it(name: str) -> None:
    program, dice = PROGRAMS[name], random.Random(name)
    anything = Refuse(frozenset({"shell.option"}))
    for _ in range(60):
        first = parse(program, [Word(word) for word in random_arguments(program, dice)], anything)
        words = [word for given in first.options for word in given.words] + ["--"]
        second = parse(program, [*map(Word, words), *first.operands], anything)
        assert [given.words for given in second.options] == [given.words for given in first.options]
        assert second.operands == first.operands


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("head -20 logs/app.log", "head --lines=20 -- logs/app.log"),
        ("head -5c logs/app.log", "head --bytes=5 -- logs/app.log"),
        ("head -2k logs/app.log", "head --bytes=2K -- logs/app.log"),
        ("head -3qv logs/app.log", "head --lines=3 -q -v -- logs/app.log"),
        ("tail -20 logs/app.log logs/app.log.1", "tail --lines=20 -- logs/app.log logs/app.log.1"),
        ("tail +5 logs/app.log", "tail --lines=+5 -- logs/app.log"),
        ("tail +5c logs/app.log", "tail --bytes=+5 -- logs/app.log"),
        ("tail -c f logs/app.log", "tail --bytes=f -- logs/app.log"),
        ("tail -n +5 logs/app.log", "tail --lines=+5 -- logs/app.log"),
        ("tail -5f logs/app.log", "shell.option"),
        ("tail +5f logs/app.log", "shell.option"),
        ("tail -20cf logs/app.log", "shell.option"),
        ("head -5f logs/app.log", "shell.option"),
        ("tail logs/app.log +5", "tail -- logs/app.log +5"),
        ("grep -2 ERROR logs/app.log", "grep --devices=skip --context=2 -- ERROR logs/app.log"),
        ("grep -n12i ERROR logs/app.log", "grep --devices=skip -n --context=12 -i -- ERROR logs/app.log"),
        ("uniq -1 data/words.txt", "uniq --skip-fields=1 -- data/words.txt"),
        ("uniq +1 data/words.txt", "uniq --skip-chars=1 -- data/words.txt"),
        ("uniq -- +1", "uniq -- +1"),
        ("sort +1 data/words.txt", "shell.option"),
        ("sort +1 -2 data/words.txt", "shell.option"),
        ("sort -- +1", "sort --buffer-size=768M --batch-size=200 --parallel=1 -- +1"),
        ("ls -w80 --sor=size .", "ls --width=80 --sort=size -- ."),
        ("ls --colo .", "ls --color -- ."),
        ("ls --color always .", "ls --color -- always ."),
        (
            "sort -t '' data/hosts.txt",
            "sort --buffer-size=768M --batch-size=200 --parallel=1 --field-separator= -- data/hosts.txt",
        ),
        ("cat -- -n", "cat -- -n"),
        ("cat -n -- -n", "cat -n -- -n"),
        ("grep --si x data/hosts.txt", "grep --devices=skip --silent -- x data/hosts.txt"),
        ("grep --colo x data/hosts.txt", "grep --devices=skip --color -- x data/hosts.txt"),
        ("ls --nosuch", "shell.option"),
        ("ls -y", "shell.option"),
        ("ls --all=x", "shell.option"),
        ("head -n", "shell.option"),
        ("head --lines", "shell.option"),
        ("sort --c data/hosts.txt", "shell.option"),
        ("ls --", "ls"),
        ("ls --=x", "shell.option"),
        ("cat ---presume-input-pipe x", "shell.option"),
        ("grep -X perl x data/hosts.txt", "shell.option"),
    ],
)
def test_a_program_gets_its_options_under_their_full_names(command: str, answer: str, ws: Path) -> None:
    assert judge(ws, command) == answer


@pytest.mark.parametrize(
    ("command", "reason", "hint"),
    [
        (
            "sort -o x data/hosts.txt",
            "sort -o is refused: it writes a file",
            "The sorted lines come back as the result.",
        ),
        ("tail -f logs/app.log", "tail -f is refused: it waits for the file to grow", "Use tail -n NUM"),
        ("grep -R x .", "grep -R is refused: it follows links", "Use grep -r"),
        ("grep -iR x .", "grep -R is refused", "Use grep -r"),
        ("ls --colr", "is not an option that is known", "Did you mean --color?"),
        ("find . -nmae x", "is not a test or an action that is known", "Did you mean -name?"),
        ("find . -exec ls '{}' +", "it runs a program", "List the files first"),
        ("ls -ly", "ls -y in -ly is not an option that is known", ""),
        ("head -n", "head -n needs a value", ""),
    ],
)
def test_a_refused_option_says_why_and_what_to_do_instead(command: str, reason: str, hint: str, ws: Path) -> None:
    with pytest.raises(Denied) as denied:
        plan_of(ws, command)
    assert reason in denied.value.reason
    assert hint in denied.value.hint
