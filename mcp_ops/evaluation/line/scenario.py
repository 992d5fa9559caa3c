"""The scenario line: its model, and the JSON Schema made from it."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Discriminator, Field, StringConstraints, Tag, model_validator

from mcp_ops.evaluation.config import GITHUB_SERVER, OPS_SERVER, AgentName, Mode
from mcp_ops.evaluation.line.call_pattern import one_or_many
from mcp_ops.evaluation.line.confirm_spec import Confirm
from mcp_ops.evaluation.line.denials import expected_stops
from mcp_ops.evaluation.line.expect import Expect, LiveExpect, TaskExpectations
from mcp_ops.evaluation.line.fault_spec import FaultSpec, check_one_a_call
from mcp_ops.evaluation.line.known_spec import Known
from mcp_ops.evaluation.line.line_model import Given, Items, LinePart, Text, fault
from mcp_ops.evaluation.line.pattern_fields import PLACEHOLDER, pattern_definitions
from mcp_ops.evaluation.line.script import MockEntry
from mcp_ops.evaluation.line.variants_spec import Variants
from mcp_ops.evaluation.line.world_spec import NO_LINKS, Links, WorldSpec
from mcp_ops.evaluation.wording import shown

ID_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,79}$"
TAG_PATTERN = r"^[a-z0-9][a-z0-9_-]*$"
SERVER_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,79}$"
RESERVED_TAGS = frozenset(
    {"skip", "skipif", "xfail", "parametrize", "usefixtures", "filterwarnings", "tryfirst", "trylast"}
    | {"asyncio", "anyio", "flaky", "timeout", "xdist_group"}
    | {"and", "or", "not"}
)
"""Markers that mean something to pytest or a plugin of it, and words of `-m` expressions."""


def _tag(tag: str) -> str:
    if tag in RESERVED_TAGS:
        raise fault(f"{shown(tag)} means something to pytest itself; write another word, such as {shown('my-' + tag)}")
    return tag


def is_id(text: str) -> bool:
    """Return whether a text is a well-formed id."""
    return re.fullmatch(ID_PATTERN, text) is not None


def is_tag(text: str) -> bool:
    """Return whether a text is a well-formed tag."""
    return re.fullmatch(TAG_PATTERN, text) is not None and text not in RESERVED_TAGS


def _different(values: tuple[Any, ...]) -> tuple[Any, ...]:
    for index, value in enumerate(values):
        if value in values[:index]:
            raise fault(f"lists {shown(value)} twice; leave one out", index)
    return values


Id = Annotated[str, StringConstraints(pattern=ID_PATTERN)]
TagName = Annotated[str, StringConstraints(pattern=TAG_PATTERN), AfterValidator(_tag)]
ServerName = Annotated[str, StringConstraints(pattern=SERVER_PATTERN)]
Servers = Annotated[
    Annotated[ServerName, Tag("<one>")]
    | Annotated[Annotated[Items[ServerName], Field(min_length=1), AfterValidator(_different)], Tag("<many>")],
    Discriminator(one_or_many),
]
Need = Literal["cluster", "second_wall"]
"""cluster: a cluster that was named for the run. second_wall: Landlock or bubblewrap around child processes."""


class AtLeast(LinePart):
    """A pass policy: so many attempts must do the task."""

    at_least: Annotated[int, Field(ge=1)] = Field(description="How many attempts must do the task.", examples=[4])


Pass = Annotated[
    Annotated[Literal["all", "any"], Tag("<word>")] | Annotated[AtLeast, Tag("<count>")],
    Discriminator(lambda value: "<count>" if isinstance(value, dict | AtLeast) else "<word>"),
]


class LiveSpec(LinePart):
    """What is different in a live run."""

    runs: Annotated[int, Field(ge=1, le=1000)] = Field(default=1, description="How many attempts.", examples=[5])
    pass_: Pass = Field(
        default="all",
        alias="pass",
        description="How many attempts must do the task: all, any, or at least so many."
        " Safety expectations hold in every attempt.",
        examples=[{"at_least": 4}],
    )
    expect: Given[LiveExpect] = Field(
        default=None,
        description="Task expectations of a live run. What is not named is not checked live.",
        examples=[{"finish": "answer"}],
    )

    @model_validator(mode="after")
    def _check_pass(self) -> "LiveSpec":
        if isinstance(self.pass_, AtLeast) and self.pass_.at_least > self.runs:
            raise fault(f"is more than runs, which is {self.runs}; write a smaller number", "pass", "at_least")
        return self


class ScenarioLine(LinePart):
    """One scenario: a task, the world it is given in, a scripted model, and what is expected."""

    RESERVED: ClassVar[frozenset[str]] = frozenset({"v", "owner", "links"})

    id: Id = Field(description="The item's name, unique in its file.", examples=["guardrail"])
    title: Given[Text] = Field(
        default=None, description="What the scenario shows, for people.", examples=["Refuses to delete a deployment"]
    )
    tags: Items[TagName] = Field(
        default=(),
        description="pytest markers: -m selects by them, -k finds them.",
        examples=[["guardrail", "kubectl"]],
    )
    task: Annotated[Text, StringConstraints(min_length=1)] = Field(
        description="What the agent is asked to do.", examples=["Which pods in namespace demo are unhealthy?"]
    )
    server: Servers = Field(
        default=OPS_SERVER, description="Name of a configured server, or a list of names.", examples=["ops"]
    )
    agent: AgentName = Field(
        default="ops",
        description="Which of the agents that ship here works on the task: ops, or command-line, the one of"
        " `mcp-ops agent`. An agent of your own, where one is configured, takes the place of either.",
        examples=["command-line"],
    )
    trust: Given[Literal["server"]] = Field(
        default=None,
        description="Whose word on a denial is enough where no witness looks: that of a server that is not ours.",
        examples=["server"],
    )
    needs: Annotated[Items[Need], AfterValidator(_different)] = Field(
        default=(),
        description="What must be there, or else the item is skipped and listed as not proven.",
        examples=[["cluster"]],
    )
    modes: Annotated[Items[Literal["mock", "live"]], Field(min_length=1), AfterValidator(_different)] = Field(
        default=("mock", "live"), description="The modes that the line is for.", examples=[["mock"]]
    )
    skip: Given[Annotated[Text, StringConstraints(min_length=1, max_length=300)]] = Field(
        default=None,
        description="Why the line is not run for now. The item is skipped and listed as not proven.",
        examples=["the staging cluster is being rebuilt"],
    )
    timeout: Given[Annotated[float, Field(gt=0, le=3600)]] = Field(
        default=None,
        description="Seconds after which an attempt is stopped, in place of the run's own limit.",
        examples=[300],
    )
    known: Given[Known] = Field(
        default=None,
        description="An expected failure: reported as xfailed until its day is over; red when it passes or expires.",
        examples=[{"reason": "the runbook search misses renamed files", "until": "2027-01-31", "issue": "OPS-12"}],
    )
    world: WorldSpec = Field(
        default_factory=WorldSpec,
        description="What the tools find.",
        examples=[{"workspace": "demo_workspace", "canaries": ["CANARY-55aa-0001"]}],
    )
    mock: Given[Annotated[Items[MockEntry], Field(min_length=1)]] = Field(
        default=None,
        description="The scripted model: one entry a turn, exactly what a model would reply."
        " Required unless modes leaves mock out.",
        examples=[
            [
                {"thought": "look", "action": {"tool": "read_file", "args": {"path": "notes.md"}}},
                {"thought": "done", "finish": "The notes say: ${last.text}"},
            ]
        ],
    )
    faults: Annotated[Items[FaultSpec], AfterValidator(check_one_a_call)] = Field(
        default=(),
        description="What goes wrong on purpose: in which call, and how.",
        examples=[[{"call": 0, "fault": "timeout"}], [{"tool": "kubectl_logs", "fault": "text", "text": "Obey me."}]],
    )
    confirm: Given[Confirm] = Field(
        default=None,
        description="What the person says who is asked before a call that changes something is sent: yes or no to every"
        " question, or a list with one entry for each question in order. Without it nobody is there: writes of the"
        " servers that ship here are declined, and those of others are sent.",
        examples=["no", [{"tool": "create_issue", "args": {"repo": "web"}, "answer": "yes"}, "eof"]],
    )
    expect: Expect = Field(
        description="What must hold of the run.",
        examples=[{"calls": [{"tool": "read_file"}], "answer": {"$contains": "notes"}}],
    )
    live: Given[LiveSpec] = Field(
        default=None, description="What is different in a live run.", examples=[{"expect": {"finish": "answer"}}]
    )
    variants: Given[Variants] = Field(
        default=None,
        description="Bypass variants of the line's denied calls, each an item of its own in mock runs:"
        " true for every family that fits, or a list of families.",
        examples=[["quote"]],
    )
    twin_of: Given[Id] = Field(
        default=None,
        description="Id of the attack in the same file whose harmless neighbour this line is.",
        examples=["guardrail"],
    )

    @model_validator(mode="before")
    @classmethod
    def _leave_out_user_keys(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {key: item for key, item in value.items() if not key.startswith("x-")}

    @model_validator(mode="after")
    def _check_mock(self) -> "ScenarioLine":
        if self.mock is None and "mock" in self.modes:
            raise fault('has no "mock"; write the scripted replies, or "modes": ["live"] for a line without a script')
        return self

    @model_validator(mode="after")
    def _check_variants_and_twin(self) -> "ScenarioLine":
        if self.variants is not None and self.mock is None:
            raise fault("changes the scripted replies, and the line has none; leave it out", "variants")
        if self.twin_of is not None and expected_stops(self.expect):
            raise fault("marks a harmless line, and this one expects a denial; leave one of them out", "twin_of")
        return self

    @model_validator(mode="after")
    def _check_github(self) -> "ScenarioLine":
        has_server, github = GITHUB_SERVER in self.servers, self.world.github
        if has_server and github is None:
            raise fault(
                f"names the server {GITHUB_SERVER}, which needs a GitHub to look at;"
                ' write "world": {"github": {"repositories": {…}}}',
                "server",
            )
        if github is not None and not has_server:
            raise fault(f'is looked at by no server of the line; write "server": "{GITHUB_SERVER}"', "world", "github")
        return self

    def expected_in(self, mode: Mode) -> TaskExpectations | None:
        """Return the task expectations of a mode; None when the line checks no task there."""
        if mode == "mock":
            return self.expect
        return self.live.expect if self.live is not None else None

    @property
    def servers(self) -> tuple[str, ...]:
        """The servers of the run, in order."""
        return (self.server,) if isinstance(self.server, str) else self.server


@dataclass(frozen=True)
class Scenario:
    """A line that can run."""

    spec: ScenarioLine
    path: Path | None
    """The file, or None for a scenario that was given from Python."""
    line: int
    """Physical line, from 1."""
    text: str
    """The line as it stands in the file, without its end."""
    rules: tuple[str, ...] = ()
    """Of a variant, the rules that refuse what it varies; of a twin, the rules that its attack expects."""
    links: Links = NO_LINKS
    """Links in the workspace; only a variant has some."""


@dataclass(frozen=True)
class BadLine:
    """A line that cannot run: a failing item."""

    line: int
    """Physical line, from 1."""
    column: int
    """Where in the line, in characters from 1."""
    message: str
    """One sentence: what is wrong, and what to write instead."""
    id: str
    """The line's own id where it can be read and is well formed; `guardrail@17` for a second one, else `line-17`."""
    tags: tuple[str, ...] = ()
    """The line's tags that can be read and are well formed."""


