"""Each known way to go wrong is shown by a test, or it says why there is none.

`data/cases.jsonl` holds the cases, `data/answers/AREA.toml` one answer a case: a test as `file.py::name`, a list of
them, or a sentence that says why no test is needed.
"""

import ast
import json
import tomllib
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CASES = [json.loads(line) for line in (TESTS / "data/cases.jsonl").read_text(encoding="utf-8").splitlines()]

AREAS = (
    *("path", "search", "secret-name", "shell-engine", "kubectl", "mcp-stdio"),
    *("llm-json", "provider", "trace-html", "scenario-file", "injection", "github-agent"),
    "http-session",
)
AREAS_OF_PARTS_TO_COME = {"plan-apply", "persistent-shell"}


def answers_of(area: str) -> dict[str, list[str]]:
    path = TESTS / "data/answers" / f"{area}.toml"
    assert path.exists(), f"{path.relative_to(TESTS)} is missing: write one answer for each case of the area {area}"
    read = tomllib.loads(path.read_text(encoding="utf-8"))
    return {case: [answer] if isinstance(answer, str) else answer for case, answer in read.items()}


def names_in(path: Path) -> set[str]:
    """Names of the tests in a file, in its classes too, as `name` and `Class::name`."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        for each in inside:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name.startswith("test_"):
                found.add(each.name)
                if isinstance(node, ast.ClassDef):
                    found.add(f"{node.name}::{each.name}")
    return found


@pytest.mark.parametrize("area", AREAS)
def test_every_case_of_an_area_is_answered_and_no_other(area: str) -> None:
    cases = {case["id"] for case in CASES if case["area"] == area}
    assert answers_of(area).keys() == cases


@pytest.mark.parametrize("area", AREAS)
def test_every_test_that_is_named_as_an_answer_is_there(area: str) -> None:
    missing = []
    for case, answers in answers_of(area).items():
        for answer in answers:
            name, separator, test = answer.partition("::")
            if separator and not ((TESTS / name).exists() and test in names_in(TESTS / name)):
                missing.append(f"{case}: {answer}")
            assert separator or answer.endswith("."), f"{case}: an answer without a test is a sentence"
    assert missing == []


def test_every_area_is_known() -> None:
    assert {case["area"] for case in CASES} == {*AREAS, *AREAS_OF_PARTS_TO_COME}


def test_every_case_has_an_id_of_its_own_and_says_what_is_expected() -> None:
    assert len({case["id"] for case in CASES}) == len(CASES)
    assert all(case["id"].startswith(case["area"]) and case["expected"] for case in CASES)
