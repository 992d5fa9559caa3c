"""`mcp-ops guards`: what the guards refuse and what they allow, made from the tables that they use."""

import argparse
import json
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from mcp_ops.cli.errors import CommandError
from mcp_ops.evaluation.session.rules import RULES as HARNESS_RULES
from mcp_ops.gate import Rule
from mcp_ops.ops.guards.allowed import SHIPPED
from mcp_ops.ops.guards.secret_names import DEFAULT
from mcp_ops.ops.guards.shell.options import Option, Program
from mcp_ops.servers.ops import (
    BadExtension,
    Extension,
    children_network,
    describe_second_wall,
    load_extension,
)
from mcp_ops.servers.rules import OWN_RULES, all_rules

_WIDTH = 100
_HARNESS = "harness"
"""Whose rule it is when no server has it."""


def run(args: argparse.Namespace) -> int:
    """Print the tables."""
    try:
        tables = guard_tables(None if args.guards is None else load_extension(args.guards))
    except BadExtension as error:
        raise CommandError(str(error)) from None
    if args.form == "json":
        text = json.dumps(tables, indent=2, ensure_ascii=False) + "\n"
    else:
        lines = _markdown(tables) if args.form == "markdown" else _text(tables)
        text = "\n".join(lines) + "\n"
    sys.stdout.write(text)
    return 0


def guard_tables(extension: Extension | None = None) -> dict[str, Any]:
    """Return every table, with what the operator added, as JSON values."""
    secret_names = DEFAULT if extension is None else extension.secret_names
    allowed = SHIPPED if extension is None else extension.allowed
    return {
        "rules": [_rule(rule) for rule in (*all_rules(), *HARNESS_RULES)],
        "secret_names": [{"pattern": name.pattern, "but_not": list(name.but_not)} for name in secret_names.names],
        "copy_suffixes": list(secret_names.copy_suffixes),
        "programs": [_program(program) for program in allowed.programs.values()],
        "kinds": sorted(allowed.kinds),
        "second_wall": describe_second_wall(),
        "children_network": children_network(),
    }


def _rule(rule: Rule) -> dict[str, Any]:
    servers = [name for name, rules in OWN_RULES.items() if rule in rules]
    return {
        "rule": rule.name,
        "state": rule.state.value,
        "servers": servers or [_HARNESS],
        "meaning": rule.meaning,
        "hint": rule.hint,
        "stands_for": rule.stands_for,
        "limits": rule.limits,
    }


def _program(program: Program) -> dict[str, Any]:
    return {
        "program": program.name,
        "package": program.package,
        "allowed": [_spelled(option) for option in program.options if not option.forbidden],
        "refused": {_spelled(option): option.forbidden for option in program.options if option.forbidden},
    }


def _spelled(option: Option) -> str:
    return " ".join((*(f"-{letter}" for letter in option.letters), *(f"--{name}" for name in option.names)))


def _text(tables: dict[str, Any]) -> Iterator[str]:
    yield "Rules"
    for rule in tables["rules"]:
        yield f"  {rule['rule']:<28} {rule['state']:<12} {', '.join(rule['servers'])}"
        yield from _wrapped(rule["meaning"])
        yield from _wrapped(f"-> {rule['hint']}" if rule["hint"] else "")
    yield from ("", "Secret names (compared without regard to case, on every part of a path)")
    for name in tables["secret_names"]:
        yield f"  {name['pattern']:<28}" + (f" but not {', '.join(name['but_not'])}" if name["but_not"] else "")
    yield from _wrapped(f"and copies of them: {' '.join(tables['copy_suffixes'])}")
    yield from ("", "Programs of run_shell")
    for program in tables["programs"]:
        yield f"  {program['program']:<28} {program['package']}"
        yield from _wrapped(f"allowed: {', '.join(program['allowed'])}")
        for option, why in program["refused"].items():
            yield from _wrapped(f"refused: {option}: {why}")
    yield from ("", "Kinds of kubectl_get and kubectl_describe")
    yield from _wrapped(", ".join(tables["kinds"]))
    yield ""
    yield from textwrap.wrap(f"Second wall: {tables['second_wall']}", _WIDTH, break_on_hyphens=False)
    yield f"Network of child processes: {tables['children_network']}"


def _wrapped(text: str) -> Sequence[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="      ", subsequent_indent="      ", break_on_hyphens=False)


def _markdown(tables: dict[str, Any]) -> Iterator[str]:
    rules = [
        (_code(rule["rule"]), ", ".join(rule["servers"]), rule["state"], rule["meaning"], rule["hint"])
        for rule in tables["rules"]
    ]
    yield from _table("Rules", ("Rule", "Server", "State", "Meaning", "What the model is told to do instead"), rules)
    yield from ("## What each refusal answers, and what it does not stop", "")
    for rule in tables["rules"]:
        if rule["stands_for"]:
            yield from (f"**{_code(rule['rule'])}**", "")
            yield from (f"- Answers: {rule['stands_for']}", f"- Does not stop: {rule['limits']}", "")
    names = [(_code(name["pattern"]), _codes(name["but_not"])) for name in tables["secret_names"]]
    names.append((f"copies of them: {_codes(tables['copy_suffixes'])}", ""))
    yield from _table("Secret names", ("Pattern", "But not"), names)
    programs = [
        (
            _code(program["program"]),
            program["package"],
            _codes(program["allowed"]),
            "; ".join(f"{_code(option)}: {why}" for option, why in program["refused"].items()),
        )
        for program in tables["programs"]
    ]
    yield from _table("Programs of `run_shell`", ("Program", "Package", "Allowed", "Refused"), programs)
    yield from ("## Kinds of `kubectl_get` and `kubectl_describe`", "", _codes(tables["kinds"]))


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield from (f"## {title}", "")
    for row in (head, ["---"] * len(head), *rows):
        # Even inside code a bar would end the cell.
        yield "| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |"
    yield ""


def _code(text: str) -> str:
    return f"`{text}`"


def _codes(texts: Sequence[str]) -> str:
    return " ".join(map(_code, texts))
