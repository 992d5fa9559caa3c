"""Command lines from the grammar of the guard's own tables, and from lists of GNU's options that know no table."""

import json
from collections.abc import Sequence
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from mcp_ops.evaluation.variants.options import HARMFUL
from mcp_ops.ops.guards.shell import PROGRAMS
from mcp_ops.ops.guards.shell.options import Argument, Option
from mcp_ops.ops.guards.shell.tables.find import OPERATORS, REFUSED, WITH_VALUE, WITHOUT_VALUE


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


DATA = Path(__file__).parent.parent / "data"

HARMLESS = _words(
    """
    runbooks/restart.md data/hosts.txt data/words.txt logs/app.log k8s/deploy.yaml résumé.md glob/a.txt crlf.txt
    bin.dat ansi.txt nonl.txt empty.txt ./-n runbooks logs data glob deep . link_ok bin deep/a/b/c/x.md big.txt
    data/*.txt */dns.md glob/* data/[hw]*s.txt r?sumé.md data/sizes.txt data/versions.txt ./* */* *.md
    """
)
HARMFUL_OPERANDS = _words(
    """
    secrets/staging.env .env .ENV prod.env certs/tls.key id_rsa credentials.json secrets k8s/secrets.yaml
    innocent.txt ./secrets/../.env certs certs/* *.env .e* [i]d_rsa * .* link_file link_dir link_dir/ link_dir/.
    link_dir/outside.txt link_dir/sub link_* */outside.txt hardlink.txt ../outside/outside.txt
    runbooks/../../outside/outside.txt .. ../* link_dir/* loop fifo listdir0 list0 good0 -o -ob.txt
    --output=stolen.txt - ~ $HOME nowhere.txt -- new.txt evil.sh ．．/outside/outside.txt ｌink_file data/hosts.txt/
    /nowhere/outside.txt ./secrets/./staging.env secrets//staging.env
    """
)
TEXTS = _words(
    """
    1 2 5 -1 +2 0 99999 1k 2,2 1.2 , x auto always never iso +%F %s %n %y%p %50s %-9s %99999s C.NARY timeout
    [A-Z]+ (a|b)* (a){9}{9}{9} \\(a\\)\\1 yesterday 2026-01-01 'TZ="UTC"' 'TZ="/nowhere"' recurse skip read size
    total numeric quiet locale escape f d l *.md all text none name %a%% %40000d . "" -type sub c /[0-9]+/ ^
    [[:digit:]]
    """
)
NEAR = {
    "ls": ("-R", "-la", "-lR .", "-R link_dir/", "-d link_dir/*", "--color=always -lZ", "-s --time=atime"),
    "cat": ("-A", "--", "-vET", "--show-all *"),
    "head": ("-5", "-c 20", "-n -1", "-qz", "-v *", "--byte=9"),
    "tail": ("-5", "+3", "-c 20", "-n +2", "-qz", "-3l", "--line 2", "-v */*"),
    "wc": ("-lwcmL", "--total=only", "*", "*/*"),
    "grep": (
        *("-r", "-rn .", "-rI", "-rl", "-rc .", "-d recurse .", "--directories=recurse", "-e .", "-rhoE . secrets"),
        *(
            "--include=*.env",
            "--exclude-dir=x",
            "-r . link_dir",
            "-rz",
            "-A3 -B2",
            "-rv nothing",
            "-h *",
            "-s */*",
            "-5",
        ),
    ),
    "find": (
        *(". -type f", "-name '*.env'", "-size +0 -ls", "-newer .env", "-newermt 2020-01-01", "link_dir/ -print"),
        *(
            "-printf '%p %s %l\\n'",
            "-samefile hardlink.txt",
            "-follow",
            "-xtype f",
            "-lname '*out*'",
            "\\( -name a -o -true \\)",
        ),
    ),
    "du": ("-a", "-ah .", "-ab link_dir/", "--time -a", "-s *", "-l --inodes", "--exclude=x"),
    "stat": ("-c %n%N", "--printf='%n\\n'", "-t *", "-f .", "link_dir/*", "-c %N link_file"),
    "sort": ("-k2", "-t,", "-m *", "-u data/*.txt", "-c", "-R", "-rn --debug", "--sor=month", "-z -s"),
    "uniq": ("-c", "-f1 -s2", "-w 3", "-D", "--all=prepend", "--group=both", "-1"),
    "date": (
        "-u",
        "-r runbooks/dns.md",
        "-r .env",
        "-r link_file",
        "-d yesterday +%F",
        "+%N",
        "-Iseconds",
        "--rfc-3339=ns",
    ),
}
"""Pieces of commands that come close to what a guard has to stop, each of them used by somebody in good faith."""
# Sets have another order in every process, and CI tries the same commands every time.
EXPRESSION = sorted((*WITHOUT_VALUE, *WITH_VALUE, *OPERATORS, *REFUSED, "-newermt", "-newerXY", "-newerac"))
_RAW = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
_TRICKY = st.text(" \t\n'\"\\$`;|&<>(){}[]*?~#!-=/.\x1b\u202e\u2028\ufeff\U000e0041abof", max_size=8)


