"""What docs/github.md says of the github server is what it is."""

import re
from pathlib import Path
from typing import Any

import pytest

from mcp_ops.github.environment import VARIABLES
from mcp_ops.github.rules import GUARD_RULES
from mcp_ops.github.tools import get_failed_job_log, rollup, summarize_pull_request
from mcp_ops.github.tools.arguments import PAGE
from mcp_ops.github.watchlist import MAX_REPOS
from mcp_ops.servers.github import PROMPTS, RESOURCES, RULES, TOOLS

TEXT = (Path(__file__).parent.parent / "docs/github.md").read_text("utf-8")


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading, without its head."""
    table = re.findall(r"^\|(.+)\|$", TEXT.split(f"## {heading}\n")[1].split("\n## ")[0], re.MULTILINE)
    return [[cell.strip() for cell in row.split("|")] for row in table[2:]]


@pytest.mark.covers("D13")
def test_the_table_of_variables_names_each_of_them() -> None:
    assert {row[0].strip("`") for row in rows("Set up")} == set(VARIABLES)


@pytest.mark.covers("D1", "D2", "D11")
def test_the_table_of_tools_names_each_with_its_arguments() -> None:
    said = {row[0].strip("`"): re.findall(r"`(\w+)`", row[1]) for row in rows("Tools")}
    assert said == {tool.name: list(tool.arguments.model_fields) for tool in TOOLS}


@pytest.mark.covers("D12")
def test_the_table_of_guards_names_each_rule_that_refuses() -> None:
    assert [row[0].strip("`") for row in rows("Guards")] == [rule.name for rule in GUARD_RULES]


def test_every_rule_resource_and_prompt_that_the_page_names_is_there() -> None:
    named = set(re.findall(r"`(github\.\w+)`", TEXT))
    assert named <= {rule.name for rule in RULES}
    for each in RESOURCES:
        assert f"`{each.uri}`" in TEXT
    for prompt in PROMPTS:
        assert f"`{prompt.name}`" in TEXT


@pytest.mark.covers("D4")
def test_the_limits_of_the_page_are_those_of_the_code() -> None:
    diff = summarize_pull_request.SummarizeArguments.model_fields["diff_characters"].default
    log = get_failed_job_log.LogArguments.model_fields["characters"].default
    said = " ".join(TEXT.split())
    for sentence in (
        f"A page has at most {PAGE} entries",
        f"{diff:,} characters are shown by default and 20,000 at most",
        f"of a log {log:,} and {get_failed_job_log.MAX_CHARACTERS:,}",
        f"of a description {summarize_pull_request.MAX_BODY:,}, of {summarize_pull_request.MAX_FILES} files",
        f"At most {rollup.MOST} statuses, check runs and reviews",
        f"may be read, at most {MAX_REPOS}",
    ):
        assert sentence in said, sentence


async def test_the_example_of_the_page_runs() -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(example, names)
    assert await names["titles"]() == ["Checkout is slow"]
