"""How dangerous a listed tool is: the worst of its hints and its name, unless configuration says otherwise."""

import pytest

from mcp_ops.agent.policies.classes import DESTRUCTIVE_WORDS, MUTATING_WORDS, class_of
from mcp_ops.agent.session import ToolHints, ToolInfo

READS = ToolHints(read_only=True)
WRITES = ToolHints(read_only=False, destructive=False)


def tool(name: str, hints: ToolHints = READS, *, server: str = "web", own: bool = False) -> ToolInfo:
    return ToolInfo(name, "", {}, hints=hints, server=server, own=own)


@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        (ToolHints(), "destructive"),
        (ToolHints(read_only=True), "read_only"),
        (ToolHints(read_only=True, destructive=False), "read_only"),
        (ToolHints(read_only=True, destructive=True), "destructive"),
        (ToolHints(read_only=False), "destructive"),
        (ToolHints(read_only=False, destructive=True), "destructive"),
        (ToolHints(read_only=False, destructive=False), "mutating"),
        (ToolHints(destructive=False), "mutating"),
    ],
)
def test_a_hint_that_is_not_given_is_the_worse_one(hints: ToolHints, expected: str) -> None:
    assert class_of(tool("pods", hints)) == expected


@pytest.mark.parametrize(
    "name",
    [
        *("delete_pod", "deletePod", "DeletePod", "delete-pod", "delete.pod", "DELETE_POD", "delete", "__delete_pod"),
        *("web_delete_pod", "web.delete_pod", "web.web_delete_pod"),
    ],
)
def test_a_name_that_destroys_contradicts_a_hint_that_reads(name: str) -> None:
    assert class_of(tool(name)) == "destructive"


@pytest.mark.parametrize(
    "name", ["create_issue", "applyManifest", "scale-deployment", "run_query", "HTTPPost", "patch"]
)
def test_a_name_that_changes_something_is_mutating_at_least(name: str) -> None:
    expected = "read_only" if name == "HTTPPost" else "mutating"
    assert class_of(tool(name)) == expected
    assert class_of(tool(name, ToolHints())) == "destructive"


@pytest.mark.parametrize(
    "name", ["list_deleted_pods", "deleted_pods", "undelete", "get_create_date", "settings", "", "_"]
)
def test_only_the_first_whole_word_of_a_name_counts(name: str) -> None:
    assert class_of(tool(name)) == "read_only"


def test_a_harmless_name_makes_nothing_less_dangerous() -> None:
    assert class_of(tool("list_pods", ToolHints())) == "destructive"
    assert class_of(tool("get_pods", WRITES)) == "mutating"


def test_the_hints_of_a_server_that_ships_here_are_enough() -> None:
    assert class_of(tool("run_shell", own=True)) == "read_only"
    assert class_of(tool("run_shell", own=False)) == "mutating"
    assert class_of(tool("create_issue", WRITES, own=True)) == "mutating"


def test_a_bare_name_in_the_configuration_is_not_meant_for_one_of_two_servers_that_have_the_tool() -> None:
    assert class_of(tool("web.delete_pod"), {"delete_pod": "read_only"}) == "destructive"


@pytest.mark.parametrize(
    ("listed", "name"),
    [("delete_pod", "delete_pod"), ("delete_pod", "web.delete_pod"), ("web.delete_pod", "web.delete_pod")],
)
def test_configuration_wins_in_both_directions(listed: str, name: str) -> None:
    assert class_of(tool(listed), {name: "read_only"}) == "read_only"
    assert class_of(tool("list_pods"), {"list_pods": "destructive"}) == "destructive"
    assert class_of(tool(listed), {"other.delete_pod": "read_only", "delete": "read_only"}) == "destructive"


def test_no_word_has_two_classes() -> None:
    assert DESTRUCTIVE_WORDS.isdisjoint(MUTATING_WORDS)
