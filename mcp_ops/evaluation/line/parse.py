"""From text to scenarios: one bad line is one bad line, and says what is wrong, where, and what to write instead."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mcp_ops.evaluation.line.faults import first_fault
from mcp_ops.evaluation.line.lines import BrokenLine, physical_lines
from mcp_ops.evaluation.line.locate import JsonFault, decode, locate, spots
from mcp_ops.evaluation.line.scenario import (
    BadLine,
    Scenario,
    ScenarioError,
    ScenarioLine,
    is_id,
    is_tag,
)
from mcp_ops.evaluation.line.twins import Attacks
from mcp_ops.evaluation.wording import show_path
from mcp_ops.text import one_line


def read_file(path: Path) -> Iterator[Scenario | BadLine]:
    """Yield what each line of a scenario file is, in order. At most one line is held in memory.

    Raises:
        OSError: The file cannot be read.
    """
    names: dict[str, int] = {}
    attacks = Attacks(lambda: _all_lines(path))
    for line in physical_lines(path):
        if isinstance(line, BrokenLine):
            parsed: Scenario | BadLine = _bad(line.start, line.number, line.column, line.message)
        else:
            parsed = _paired(parse_line(line.text, path, line.number), attacks)
        yield _named(parsed, names)


def _all_lines(path: Path) -> Iterator[Scenario | BadLine]:
    for line in physical_lines(path):
        if isinstance(line, BrokenLine):
            yield _bad(line.start, line.number, line.column, line.message)
        else:
            yield parse_line(line.text, path, line.number)


def _paired(parsed: Scenario | BadLine, attacks: Attacks) -> Scenario | BadLine:
    """Give a twin the rules of its attack."""
    if isinstance(parsed, BadLine) or parsed.spec.twin_of is None:
        return parsed
    found = attacks.rules_of(parsed.spec.twin_of)
    if isinstance(found, str):
        column = locate(parsed.text, ("twin_of",)) + 1
        return BadLine(parsed.line, column, f"twin_of {found}", parsed.spec.id, parsed.spec.tags)
    return replace(parsed, rules=found)


def _named(parsed: Scenario | BadLine, names: dict[str, int]) -> Scenario | BadLine:
    """Give a line that repeats an earlier id a name of its own."""
    name = parsed.id if isinstance(parsed, BadLine) else parsed.spec.id
    first = names.setdefault(name, parsed.line)
    if first == parsed.line:
        return parsed
    own_name = f"{name}@{parsed.line}"
    if isinstance(parsed, BadLine):
        return BadLine(parsed.line, parsed.column, parsed.message, own_name, parsed.tags)
    message = f'id "{name}" is used on line {first} already and again on line {parsed.line}; write another id'
    column = locate(parsed.text, ("id",)) + 1
    return BadLine(parsed.line, column, message, own_name, parsed.spec.tags)


def parse_line(text: str, path: Path | None, line: int) -> Scenario | BadLine:
    """Read one line, which is neither blank nor a comment.

    Args:
        text: The line without its end.
        path: Its file.
        line: Its physical number, from 1.
    """
    try:
        return Scenario(_validated(text), path, line, text)
    except ScenarioError as error:
        return _bad(text, line, error.column, str(error))


def from_dict(scenario: Mapping[str, Any]) -> Scenario:
    """Return the scenario that a mapping describes, by the same rules as a line of a file.

    Raises:
        ScenarioError: It is not a scenario.
    """
    try:
        text = json.dumps(scenario, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ScenarioError(f"the scenario is not JSON ({one_line(str(error))}); write JSON values only", 1) from None
    return Scenario(_validated(text), None, 1, text)


def _validated(text: str) -> ScenarioLine:
    try:
        value = decode(text)
    except JsonFault as fault:
        raise ScenarioError(one_line(str(fault), 400), fault.offset + 1) from None
    if not isinstance(value, dict):
        raise ScenarioError(f'a line is one JSON object, and this is {_kind(value)}; write {{"id": …}}', 1)
    try:
        spec = ScenarioLine.model_validate(value)
    except ValidationError as error:
        fault_found = first_fault(error, value, text)
        raise ScenarioError(fault_found.message, fault_found.offset + 1) from None
    if spec.variants is not None:
        _check_variants(spec, text)
    return spec


def _check_variants(spec: ScenarioLine, text: str) -> None:
    from mcp_ops.evaluation.variants.generate import variants_fault

    found = variants_fault(spec)
    if found is not None:
        path, sentence = found
        raise ScenarioError(f"{show_path(path)} {sentence}", locate(text, path) + 1)


def _kind(value: object) -> str:
    return {list: "a list", str: "a string", bool: "true or false", type(None): "null"}.get(type(value), "a number")


def _bad(text: str, line: int, column: int, message: str) -> BadLine:
    name, tags = _salvage(text)
    return BadLine(line, column, message, name or f"line-{line}", tags)


def _salvage(text: str) -> tuple[str | None, tuple[str, ...]]:
    """Return the id and the tags as far as the line can be read."""
    name: str | None = None
    tags: list[str] = []
    try:
        for spot in spots(text):
            if spot.path == ("id",):
                name = _string_at(text, spot.value)
            elif len(spot.path) == 2 and spot.path[0] == "tags" and isinstance(spot.path[1], int):
                tag = _string_at(text, spot.value)
                if tag is not None and is_tag(tag) and tag not in tags:
                    tags.append(tag)
    except JsonFault:
        pass
    return (name if name is not None and is_id(name) else None), tuple(tags)


def _string_at(text: str, offset: int) -> str | None:
    if not text.startswith('"', offset):
        return None
    value, _ = json.JSONDecoder().raw_decode(text, offset)
    return str(value)
