import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from observations import line
from pydantic import BaseModel

from mcp_ops.evaluation.line.parse import parse_line, read_file
from mcp_ops.evaluation.line.scenario import BadLine, ScenarioLine, json_schema

pytestmark = pytest.mark.covers("H15")

ROOT = Path(__file__).parent.parent
SCHEMA = json_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def rows(name: str) -> list[dict[str, Any]]:
    text = (ROOT / "tests" / "data" / name).read_text(encoding="utf-8")
    return [json.loads(row) for row in text.split("\n") if row and not row.startswith("//")]


def models(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        for field in annotation.model_fields.values():
            yield from models(field.annotation)
    for argument in get_args(annotation):
        yield from models(argument)


def schema_properties(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(schema, dict):
        for name, found in schema.get("properties", {}).items():
            yield f"{path}.{name}", found
        for key, part in schema.items():
            yield from schema_properties(part, f"{path}.{key}")
    elif isinstance(schema, list):
        for part in schema:
            yield from schema_properties(part, path)


def test_the_schema_is_a_json_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


def test_every_field_has_a_description_and_an_example() -> None:
    fields = [(model, name, field) for model in set(models(ScenarioLine)) for name, field in model.model_fields.items()]
    assert len(fields) > 50
    assert [(m.__name__, name) for m, name, field in fields if not (field.description and field.examples)] == []
    described = {key: part for key, part in SCHEMA.items() if key != "if"}
    bare = [path for path, found in schema_properties(described) if not {"description", "examples"} <= set(found)]
    # The three parts of a result are patterns themselves; they are described where `result` is.
    assert [path for path in bare if path.rsplit(".", 1)[1] not in ("text", "structured", "exit_code")] == []


def test_every_example_is_valid_where_it_stands() -> None:
    resolver = {"$defs": SCHEMA["$defs"], "$schema": SCHEMA["$schema"]}
    for _, found in schema_properties(SCHEMA):
        for example in found.get("examples", []):
            VALIDATOR.evolve(schema={"properties": {"example": found}, **resolver}).validate({"example": example})


DENIED = {
    "mock": [{"action": {"tool": "run_shell", "args": {"command": "rm x"}}}, {"finish": "no"}],
    "expect": {"denied": [{"rule": "shell.binary"}]},
}


def test_every_example_of_a_field_of_the_line_is_accepted_by_the_parser() -> None:
    for name, field in ScenarioLine.model_fields.items():
        around = DENIED if name == "variants" else {}
        for example in field.examples or []:
            assert not isinstance(parse_line(json.dumps(line(**around, **{name: example})), None, 1), BadLine), name


@pytest.mark.parametrize("file", sorted((ROOT / "scenarios").glob("*.jsonl")), ids=lambda file: file.name)
def test_every_shipped_scenario_is_valid(file: Path) -> None:
    count = 0
    for scenario in read_file(file):
        assert not isinstance(scenario, BadLine), scenario
        VALIDATOR.validate(json.loads(scenario.text))
        count += 1
    assert count


# Faults that a JSON Schema cannot say, by a piece of their sentence: the parser finds them, an editor does not.
BEYOND_A_SCHEMA = (
    "surrogate",
    "means something to pytest",
    "absolute path",
    "leads out",
    "is not a folder's relative path",
    "is not a file's relative path",
    "is no JSON file",
    "which needs a GitHub",
    "looked at by no server",
    "leads out of the run",
    'neither "kind" nor "status"',
    "plain form",
    "NUL character",
    "more than 255 bytes",
    "more than 40 parts",
    "to be a folder",
    "holds a reference",
    "can never fit",
    "checks nothing without calls",
    "sets no bound",
    "is not an RE2 pattern",
    "is more than runs",
    "is no day of the calendar",
    "is more than a year ahead",
    "names no call",
    'has no "text"',
    "leave it out",
    "by an earlier entry",
    "exactly one of",
    "stands beside raw",
    "twice; leave one out",
    'got "a\\n"',
)


@pytest.mark.parametrize("row", rows("bad_lines.jsonl"), ids=lambda row: row["message"][:60])
def test_a_bad_line_is_not_valid_unless_its_fault_is_beyond_a_schema(row: dict[str, Any]) -> None:
    beyond = any(piece in row["message"] for piece in BEYOND_A_SCHEMA)
    assert VALIDATOR.is_valid(line(**row["keys"])) is beyond


@pytest.mark.parametrize("row", rows("semantics.jsonl"), ids=lambda row: row["why"][:60])
def test_what_the_parser_accepts_is_valid(row: dict[str, Any]) -> None:
    keys = row.get("line")
    if isinstance(keys, dict) and row["verdict"] != "bad line":
        VALIDATOR.validate(line(**keys))


@pytest.mark.parametrize("modes", [None, ["mock"], ["mock", "live"], ["live"]])
def test_mock_is_required_unless_modes_leaves_it_out(modes: list[str] | None) -> None:
    keys = line() if modes is None else line(modes=modes)
    del keys["mock"]
    assert VALIDATOR.is_valid(keys) is (modes == ["live"])


def test_keys_that_begin_with_x_are_valid_and_reserved_ones_are_not() -> None:
    assert VALIDATOR.is_valid(line(**{"x-ticket": {"a": 1}}))
    assert not VALIDATOR.is_valid(line(known={"reason": "r"}))
    assert not VALIDATOR.is_valid(line(links=[]))