def _measured() -> dict[str, list[str]]:
    """Return the options that were measured on GNU's programs, by program, each with the value it had."""
    found: dict[str, list[str]] = {}
    for line in (DATA / "option_effects.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        found.setdefault(row["binary"], []).append(row["command"].removeprefix(row["binary"]).strip())
    return found


MEASURED = _measured()


def values() -> SearchStrategy[str]:
    """Values of options, and operands."""
    return st.one_of(
        st.sampled_from(HARMLESS),
        st.sampled_from(TEXTS),
        st.sampled_from(HARMLESS),
        st.sampled_from(HARMFUL_OPERANDS),
        _TRICKY,
    )


@st.composite
def quoted(draw: DrawFn, word: str) -> str:
    """Return a spelling of a word: as it is, in either quotes, escaped, in pieces."""
    style = draw(st.sampled_from(("raw", "raw", "raw", "single", "double", "escaped", "pieces")))
    if style == "single" and "'" not in word:
        return f"'{word}'"
    if style == "double" and not set(word) & set('"$`\\'):
        return f'"{word}"'
    if style == "escaped":
        return "".join(f"\\{each}" for each in word)
    if style == "pieces" and len(word) > 1 and not set(word) & set("'\""):
        at = draw(st.integers(1, len(word) - 1))
        return f"{word[:at]}''\"\"'{word[at:]}'"
    return word


@st.composite
def option_words(draw: DrawFn, program: str) -> list[str]:
    """Return the words of one option out of the guard's table, in one of its spellings."""
    options = PROGRAMS[program].options
    option: Option = draw(st.sampled_from(options))
    value = draw(values()) if option.argument is not Argument.NONE or draw(st.integers(0, 19)) == 0 else None
    if option.letters and (not option.names or draw(st.booleans())):
        letter = draw(st.sampled_from(option.letters))
        flags = "".join(other.letters[:1] for other in options if other.argument is Argument.NONE and other.letters)
        bundle = draw(st.text(st.sampled_from(flags), max_size=2)) if flags else ""
        return [f"-{bundle}{letter}{value or ''}"] if draw(st.booleans()) else [f"-{bundle}{letter}", value or "1"]
    name = draw(st.sampled_from(option.names))
    name = name[: draw(st.integers(1, len(name)))] if draw(st.integers(0, 3)) == 0 else name
    if value is None:
        return [f"--{name}"]
    return [f"--{name}={value}"] if draw(st.booleans()) else [f"--{name}", value]


@st.composite
def harmful_words(draw: DrawFn, program: str) -> list[str]:
    """Return the words of one option that the independent list calls harmful."""
    option = draw(st.sampled_from([each for each in HARMFUL if each.program == program]))
    value = draw(values()) if option.takes_value else ""
    if option.name and (not option.letter or draw(st.booleans())):
        name = option.name[: draw(st.integers(len(option.shortest), len(option.name)))]
        return [f"--{name}={value}"] if value and draw(st.booleans()) else [f"--{name}", *([value] if value else [])]
    return [f"-{option.letter}{value}"]


@st.composite
def expression_words(draw: DrawFn) -> list[str]:
    """Return a word of find's expression, with a value where it takes one."""
    word = draw(st.sampled_from(EXPRESSION))
    if word in WITHOUT_VALUE or word in OPERATORS:
        return [draw(quoted(word))]
    if word.startswith(("-exec", "-ok")):
        return [word, "./evil.sh", "{}", "\\;"]
    return [word, draw(values())]


@st.composite
def one_group(draw: DrawFn, program: str) -> list[str]:
    """Return an operand, or an option with its value."""
    kinds: list[SearchStrategy[list[str]]] = [
        st.sampled_from(HARMLESS).map(lambda operand: [operand]),
        st.sampled_from(NEAR[program]).map(lambda words: [words]),
        st.sampled_from(NEAR[program]).map(lambda words: [words]),
        values().flatmap(quoted).map(lambda operand: [operand]),
        st.sampled_from(MEASURED[program]).map(lambda words: [words]),
    ]
    if program == "find":
        kinds += [expression_words(), expression_words()]
    else:
        kinds += [option_words(program), option_words(program)]
    if any(option.program == program for option in HARMFUL):
        kinds.append(harmful_words(program))
    return draw(st.one_of(kinds))


@st.composite
def command_lines(draw: DrawFn, programs: Sequence[str] = tuple(PROGRAMS)) -> str:
    """Return a command line; about every second is one that the guard allows."""
    program = draw(st.sampled_from(programs))
    groups = draw(st.lists(one_group(program), min_size=1, max_size=5))
    behind = draw(st.sampled_from(HARMLESS)) if draw(st.booleans()) else None
    words = [program, *(["timeout"] if program == "grep" and draw(st.booleans()) else [])]
    words += [word for group in groups for word in group] + ([behind] if behind else [])
    command = draw(st.sampled_from((" ", " ", " ", "  ", "\t"))).join(words)
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(command)))
        command = command[:at] + draw(st.one_of(_TRICKY, _RAW)) + command[at:]
    return command
