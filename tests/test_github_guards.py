"""The guards of the github server: each rule fires, and its harmless neighbour is allowed."""

import re
from collections.abc import Callable
from typing import Any, get_args

import pytest
from githubworld import API, PRIVATE, PULL, TOKEN, WEB, World, state, text, world
from mcp.client import Client

from mcp_ops.gate import GATE_RULES, AuditRecord, Refuse, State, can_be_switched_off
from mcp_ops.github.api import FailureKind, GitHubError, Repository
from mcp_ops.github.rules import GUARD_RULES, OF_KIND
from mcp_ops.servers.github import RULES, TOOLS, Watchlist, create_server

pytestmark = pytest.mark.covers("D12")

READS: list[tuple[str, dict[str, Any]]] = [
    ("list_open_pull_requests", {}),
    ("summarize_pull_request", {"number": 17}),
    ("list_issues", {}),
    ("get_repo_activity", {}),
    ("get_failed_job_log", {"number": 17}),
]
OTHER = ("evil", "web")


def with_other(**more: Any) -> dict[str, Any]:
    """Return the usual GitHub and one repository that is on no list."""
    given = state()
    given["repositories"]["evil/web"] = {"pull_requests": {"17": PULL}, "issues": {"1": {"title": "x"}}, **more}
    return given


def test_rules_are_named_once_in_the_agreed_form_with_a_meaning_and_a_way_forward() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    assert set(GATE_RULES) < set(RULES)
    for rule in RULES:
        assert re.fullmatch(r"[a-z]+\.[a-z]+(_[a-z]+)*", rule.name)
        assert rule.meaning.endswith("."), rule.name
        assert rule.hint or rule.state is State.FAILED, rule.name
    for rule in GUARD_RULES:
        assert (rule.state, bool(rule.stands_for), bool(rule.limits)) == (State.DENIED, True, True)
        assert can_be_switched_off(rule)


def test_every_kind_of_failure_has_its_rule() -> None:
    assert set(OF_KIND) == set(get_args(FailureKind))
    states = {kind: rule.state for kind, rule in OF_KIND.items()}
    passing = ("rate_limited", "secondary_limit", "server", "timeout", "network")
    assert states == {kind: State.UNAVAILABLE if kind in passing else State.FAILED for kind in states}


class TestTheWatchList:
    @pytest.mark.parametrize(("tool", "arguments"), READS)
    async def test_no_tool_reads_a_repository_that_is_not_on_it(self, tool: str, arguments: dict[str, Any]) -> None:
        async with world(with_other()) as here:
            assert await here.rule(tool, OTHER, **arguments) == "github.watchlist"
            assert here.asked() == []
            assert await here.rule(tool, WEB, **arguments) is None

    async def test_it_is_said_what_is_on_it(self) -> None:
        async with world(watch=["acme/web", "acme/api"]) as here:
            reply = await here.call("list_issues", PRIVATE)
        assert text(reply) == ("GUARD DENIED: acme/private is not on the watch list; it names acme/web, acme/api")

    async def test_letter_case_makes_no_other_name(self) -> None:
        async with world(watch=["Acme/WEB"]) as here:
            assert (await here.said("list_issues", ("aCME", "wEb")))[1]["repository"] == "acme/web"

    async def test_an_extended_server_reads_what_the_token_sees(self) -> None:
        async with world(with_other(), extended=True) as here:
            for tool, arguments in READS:
                assert await here.rule(tool, OTHER, **arguments) is None
            assert (await here.client.read_resource("github://repo/evil/web")).contents

    async def test_an_extended_server_still_writes_only_where_it_may(self) -> None:
        async with world(with_other(), extended=True) as here:
            assert await here.rule("create_issue", OTHER, title="x") == "github.write_repos"

    async def test_an_empty_one_allows_nothing(self) -> None:
        async with world(watch=[]) as here:
            reply = await here.call("list_issues")
        assert text(reply).endswith("it names nothing")

    async def test_it_holds_for_resources_and_prompts_too(self) -> None:
        async with world(with_other()) as here:
            error = await here.refused("github://repo/evil/web")
            assert error.message.startswith("GUARD DENIED: evil/web is not on the watch list")
            with pytest.raises(Exception, match="GUARD DENIED: evil/web is not on the watch list"):
                await here.client.get_prompt("pr_review_brief", {"owner": "evil", "repo": "web", "number": "1"})
            assert here.asked() == []
            assert (await here.client.read_resource("github://repo/acme/api")).contents

    @pytest.mark.parametrize(("tool", "arguments"), READS)
    async def test_a_listed_name_that_leads_elsewhere_by_now_is_refused(
        self, tool: str, arguments: dict[str, Any]
    ) -> None:
        async with world(with_other(renamed_from="acme/old"), watch=["acme/old"]) as here:
            reply = await here.call(tool, ("acme", "old"), **arguments)
            assert text(reply) == "GUARD DENIED: acme/old is called evil/web by now, which is not on the watch list"
            assert len(here.asked()) <= 2, "nothing but what the name leads to was asked"
            error = await here.refused("github://repo/acme/old")
            assert error.data["rule"] == "github.watchlist"

    async def test_an_old_name_whose_new_one_is_listed_too_can_be_read(self) -> None:
        async with world(with_other(renamed_from="acme/old"), watch=["acme/old", "Evil/Web"]) as here:
            assert (await here.said("list_issues", ("acme", "old")))[1]["repository"] == "evil/web"

    async def test_a_watched_repository_that_the_token_cannot_see_is_not_found(self) -> None:
        given = state()
        given["repositories"]["acme/private"]["visible"] = False
        async with world(given) as here:
            assert await here.rule("list_issues", PRIVATE) == "github.not_found"
            assert await here.rule("create_issue", WEB, title="x") is None, "nothing private was read"


