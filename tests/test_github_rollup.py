"""What statuses and check runs of a commit come to, in every combination."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest
from githubworld import PULL, state, world
from hypothesis import given
from hypothesis import strategies as st

from mcp_ops.github.api import CheckRun, CommitStatus, PullRequest, Review
from mcp_ops.github.tools.reviewing import summed_up
from mcp_ops.github.tools.rollup import rolled_up

pytestmark = pytest.mark.covers("D1")

FAILURE, PENDING, SUCCESS, UNKNOWN, NOTHING = "failure", "pending", "success", "unknown", "nothing"

STATUSES = {"success": SUCCESS, "pending": PENDING, "failure": FAILURE, "error": FAILURE, "from_the_future": PENDING}
CONCLUSIONS = {
    "success": SUCCESS,
    **dict.fromkeys(("failure", "cancelled", "timed_out", "action_required", "startup_failure"), FAILURE),
    **dict.fromkeys(("skipped", "neutral"), NOTHING),
    **dict.fromkeys(("stale", "from_the_future", None), PENDING),
}
PROGRESS = ("queued", "in_progress", "waiting", "requested", "pending", "from_the_future")
RUNS = {
    **{("completed", conclusion): meaning for conclusion, meaning in CONCLUSIONS.items()},
    **{(progress, None): PENDING for progress in PROGRESS},
}


def expected(meanings: Sequence[str]) -> str:
    """The rule as it is written down: failure over pending over success, none is unknown."""
    for verdict in (FAILURE, PENDING):
        if verdict in meanings:
            return verdict
    return SUCCESS if meanings else UNKNOWN


def verdict(statuses: Sequence[str], runs: Sequence[tuple[str, str | None]]) -> str:
    found = rolled_up(
        [CommitStatus(f"s{at}", word) for at, word in enumerate(statuses)],
        [CheckRun(f"r{at}", status, conclusion) for at, (status, conclusion) in enumerate(runs)],
    )
    assert found.checks == len(statuses) + len(runs)
    assert bool(found.failing) == (found.verdict == FAILURE)
    return found.verdict


def test_every_pair_of_a_status_and_a_check_run_comes_to_what_was_agreed() -> None:
    statuses: list[str | None] = [None, *STATUSES]
    runs: list[tuple[str, str | None] | None] = [None, *RUNS]
    for status, run in product(statuses, runs):
        meanings = [STATUSES[status]] if status else []
        meanings += [RUNS[run]] if run else []
        assert verdict([status] if status else [], [run] if run else []) == expected(meanings), (status, run)


@given(st.lists(st.sampled_from(sorted(STATUSES)), max_size=5), st.lists(st.sampled_from(list(RUNS)), max_size=5))
def test_any_number_of_them_comes_to_what_was_agreed_in_any_order(
    statuses: list[str], runs: list[tuple[str, str | None]]
) -> None:
    meanings = [STATUSES[status] for status in statuses] + [RUNS[run] for run in runs]
    assert verdict(statuses, runs) == expected(meanings)
    assert verdict(statuses[::-1], runs[::-1]) == expected(meanings)


def test_no_check_at_all_is_unknown_and_no_pass() -> None:
    assert verdict([], []) == UNKNOWN


def test_skipped_and_neutral_are_a_success_only_together_and_hide_nothing() -> None:
    skipped, neutral = ("completed", "skipped"), ("completed", "neutral")
    assert verdict([], [skipped, neutral]) == SUCCESS
    assert verdict(["pending"], [skipped]) == PENDING
    assert verdict(["error"], [neutral, skipped]) == FAILURE


def test_a_running_check_that_had_failed_before_is_pending() -> None:
    assert verdict([], [("in_progress", "failure")]) == PENDING


def test_what_fails_is_named_with_githubs_own_word() -> None:
    found = rolled_up([CommitStatus("ci", "error")], [CheckRun("e2e", "completed", "timed_out")])
    assert found.failing == ("ci (error)", "e2e (timed_out)")


def test_a_hundred_check_runs_are_said_to_be_perhaps_not_all() -> None:
    runs = [CheckRun(f"r{at}", "completed", "success") for at in range(100)]
    assert rolled_up([], runs[:99]).notes == ()
    assert rolled_up([], runs).notes == ("only the first 100 check runs of a commit are counted",)


def forbidden(what: str, kind: str = "forbidden", **more: Any) -> dict[str, Any]:
    return {"path": f"/repos/acme/web/commits/*/{what}", "kind": kind, **more}


@pytest.mark.parametrize(
    ("answers", "rollup", "notes"),
    [
        ([], "failure", []),
        (
            [forbidden("check-runs")],
            "failure",
            ["the credential cannot read check runs (forbidden): they are not counted"],
        ),
        (
            [{"path": "/repos/acme/web/commits/*/check-runs", "status": 404}],
            "failure",
            ["the credential cannot read check runs (not_found): they are not counted"],
        ),
        (
            [forbidden("status")],
            "success",
            ["the credential cannot read commit statuses (forbidden): they are not counted"],
        ),
        (
            [forbidden("status"), forbidden("check-runs")],
            "unknown",
            [
                "the credential cannot read commit statuses (forbidden): they are not counted",
                "the credential cannot read check runs (forbidden): they are not counted",
            ],
        ),
    ],
)
async def test_checks_that_cannot_be_read_are_said_and_the_others_still_count(
    answers: list[dict[str, Any]], rollup: str, notes: list[str]
) -> None:
    given = state(pull_requests={"17": PULL, "18": {**PULL, "title": "Another"}})
    async with world({**given, "answers": answers}) as here:
        said, data = await here.said("list_open_pull_requests")
    assert [pull["checks"]["rollup"] for pull in data["pull_requests"]] == [rollup, rollup]
    assert data["notes"] == notes, "each once, however many pull requests there are"
    assert [line for line in said.splitlines() if line.startswith("Note: ")] == [f"Note: {note}." for note in notes]


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("rate_limited", "github.rate_limited"),
        ("secondary_limit", "github.secondary_limit"),
        ("server_error", "github.server_error"),
        ("broken_json", "github.unreadable"),
    ],
)
async def test_checks_that_are_missing_for_another_reason_are_no_rollup_at_all(kind: str, rule: str) -> None:
    async with world({**state(), "answers": [forbidden("check-runs", kind)]}) as here:
        assert await here.rule("list_open_pull_requests") == rule
        assert await here.rule("summarize_pull_request", number=17) == rule


NOW = datetime(2026, 11, 30, tzinfo=UTC)


def reviewed(*said: tuple[str | None, str], asked: tuple[str | None, ...] = ()) -> tuple[str, list[tuple[str, str]]]:
    pull = PullRequest(1, "t", "ada", "h", "0" * 40, "main", NOW, "u", requested_reviewers=asked)
    found = summed_up(pull, [Review(author, word) for author, word in said])
    return found.state, list(found.reviewers)


@pytest.mark.covers("D11")
@pytest.mark.parametrize(
    ("said", "asked", "state", "reviewers"),
    [
        ([], (), "none", []),
        ([], ("eve",), "requested", [("eve", "requested")]),
        ([("bob", "commented")], (), "commented", [("bob", "commented")]),
        ([("bob", "approved"), ("bob", "commented")], (), "approved", [("bob", "approved")]),
        ([("bob", "changes_requested"), ("bob", "approved")], (), "approved", [("bob", "approved")]),
        ([("bob", "approved"), ("bob", "changes_requested")], (), "changes_requested", [("bob", "changes_requested")]),
        ([("bob", "approved"), ("bob", "dismissed")], (), "none", [("bob", "dismissed")]),
        (
            [("bob", "approved"), ("eve", "changes_requested")],
            (),
            "changes_requested",
            [("bob", "approved"), ("eve", "changes_requested")],
        ),
        ([("bob", "changes_requested")], ("bob",), "changes_requested", [("bob", "requested")]),
        ([("bob", "pending")], (), "none", []),
        (
            [(None, "changes_requested"), (None, "approved")],
            (None,),
            "changes_requested",
            [("ghost", "requested"), ("ghost", "changes_requested"), ("ghost", "approved")],
        ),
    ],
)
def test_the_latest_decision_of_each_reviewer_counts(
    said: list[tuple[str | None, str]], asked: tuple[str | None, ...], state: str, reviewers: list[tuple[str, str]]
) -> None:
    assert reviewed(*said, asked=asked) == (state, reviewers)


@pytest.mark.covers("D11")
async def test_reviews_that_cannot_be_read_are_unknown_and_said() -> None:
    answers = [{"path": "/repos/acme/web/pulls/*/reviews", "kind": "forbidden"}]
    async with world({**state(), "answers": answers}) as here:
        _, data = await here.said("list_open_pull_requests")
    assert data["pull_requests"][0]["review_state"] == "unknown"
    assert data["pull_requests"][0]["reviewers"] == [{"name": "lin", "state": "requested"}]
    assert data["notes"] == ["the credential cannot read reviews (forbidden): they are not counted"]
