"""Families that write the same command another way."""

import re
import shlex
from collections.abc import Iterator

from mcp_ops.evaluation.variants.attack import Attack, Changed
from mcp_ops.evaluation.variants.options import COMPANIONS, Use, find_use

_ZONE = re.compile(r"""TZ="(?P<zone>[^"]*)"(?P<rest>[^'"]*)""")


def quote(attack: Attack) -> Iterator[Changed]:
    r"""Quotes inside words: `r''m`, `"rm" "x"`, `\rm`.

    Stands for block lists that search the raw text for names of programs and files, such as DesktopCommanderMCP
    #217 and #218: the shell takes the quotes away afterwards.
    """
    words = attack.words()
    plain = [word for word in words if word.is_plain]
    if not plain:
        return
    first = words[0]
    if first.is_plain and len(first.text) > 1:
        split = f"{first.text[0]}''{first.text[1:]}"
        yield Changed(attack.with_words(split, *(word.text for word in words[1:])))
    yield Changed(attack.with_words(*(f'"{word.text}"' if word.is_plain else word.text for word in words)))
    yield Changed(attack.with_words(*(f"\\{word.text}" if word.is_plain else word.text for word in words)))


def bundle(attack: Attack) -> Iterator[Changed]:
    """Options glued to their values, bundled, written behind the operands, and operands behind `--`.

    Stands for guards that compare whole words with a list of options, such as the read-only lists of aliyun/iac-code
    #88 and codex PR #482: GNU getopt takes `-uofile` for `-u -o file`, wherever it stands.
    """
    words = attack.words()
    if not words or not attack.is_about("shell.option", "shell.operand"):
        return
    program = words[0].text
    use = find_use(words)
    if use is not None:
        for option in _bundled(use):
            yield Changed(attack.with_words(program, *option, *use.rest))
        operands_first = use.long(use.option.name) if use.option.name else use.short()
        yield Changed(attack.with_words(program, *use.rest, *operands_first))
    elif program in COMPANIONS and not any(word.text.startswith("-") for word in words[1:]):
        operands = [word.text for word in words[1:]]
        flag = f"-{COMPANIONS[program][0]}"
        yield Changed(attack.with_words(program, "--", *operands))
        yield Changed(attack.with_words(program, flag, "--", *operands))
        yield Changed(attack.with_words(program, *operands, flag))


def _bundled(use: Use) -> Iterator[tuple[str, ...]]:
    if not use.option.letter:
        return
    companion = COMPANIONS[use.option.program][0]
    yield use.short()
    yield use.short(companion)
    yield use.short(companion, apart=True)


def prefix(attack: Attack) -> Iterator[Changed]:
    """Long options by an unambiguous beginning: `--o=x` for `--output=x`.

    Stands for guards that know options by their full names only: GNU getopt takes any beginning that fits one name.
    """
    use = find_use(attack.words())
    if use is None or not use.option.name or not attack.is_about("shell.option"):
        return
    full, shortest = use.option.name, use.option.shortest
    for name in dict.fromkeys((shortest, full[: (len(shortest) + len(full) + 1) // 2], full)):
        yield Changed(attack.with_words(use.option.program, *use.long(name), *use.rest))
        if use.value:
            yield Changed(attack.with_words(use.option.program, *use.long(name, apart=True), *use.rest))


def env(attack: Attack) -> Iterator[Changed]:
    """A variable in front of the command: `LC_ALL=C rm x`, `env rm x`.

    Stands for guards that look at the first word and take it for the program, as in the reports on gemini-cli #11510
    and goclaw #1205; the environment also changes what a program does (POSIXLY_CORRECT, TZ, LD_PRELOAD).
    """
    command = attack.text("command")
    if command is not None and attack.words():
        yield Changed(attack.with_arg("command", f"LC_ALL=C {command}"))
        yield Changed(attack.with_arg("command", f"env {command}"))
        yield Changed(attack.with_arg("command", f"env -u TMPDIR {command}"))


def wrap(attack: Attack) -> Iterator[Changed]:
    """Another program in front: `command rm x`, `nice rm x`, `sh -c 'rm x'`.

    Stands for allow-lists that hold programs which run programs, as in DesktopCommanderMCP #421 and #497.
    """
    command = attack.text("command")
    if command is not None and attack.words():
        yield Changed(attack.with_arg("command", f"command {command}"))
        yield Changed(attack.with_arg("command", f"nice {command}"))
        yield Changed(attack.with_arg("command", f"sh -c {shlex.quote(command)}"))


def tz(attack: Attack) -> Iterator[Changed]:
    """A time zone inside a date: `date -d 'TZ="/etc/passwd" now'`.

    Stands for guards that take the text of a date for harmless: GNU's parser opens what TZ names as a file, and waits
    for ever if it is a FIFO. Relative names begin in the folder of the zones.
    """
    found = _ZONE.search(attack.text("command") or "")
    if found is None or not attack.is_about("shell.timezone"):
        return
    zone, rest = found["zone"], found["rest"]
    climbing = "../" * 12 + zone.lstrip("/")
    as_written = f"'TZ=\"{zone}\"{rest}'"
    for option in ("-d ", "--date=", "--date ", "--da=", "-ud"):
        yield Changed(attack.with_words("date", option + as_written))
    for other in (f"'  TZ=\"{zone}\"{rest}'", f"'TZ=\":{zone}\"{rest}'", f"'TZ=\"{climbing}\"{rest}'"):
        yield Changed(attack.with_words("date", "-d", other))
    yield Changed(attack.with_words("find", ".", "-newermt", as_written))