class TestWhatMayBeWritten:
    async def test_without_a_list_nothing_is_written(self) -> None:
        async with world(write=[]) as here:
            reply = await here.call("create_issue", title="x")
            assert text(reply) == "GUARD DENIED: acme/web may not be written to; the operator allows nothing"
            assert here.asked() == []

    async def test_only_a_listed_repository_is_written_to_in_any_letter_case(self) -> None:
        async with world(write=["ACME/web"]) as here:
            assert await here.rule("create_issue", API, title="x") == "github.write_repos"
            assert await here.rule("create_issue", ("acme", "WEB"), title="x") is None
            assert {name for name in here.github.snapshot() if "#10" in name} == {"acme/web#101"}

    async def test_being_watched_is_no_leave_to_write_and_the_other_way_round(self) -> None:
        async with world(watch=["acme/api"], write=["acme/web"]) as here:
            assert await here.rule("create_issue", API, title="x") == "github.write_repos"
            assert await here.rule("create_issue", WEB, title="x") is None
            assert await here.rule("list_issues", WEB) == "github.watchlist"

    async def test_a_listed_name_that_leads_elsewhere_by_now_is_not_written_to(self) -> None:
        async with world(with_other(renamed_from="acme/old"), write=["acme/old"]) as here:
            reply = await here.call("create_issue", ("acme", "old"), title="x")
            assert text(reply) == "GUARD DENIED: acme/old is called evil/web by now, which may not be written to"
            assert [asked for asked in here.asked() if asked.startswith("POST")] == []

    async def test_an_old_name_whose_new_one_is_listed_too_is_written_to_by_its_new_name(self) -> None:
        async with world(with_other(renamed_from="acme/old"), write=["acme/old", "evil/web"]) as here:
            assert (await here.said("create_issue", ("acme", "old"), title="x"))[1]["repository"] == "evil/web"
            assert [asked for asked in here.asked() if asked.startswith("POST")] == ["POST /repos/evil/web/issues"]

    async def test_a_target_that_cannot_be_looked_up_is_not_written_to(self) -> None:
        async with world({**state(), "answers": [{"path": "/repos/acme/web", "kind": "forbidden"}]}) as here:
            assert await here.rule("create_issue", title="x") == "github.forbidden"
            assert [asked for asked in here.asked() if asked.startswith("POST")] == []


