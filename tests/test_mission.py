"""Keeps `mission.toml` and the tests in step: what is called done is shown by a test, and tests show known rows."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent
ROWS: dict[str, dict[str, Any]] = tomllib.loads((TESTS / "mission.toml").read_text(encoding="utf-8"))


def covers(tree: ast.AST) -> Iterator[str]:
    """Yield the rows that `pytest.mark.covers(…)` calls in a module name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "covers":
            for argument in node.args:
                yield argument.value if isinstance(argument, ast.Constant) else ast.unparse(argument)


def shown() -> dict[str, list[str]]:
    """The rows that tests name, with the files that name them."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for row in covers(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(row, []).append(path.name)
    return found


def test_a_row_that_is_done_is_shown_by_a_test() -> None:
    done = {name for name, row in ROWS.items() if row["status"] == "done"}
    assert sorted(done - shown().keys()) == []


def test_tests_name_only_rows_that_are_there() -> None:
    assert {row: files for row, files in shown().items() if row not in ROWS} == {}


def test_every_row_is_done_or_says_why_it_is_open() -> None:
    for name, row in ROWS.items():
        fields = {"done": {"row", "status"}, "open": {"row", "status", "reason"}}[row["status"]]
        assert row.keys() == fields, name
        assert all(text.strip() == text != "" for text in row.values()), name


def test_no_row_was_left_out() -> None:
    counts = {"H": 44, "A": 26, "B": 11, "C": 20, "D": 13}
    assert list(ROWS) == [f"{letter}{number}" for letter, last in counts.items() for number in range(1, last + 1)]


def test_the_markers_are_found_wherever_they_stand() -> None:
    text = "pytestmark = [pytest.mark.covers('A1')]\n@pytest.mark.covers('A2', 'A3')\ndef test_x(): ...\n"
    assert sorted(covers(ast.parse(text))) == ["A1", "A2", "A3"]
