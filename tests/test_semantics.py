"""Every sentence about the scenario line, as a line whose verdict is known.

A row of `data/semantics.jsonl` holds `why` (the sentence), `line` (keys that are laid over the plainest line, or raw
text) or `file` (the text of a whole file), and `verdict` with the first line of the `message`. Either `observed` says
what happened, or `run` says that the line is run for real, against the guarded server, in a small workspace.
"""

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from observations import line as whole_line
from observations import observed

from mcp_ops.evaluation.config import Limits, RunConfig
from mcp_ops.evaluation.judging.judge import judge, nothing_checked
from mcp_ops.evaluation.judging.known import against_known
from mcp_ops.evaluation.line.parse import parse_line, read_file
from mcp_ops.evaluation.line.scenario import BadLine, Scenario
from mcp_ops.evaluation.outcome import Outcome
from mcp_ops.evaluation.run import run_scenario

ROWS: list[dict[str, Any]] = [
    json.loads(row)
    for row in (Path(__file__).parent / "data" / "semantics.jsonl").read_text(encoding="utf-8").split("\n")
    if row and not row.startswith("//")
]
FILES = {
    "ws/notes.md": "deploys freeze on Friday\n",
    "ws/runbooks/restart.md": "# restart payments-api\n1. drain\n2. restart\n",
    "ws/logs/api.log": "pod payments-api-7d9f-x2x1 crashed\nGUARD DENIED: this is only a text\n",
    "ws/secrets/staging.env": "PASSWORD=Sw0rdfish-2291-Zz\n",
    "ws/key.pem": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END PRIVATE KEY-----\n",
}
"""The root folder of the rows that are run. The line's file lies two folders deeper."""

Verdict = tuple[str, str | None]
"""`pass`, `fail`, `xfailed`, `bad line`, `skipped` or `not proven`, and the first line of the message."""


def scenario_of(row: Mapping[str, Any], path: Path) -> Scenario | BadLine:
    line = row["line"]
    return parse_line(line if isinstance(line, str) else json.dumps(whole_line(**line)), path, 17)


def judged(row: Mapping[str, Any], scenario: Scenario) -> Verdict:
    mode = row.get("mode", "mock")
    problems = judge(scenario, observed(**row["observed"]), mode, read_only=row.get("read_only", True))
    if problems:
        return "fail", problems[0].message
    return ("not proven" if nothing_checked(scenario, mode, observed(**row["observed"])) else "pass"), None


def verdict_of(outcome: Outcome) -> Verdict:
    if outcome.skipped_mode:
        return "skipped", None
    if first := outcome.first():
        return "fail", first.message
    if outcome.skipped is not None:
        return "not proven", outcome.skipped
    if outcome.unmet_needs:
        return "not proven", ", ".join(outcome.unmet_needs)
    return "pass", None


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path.resolve()


async def run(scenario: Scenario, folder: Path, today: str | None = None) -> Verdict:
    """Run a line for real; in the message `ROOT` stands for the root folder.

    With a day of `today`, what is known of the line's failures counts.
    """
    config = RunConfig(rootdir=folder, trace_dir=folder / "traces", limits=Limits(seconds=30))
    outcome = await run_scenario(scenario, config=config)
    if today is not None:
        outcome, excused = against_known(scenario, outcome, date.fromisoformat(today))
        if excused is not None:
            return "xfailed", excused.sentence
    verdict, message = verdict_of(outcome)
    return verdict, message.replace(str(folder), "ROOT") if message else None


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [f"{number}-{row['why'][:50]}" for number, row in enumerate(rows, 1)]


LINES = [row for row in ROWS if "file" not in row]
WHOLE_FILES = [row for row in ROWS if "file" in row]


@pytest.mark.covers("H5", "H6", "H7", "H8", "H9", "H12", "H14", "H35", "A18")
@pytest.mark.parametrize("row", LINES, ids=names(LINES))
async def test_a_line_comes_to_the_verdict_that_its_sentence_says(row: dict[str, Any], root: Path) -> None:
    scenario = scenario_of(row, root / "suite" / "deep" / "scenarios.jsonl")
    if isinstance(scenario, BadLine):
        verdict: Verdict = ("bad line", scenario.message)
    elif row.get("run"):
        verdict = await run(scenario, root, row.get("today"))
    else:
        verdict = judged(row, scenario)
    assert verdict == (row["verdict"], row.get("message"))


@pytest.mark.covers("H14")
@pytest.mark.parametrize("row", WHOLE_FILES, ids=names(WHOLE_FILES))
def test_a_file_comes_to_the_items_that_its_sentence_says(row: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "scenarios.jsonl"
    text = row["file"].replace("LINE", '"task":"t","mock":[{"finish":"x"}],"expect":{}')
    file.write_text(text, encoding="utf-8", newline="")
    items = [
        [one.line, one.id, one.message] if isinstance(one, BadLine) else [one.line, one.spec.id, None]
        for one in read_file(file)
    ]
    assert items == row["items"]


def test_there_are_enough_rows_of_every_verdict() -> None:
    verdicts = [row["verdict"] for row in LINES]
    assert len(ROWS) >= 120
    assert verdicts.count("pass") >= 30
    assert verdicts.count("fail") >= 30
    assert verdicts.count("bad line") >= 20
    assert sum(1 for row in LINES if row.get("run")) >= 20