class TestFromPrivateToPublic:
    @pytest.mark.parametrize(
        ("tool", "arguments"),
        [(tool, more) for tool, more in READS if "number" not in more],
        ids=str,
    )
    async def test_after_a_private_read_nothing_public_is_written(self, tool: str, arguments: dict[str, Any]) -> None:
        async with world() as here:
            assert await here.rule(tool, PRIVATE, **arguments) is None
            reply = await here.call("create_issue", WEB, title="x")
            assert text(reply) == "GUARD DENIED: acme/web is public, and acme/private was read, which is private"
            assert [asked for asked in here.asked() if asked.startswith("POST")] == []

    async def test_reading_what_is_public_stops_no_write(self) -> None:
        async with world() as here:
            for tool, arguments in READS:
                assert await here.rule(tool, WEB, **arguments) is None
            await here.client.read_resource("github://repo/acme/api")
            assert await here.rule("create_issue", WEB, title="x") is None

    async def test_the_resource_of_a_private_repository_counts_and_the_watch_list_does_not(self) -> None:
        async with world() as here:
            await here.client.read_resource("devops://watchlist")
            await here.client.get_prompt("morning_standup")
            assert await here.rule("create_issue", WEB, title="x") is None
            await here.client.read_resource("github://repo/acme/private")
            assert await here.rule("create_issue", WEB, title="x") == "github.private_to_public"

    async def test_a_private_target_may_still_be_written_to(self) -> None:
        async with world() as here:
            await here.said("list_issues", PRIVATE)
            assert await here.rule("create_issue", PRIVATE, title="x") is None

    async def test_an_issue_in_a_private_repository_is_a_read_of_it(self) -> None:
        async with world() as here:
            assert await here.rule("create_issue", PRIVATE, title="x") is None
            assert await here.rule("create_issue", WEB, title="x") == "github.private_to_public"

    async def test_a_refused_read_is_no_read(self) -> None:
        async with world(watch=["acme/web"]) as here:
            assert await here.rule("list_issues", PRIVATE) == "github.watchlist"
            assert await here.rule("create_issue", WEB, title="x") is None

    async def test_a_read_that_failed_half_way_counts(self) -> None:
        async with world({**state(), "answers": [{"path": "/repos/acme/private/issues", "kind": "forbidden"}]}) as here:
            assert await here.rule("list_issues", PRIVATE) == "github.forbidden"
            assert await here.rule("create_issue", WEB, title="x") == "github.private_to_public"

    @pytest.mark.parametrize("kind", ["server_error", "rate_limited", "forbidden", "broken_json"])
    async def test_a_target_whose_visibility_is_unknown_counts_as_public(self, kind: str) -> None:
        async with world({**state(), "answers": [{"path": "/repos/acme/web", "kind": kind}]}) as here:
            await here.said("list_issues", PRIVATE)
            reply = await here.call("create_issue", WEB, title="x")
            assert text(reply) == (
                "GUARD DENIED: acme/web did not say whether it is public, and acme/private was read, which is private"
            )

    async def test_the_target_is_looked_at_anew_for_each_write(self) -> None:
        """A private target that was made public since the last look is public."""

        class Turning:
            """GitHub, where acme/private becomes public after it was looked at twice."""

            def __init__(self, client: Any) -> None:
                self._client, self.looked = client, 0

            def __getattr__(self, name: str) -> Any:
                return getattr(self._client, name)

            async def repository(self, repo: Any) -> Repository:
                found: Repository = await self._client.repository(repo)
                self.looked += repo.name == "private"
                return found if self.looked < 3 else Repository(found.name, private=False, default_branch="main")

        async with world(around=Turning) as here:
            await here.said("list_issues", PRIVATE)
            assert await here.rule("create_issue", PRIVATE, title="x") is None
            assert await here.rule("create_issue", PRIVATE, title="x") == "github.private_to_public"

    async def test_it_is_judged_after_the_target_answered(self) -> None:
        """A private read that comes in while the target is looked up still stops the write."""
        here: World

        class Meanwhile:
            """GitHub, where another call reads something private while a target is looked up."""

            def __init__(self, client: Any) -> None:
                self._client, self.busy = client, False

            def __getattr__(self, name: str) -> Any:
                return getattr(self._client, name)

            async def repository(self, repo: Any) -> Repository:
                found: Repository = await self._client.repository(repo)
                if repo.name == "web" and not self.busy:
                    self.busy = True
                    await here.said("list_issues", PRIVATE)
                return found

        async with world(around=Meanwhile) as here:
            assert await here.rule("create_issue", WEB, title="x") == "github.private_to_public"

    async def test_it_is_remembered_for_every_client_of_the_server(self) -> None:
        async with world() as here, here.github.client() as rest:
            server = create_server(rest, Watchlist.of(["acme/private"]), write_repos=Watchlist.of(["acme/web"]))
            async with Client(server) as one:
                await one.call_tool("list_issues", {"owner": "acme", "repo": "private"})
            async with Client(server) as other:
                reply = await other.call_tool("create_issue", {"owner": "acme", "repo": "web", "title": "x"})
        assert text(reply).startswith("GUARD DENIED: acme/web is public")

    async def test_another_server_begins_with_nothing_read(self) -> None:
        for _ in range(2):
            async with world() as here:
                assert await here.rule("create_issue", WEB, title="x") is None
                await here.said("list_issues", PRIVATE)


class TestTheTokenInAText:
    @pytest.mark.parametrize(
        "arguments",
        [
            {"title": f"use {TOKEN}"},
            {"title": "x", "body": f"export GITHUB_TOKEN={TOKEN}\n"},
            {"title": "x", "body": TOKEN[:30]},
            {"title": "x", "body": " ".join(TOKEN)},
            {"title": "x", "body": TOKEN.encode().hex()},
            {"title": TOKEN[8:20], "body": TOKEN[20:]},
            {"title": "x", "labels": [TOKEN]},
        ],
    )
    async def test_it_is_not_written(self, arguments: dict[str, Any]) -> None:
        async with world() as here:
            reply = await here.call("create_issue", **arguments)
            assert reply.structured_content is not None
            assert reply.structured_content["rule"] == "github.token_in_text"
            assert TOKEN[8:20] not in reply.model_dump_json()
            assert here.asked() == []

    @pytest.mark.parametrize("body", ["ghp_", "a token ghp_…", "github_pat_ is how tokens begin", "x" * 65536])
    async def test_talk_about_tokens_is_no_token(self, body: str) -> None:
        async with world() as here:
            assert await here.rule("create_issue", title="Rotate the ghp_ token", body=body) is None


