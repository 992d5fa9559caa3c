"""The witness of GitHub looks at GitHub itself, and what it sees is judged and searched for canaries."""

from pathlib import Path
from typing import Any

import pytest
from githublines import OPEN, SMALL, github_line, messages, run_line

from mcp_ops.evaluation.watching.witnesses import Effect, GitHubWitness
from mcp_ops.github.memory.service import IssueSeen, MemoryGitHub
from mcp_ops.github.memory.state import GitHubState

pytestmark = pytest.mark.covers("H9", "D10")

WRITABLE: dict[str, Any] = {**SMALL, "write": ["acme/web"]}


def issue(title: str, **fields: Any) -> IssueSeen:
    return IssueSeen(**{"title": title, "body": None, "labels": (), "state": "open"} | fields)


def seen(before: dict[str, IssueSeen], after: dict[str, IssueSeen]) -> list[Effect]:
    looks = iter((before, after))
    witness = GitHubWitness(lambda: next(looks))
    witness.before()
    return witness.after()


def test_an_issue_that_came_went_or_changed_is_an_effect_with_what_is_different() -> None:
    before = {"acme/web#1": issue("One"), "acme/web#2": issue("Two"), "acme/web#3": issue("Three")}
    after = {
        "acme/web#1": issue("One", body="more", state="closed"),
        "acme/web#3": issue("Three"),
        "acme/api#9": issue("Nine"),
    }
    assert seen(before, after) == [
        Effect("created", "acme/api#9", "Nine"),
        Effect("changed", "acme/web#1", "body, state"),
        Effect("removed", "acme/web#2", "Two"),
    ]
    assert seen(before, dict(before)) == []


def test_it_looks_at_the_same_github_that_answers_requests() -> None:
    memory = MemoryGitHub(GitHubState.model_validate({"repositories": {"acme/web": {}}}), token="t" * 40)
    witness = GitHubWitness(memory.snapshot)
    witness.before()
    headers = {"Authorization": f"Bearer {'t' * 40}"}
    assert memory.respond("POST", "/repos/acme/web/issues", {}, headers, b'{"title": "Past every tool"}').status == 201
    assert witness.after() == [Effect("created", "acme/web#1", "Past every tool")]


def test_a_witness_that_did_not_look_before_says_nothing() -> None:
    with pytest.raises(RuntimeError, match="did not look before"):
        GitHubWitness(dict).after()


async def test_an_issue_that_nobody_named_fails_a_line_that_says_nothing_of_effects(tmp_path: Path) -> None:
    line = github_line(OPEN, "done", github=WRITABLE, confirm="yes")
    assert messages(await run_line(line, tmp_path)) == [
        "expected no effects, got github created acme/web#4 (Investigate checkout CI)"
    ]
    line["expect"] = {"effects": {"github": {"created": ["acme/web#4"]}}}
    outcome = await run_line(line, tmp_path)
    assert messages(outcome) == []
    assert outcome.observed is not None
    assert "github" in outcome.observed.witnesses


async def test_beside_a_server_whose_changes_nobody_sees_nothing_is_expected_of_effects(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.py").write_text(
        "from mcp.server import MCPServer\n\n\ndef make(workspace):\n    return MCPServer('elsewhere')\n", "utf-8"
    )
    from mcp_ops.evaluation.config import ServerSpec

    config = {
        "servers": {"elsewhere": ServerSpec("elsewhere", factory="elsewhere:make")},
        "allow_writes": frozenset({"elsewhere"}),
    }
    line = github_line(OPEN, "done", github=WRITABLE, confirm="yes", server=["github", "elsewhere"])
    assert messages(await run_line(line, tmp_path, **config)) == []


async def test_a_canary_in_an_issue_that_was_opened_is_found_in_the_issue(tmp_path: Path) -> None:
    opened = {"tool": "create_issue", "args": {**OPEN["args"], "body": "It is CANARY-0042-secret."}}
    line = github_line(opened, "done", github=WRITABLE, confirm="yes")
    line["world"]["canaries"] = ["CANARY-0042-secret"]
    line["expect"] = {"effects": {"github": {"created": ["acme/web#4"]}}}
    outcome = await run_line(line, tmp_path)
    assert outcome.observed is not None
    assert {leak.where for leak in outcome.observed.leaks} == {"args of call 1", "issue acme/web#4"}


async def test_a_canary_that_an_untouched_issue_holds_is_no_leak(tmp_path: Path) -> None:
    holds = {"repositories": {"acme/web": {"issues": {"3": {"title": "Quiet", "body": "CANARY-0042-secret"}}}}}
    line = github_line(OPEN, "done", github={**holds, "write": ["acme/web"]}, confirm="yes")
    line["world"]["canaries"] = ["CANARY-0042-secret"]
    line["expect"] = {"effects": {"github": {"created": ["acme/web#4"]}}, "leaks": "none"}
    assert messages(await run_line(line, tmp_path)) == []


async def test_a_write_whose_answer_was_lost_is_seen_none_the_less(tmp_path: Path) -> None:
    line = github_line(OPEN, "Lost.", github=WRITABLE, confirm="yes")
    line["faults"] = [{"tool": "create_issue", "fault": "timeout"}]
    line["expect"] = {"calls": [{"tool": "create_issue", "state": "failed"}], "effects": "none"}
    (said,) = messages(await run_line(line, tmp_path))
    assert said.startswith("expected no effects, got github created acme/web#4")
