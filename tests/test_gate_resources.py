"""Resources, prompts, output schemas and hidden values: what the gate does besides calls."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS
from pydantic import Field

from mcp_ops.gate import (
    TOOL_ERROR,
    Arguments,
    AuditRecord,
    NoArguments,
    Output,
    Prompt,
    Refuse,
    Resource,
    Result,
    Rule,
    State,
    Tool,
    ToolClass,
    build_server,
    executed,
    stopped,
)

CLOSED = Rule("demo.closed", State.DENIED, "The shelf is closed.", "Take another one.")
ABSENT = Rule("demo.absent", State.UNAVAILABLE, "Nobody is there.", "Come again.")
SECRET = "s3cr3t-0000-value"


class Shelf(Arguments):
    shelf: str = Field(pattern=r"^[a-z]+$")


def guard(arguments: Shelf, _: dict[str, Any], refuse: Refuse) -> str:
    if arguments.shelf == "closed":
        refuse(CLOSED, "the shelf is closed")
    if arguments.shelf == "breaks":
        raise KeyError("CANARY")
    return arguments.shelf


async def read(shelf: str, library: dict[str, Any], _: Refuse) -> Result:
    library.setdefault("read", []).append(shelf)
    if shelf == "absent":
        return stopped(ABSENT, "nobody is there")
    if shelf == "endless":
        return executed("", books=["x" * 1000] * 100)
    return executed("", books=[f"on {shelf}", "\x1b[31mred\u202e", SECRET])


def listed(library: dict[str, Any]) -> Sequence[Mapping[str, str]]:
    return [{"shelf": name} for name in library["shelves"]]


SHELF = Resource("shelf", "Books of a shelf.", Shelf, guard, read, uri="books://shelf/{shelf}", listed=listed)


async def everything(_: None, library: dict[str, Any], __: Refuse) -> Result:
    return executed("", shelves=library["shelves"])


ALL = Resource("all", "All shelves.", NoArguments, lambda *_: None, everything, uri="books://all")


async def speak(shelf: str, _: dict[str, Any], __: Refuse) -> Result:
    return executed(f"Read shelf {shelf}; \x1b[31m{SECRET}")


TALK = Prompt("talk", "Talk about a shelf.", Shelf, guard, speak)


class Count(Output):
    count: int = Field(description="How many.")


async def count(shelf: str, _: dict[str, Any], __: Refuse) -> Result:
    return executed(f"{SECRET} {len(shelf)}", count="many" if shelf == "many" else len(shelf))


COUNT = Tool("count", "Count.", Shelf, guard, count, ToolClass.READ_ONLY, output=Count)


def hide(value: object) -> object:
    return json.loads(json.dumps(value).replace(SECRET, "<hidden>"))


def library(**options: Any) -> tuple[Any, dict[str, Any]]:
    context: dict[str, Any] = {"shelves": ["poems", "maps"]}
    server = build_server(
        "library", [COUNT], context, instructions="", resources=[ALL, SHELF], prompts=[TALK], hide=hide, **options
    )
    return server, context


async def failure(asked: Any) -> MCPError:
    with pytest.raises(MCPError) as error:
        await asked
    return error.value


async def test_resources_are_listed_by_address_and_as_forms() -> None:
    server, _ = library()
    async with Client(server) as client:
        resources = (await client.list_resources()).resources
        (template,) = (await client.list_resource_templates()).resource_templates
    assert [str(each.uri) for each in resources] == ["books://all", "books://shelf/poems", "books://shelf/maps"]
    assert (template.uri_template, template.name) == ("books://shelf/{shelf}", "shelf")


async def test_a_resource_is_json_that_was_cleaned_and_holds_nothing_hidden() -> None:
    server, _ = library()
    async with Client(server) as client:
        (contents,) = (await client.read_resource("books://shelf/poems")).contents
    assert json.loads(contents.text) == {"books": ["on poems", "red<U+202E>", "<hidden>"]}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("uri", "code", "sentence", "rule"),
    [
        ("books://shelf/closed", INVALID_PARAMS, "GUARD DENIED: the shelf is closed", "demo.closed"),
        ("books://shelf/UP", INVALID_PARAMS, "GUARD DENIED: 'shelf': string should match", "args.invalid"),
        ("books://shelf/%70oems", INVALID_PARAMS, "GUARD DENIED: 'shelf': string should match", "args.invalid"),
        ("books://shelf/poems\n", INVALID_PARAMS, "GUARD DENIED: 'shelf': string should match", "args.invalid"),
        ("books://shelf/", INVALID_PARAMS, "GUARD DENIED: 'shelf': string should match", "args.invalid"),
        ("books://shelf/breaks", INVALID_PARAMS, "GUARD DENIED: the guard of shelf could not", "guard.error"),
        ("books://shelf/absent", INTERNAL_ERROR, "demo_absent: nobody is there", "demo.absent"),
        ("books://shelf/endless", INTERNAL_ERROR, "tool_error: the resource is over 65536 bytes", "tool.error"),
        ("books://shelf/a/b", INVALID_PARAMS, "resource_unknown: there is no resource", "resource.unknown"),
        ("books://ALL", INVALID_PARAMS, "resource_unknown: there is no resource", "resource.unknown"),
        ("file:///etc/passwd", INVALID_PARAMS, "resource_unknown: there is no resource", "resource.unknown"),
    ],
)
async def test_a_read_that_is_refused_or_fails_is_an_error_with_a_sentence_and_its_rule(
    uri: str, code: int, sentence: str, rule: str
) -> None:
    server, context = library()
    async with Client(server) as client:
        error = await failure(client.read_resource(uri))
    assert error.code == code
    assert error.message.startswith(sentence)
    assert (error.data["rule"], "CANARY" in str(error.data)) == (rule, False)
    assert context.get("read", []) == [name for name in ("absent", "endless") if uri.endswith(name)]


async def test_the_rule_of_a_resource_can_be_switched_off_and_a_rehearsal_reads_nothing() -> None:
    for refuse, read_there in ((Refuse(frozenset({"demo.closed"})), ["closed"]), (None, [])):
        server, context = library(refuse=refuse or Refuse(frozenset({"demo.closed"}), rehearse=True))
        async with Client(server) as client:
            (contents,) = (await client.read_resource("books://shelf/closed")).contents
        assert context.get("read", []) == read_there
        assert ("Nothing was run" in contents.text) is (read_there == [])  # type: ignore[union-attr]


async def test_a_prompt_is_listed_with_its_arguments_and_its_text_is_cleaned_and_holds_nothing_hidden() -> None:
    server, _ = library()
    async with Client(server) as client:
        (prompt,) = (await client.list_prompts()).prompts
        (message,) = (await client.get_prompt("talk", {"shelf": "maps"})).messages
    assert [(each.name, each.required) for each in prompt.arguments or []] == [("shelf", True)]
    assert (message.role, message.content.text) == ("user", "Read shelf maps; <hidden>")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("talk", {"shelf": "closed"}, "GUARD DENIED: the shelf is closed"),
        ("talk", {}, "GUARD DENIED: 'shelf' is missing"),
        ("talk", {"shelf": "maps", "shelve": "x"}, "GUARD DENIED: unknown argument 'shelve' (did you mean 'shelf'?)"),
        ("walk", {}, "prompt_unknown: there is no prompt 'walk'; there are talk"),
    ],
)
async def test_a_prompt_that_is_refused_is_an_error_with_a_sentence(
    name: str, arguments: dict[str, str], sentence: str
) -> None:
    server, _ = library()
    async with Client(server) as client:
        error = await failure(client.get_prompt(name, arguments))
    assert (error.code, error.message.startswith(sentence)) == (INVALID_PARAMS, True)


async def test_a_server_without_resources_and_prompts_does_not_claim_to_have_any() -> None:
    async with Client(build_server("plain", [COUNT], {}, instructions="")) as client:
        capabilities = client.server_capabilities
    assert (capabilities.resources, capabilities.prompts) == (None, None)
    assert capabilities.tools is not None


async def test_an_output_schema_is_listed_with_what_every_executed_call_says() -> None:
    server, _ = library()
    async with Client(server) as client:
        (tool,) = (await client.list_tools()).tools
        reply = await client.call_tool("count", {"shelf": "maps"})
    assert tool.output_schema is not None
    assert sorted(tool.output_schema["properties"]) == ["count", "full_length", "state", "truncated"]
    assert tool.output_schema["additionalProperties"] is False
    expected = {"state": "executed", "truncated": False, "full_length": len("<hidden> 4"), "count": 4}
    assert reply.structured_content == expected


async def test_a_result_that_does_not_fit_its_schema_is_not_sent_and_the_audit_says_that_it_failed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    records: list[AuditRecord] = []
    server, _ = library(audit=records.append)
    async with Client(server) as client:
        reply = await client.call_tool("count", {"shelf": "many"})
    assert reply.structured_content is not None
    assert (reply.is_error, reply.structured_content["rule"]) == (True, TOOL_ERROR.name)
    assert "does not fit its own output schema" in reply.structured_content["reason"]
    assert [(record.state, record.rule) for record in records] == [(State.FAILED, TOOL_ERROR.name)]
    assert "count" in caplog.text, "the operator's log says what did not fit"


async def test_a_refusal_needs_no_schema_and_a_rehearsal_promises_none() -> None:
    server, _ = library()
    async with Client(server) as client:
        assert (await client.call_tool("count", {"shelf": "closed"})).is_error
    server, _ = library(refuse=Refuse(frozenset({"demo.closed"}), rehearse=True))
    async with Client(server) as client:
        (tool,) = (await client.list_tools()).tools
        reply = await client.call_tool("count", {"shelf": "closed"})
    assert (tool.output_schema, reply.is_error is True) == (None, False)


async def test_what_is_hidden_stands_in_no_reason_either() -> None:
    async def tell(_: str, __: dict[str, Any], ___: Refuse) -> Result:
        return stopped(ABSENT, f"it echoed \x1b[31m{SECRET[:6]}\x1b[0m{SECRET[6:]}")

    tool = Tool("tell", "Tell.", Shelf, guard, tell, ToolClass.READ_ONLY)
    async with Client(build_server("library", [tool], {}, instructions="", hide=hide)) as client:
        reply = await client.call_tool("tell", {"shelf": "maps"})
    assert reply.structured_content is not None
    assert reply.structured_content["reason"] == "it echoed <hidden>"
    assert SECRET not in reply.model_dump_json()