def test_no_tool_takes_a_token() -> None:
    for tool in TOOLS:
        assert [name for name in tool.arguments.model_fields if re.search("token|secret|key|auth|password", name)] == []


async def test_a_server_without_a_token_answers_that_it_has_none_and_guards_as_ever() -> None:
    watch = Watchlist.of(["acme/web"])
    async with Client(create_server(None, watch, write_repos=watch)) as client:
        for tool, arguments in (*READS, ("create_issue", {"title": "x"})):
            reply = await client.call_tool(tool, {"owner": "acme", "repo": "web", **arguments})
            assert text(reply) == "github_no_token: the server was started without GITHUB_TOKEN"
            refused = await client.call_tool(tool, {"owner": "evil", "repo": "web", **arguments})
            assert text(refused).startswith("GUARD DENIED: ")
        with pytest.raises(Exception, match="github_no_token"):
            await client.read_resource("github://repo/acme/web")
        assert (await client.read_resource("devops://watchlist")).contents


async def test_a_guard_that_breaks_denies(caplog: pytest.LogCaptureFixture) -> None:
    def broken(client: Any) -> Any:
        class Broken:
            def __getattr__(self, name: str) -> Any:
                return getattr(client, name)

            def secrets(self) -> Any:
                if self.calls:
                    self.calls -= 1
                    raise RuntimeError("CANARY")
                return ()

            calls = 1

        return Broken()

    async with world(around=broken) as here:
        reply = await here.call("create_issue", title="x")
        assert reply.structured_content is not None
        assert reply.structured_content["rule"] == "guard.error"
        assert "CANARY" not in reply.model_dump_json()
        assert here.asked() == []


Ask = Callable[[World], Any]


async def _watch(here: World) -> str | None:
    return await here.rule("list_issues", OTHER)


async def _renamed(here: World) -> str | None:
    return await here.rule("list_issues", ("acme", "old"))


async def _write(here: World) -> str | None:
    return await here.rule("create_issue", API, title="x")


async def _taint(here: World) -> str | None:
    await here.rule("list_issues", PRIVATE)
    return await here.rule("create_issue", WEB, title="x")


async def _token(here: World) -> str | None:
    return await here.rule("create_issue", WEB, title=TOKEN)


FIRING: list[tuple[str, Ask]] = [
    ("github.watchlist", _watch),
    ("github.watchlist", _renamed),
    ("github.write_repos", _write),
    ("github.private_to_public", _taint),
    ("github.token_in_text", _token),
]


def test_every_guard_rule_is_measured_below() -> None:
    assert {rule for rule, _ in FIRING} == {rule.name for rule in GUARD_RULES}


@pytest.mark.parametrize(("rule", "ask"), FIRING, ids=[f"{rule}-{ask.__name__}" for rule, ask in FIRING])
async def test_a_rule_that_is_switched_off_is_missed_and_a_rehearsal_sends_nothing(rule: str, ask: Ask) -> None:
    watch = ["acme/web", "acme/private", "acme/old"]
    given = with_other(renamed_from="acme/old")
    async with world(given, watch=watch) as here:
        assert await ask(here) == rule
    async with world(given, watch=watch, refuse=Refuse(frozenset({rule}))) as here:
        assert await ask(here) is None
    async with world(given, watch=watch, refuse=Refuse(frozenset({rule}), rehearse=True)) as here:
        assert await ask(here) is None
        assert [asked for asked in here.asked() if asked.startswith("POST")] == []
        assert [asked for asked in here.asked() if "evil" in asked and "issues" in asked] == []


async def test_the_audit_says_what_became_of_each_call() -> None:
    records: list[AuditRecord] = []
    async with world(audit=records.append) as here:
        await here.call("list_issues")
        await here.call("list_issues", OTHER)
        await here.call("create_issue", title=7)
    assert [(record.tool, record.state, record.rule) for record in records] == [
        ("list_issues", State.EXECUTED, None),
        ("list_issues", State.DENIED, "github.watchlist"),
        ("create_issue", State.DENIED, "args.invalid"),
    ]


def test_an_error_of_github_is_one_short_line() -> None:
    assert str(GitHubError("server", "a\nb" + "x" * 9999)) == "a\\nb" + "x" * 495 + "…"
