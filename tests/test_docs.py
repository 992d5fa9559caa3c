"""What the documentation shows is what happens."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from mcp_ops.evaluation.config import RunConfig
from mcp_ops.evaluation.line.parse import BadLine, parse_line
from mcp_ops.evaluation.line.scenario import ScenarioLine
from mcp_ops.evaluation.run import Harness

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/scenario-line.md"
BLOCK = re.compile(r"^```(\w+(?: \w+)?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(kind: str) -> list[str]:
    return [text for found, text in BLOCK.findall(PAGE.read_text("utf-8")) if found == kind]


def examples() -> list[str]:
    """Return the scenarios of the page, each as one line."""
    wrapped = [json.dumps(json.loads(text), ensure_ascii=False) for text in blocks("json")]
    return [line for text in blocks("jsonl") for line in text.splitlines()] + wrapped


@pytest.mark.covers("H42")
@pytest.mark.parametrize("line", examples(), ids=lambda line: json.loads(line)["id"])
async def test_an_example_of_the_page_runs_and_passes(line: str, tmp_path: Path) -> None:
    scenario = parse_line(line, PAGE, 1)
    assert not isinstance(scenario, BadLine), scenario.message
    outcome = await Harness(RunConfig(rootdir=ROOT), scratch=tmp_path).run(scenario)
    assert [problem.message for problem in outcome.problems] == []
    assert outcome.passed


@pytest.mark.covers("H14")
def test_the_bad_line_of_the_page_gets_the_sentence_of_the_page() -> None:
    (line,), (sentence,) = blocks("jsonl bad"), blocks("text")
    bad = parse_line(line.strip(), PAGE, 1)
    assert isinstance(bad, BadLine)
    assert bad.message == sentence.strip()


@pytest.mark.covers("H15")
def test_the_table_of_the_page_names_every_key_of_a_line() -> None:
    table = PAGE.read_text("utf-8").split("## All keys")[1]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(ScenarioLine.model_fields)


def test_every_dependency_has_its_line_of_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    groups = project["dependency-groups"]
    wanted = [*project["project"]["dependencies"], *groups["test"], *groups["lint"], *groups["typing"]]
    names = [re.split(r"[<>=\[]", entry)[0] for entry in wanted]
    page = (ROOT / "docs/dependencies.md").read_text("utf-8")
    assert re.findall(r"^\| `([a-z0-9-]+)` \| \S.* \|$", page, re.MULTILINE) == names