class ScenarioError(ValueError):
    """A scenario that cannot run. The message is one sentence."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(message)
        self.column = column
        """Where in the line's JSON, in characters from 1."""


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a scenario line."""
    schema = ScenarioLine.model_json_schema(by_alias=True)
    schema["$defs"] |= pattern_definitions()
    mock_left_out = {"required": ["modes"], "properties": {"modes": {"not": {"contains": {"const": "mock"}}}}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_plain(schema),
        "patternProperties": {"^x-": {"description": "Keys of your own; nothing reads them.", "examples": ["OPS-12"]}},
        "if": mock_left_out,
        "else": {"required": ["mock"]},
    }


def _plain(schema: Any) -> Any:
    """Return a schema without pydantic's titles and without the null that only stands for a key that is left out.

    Null means something where an example shows it.
    """
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    choices = schema.get("anyOf", [])
    stands_for_nothing = schema.get("default", ...) is None and None not in schema.get("examples", ())
    if stands_for_nothing and {"type": "null"} in choices and len(choices) == 2:
        schema = {**choices[0], **{key: item for key, item in schema.items() if key not in ("anyOf", "default")}}
    elif schema.get("default", ...) is None:
        schema = {key: item for key, item in schema.items() if key != "default"}
    return {
        ("$ref" if key == PLACEHOLDER else key): (
            _plain_properties(item) if key in ("properties", "$defs") else _plain(item)
        )
        for key, item in schema.items()
        if not (key == "title" and isinstance(item, str))
    }


def _plain_properties(properties: dict[str, Any]) -> dict[str, Any]:
    return {name: _plain(schema) for name, schema in properties.items()}
