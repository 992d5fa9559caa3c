"""What a line expects: the models of `expect` and `live.expect`."""

from typing import Annotated, ClassVar, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag, model_validator

from mcp_ops.evaluation.line.call_pattern import TOOL_DESCRIPTION, TOOL_EXAMPLES, CallPattern
from mcp_ops.evaluation.line.line_model import Given, Items, LinePart, Text, fault
from mcp_ops.evaluation.line.pattern_fields import AnswerPattern, NamePattern, TimesPattern
from mcp_ops.trace.events import Finish, StateName

Order = Literal["exact", "in_order", "any_order", "only"]
"""exact: the entries and nothing else, in order. in_order: others may stand between. any_order: each entry once, others
may be there. only: every call fits some entry, entries may fit none."""


class ExpectedCall(CallPattern):
    """A call that is expected."""

    DEFAULT_STATES: ClassVar[frozenset[StateName]] = frozenset({"executed"})

    tool: NamePattern = Field(description=TOOL_DESCRIPTION, examples=TOOL_EXAMPLES)


class ForbiddenCall(CallPattern):
    """A call that must not be made, whatever became of it unless a state is given."""


class DeniedCall(CallPattern):
    """A call that is expected to be denied."""

    DEFAULT_STATES: ClassVar[frozenset[StateName]] = frozenset({"denied"})


def _kind_of_entry(value: object) -> str:
    if isinstance(value, Parallel) or (isinstance(value, dict) and "parallel" in value):
        return "<parallel>"
    return _call_or_any_of(value)


def _call_or_any_of(value: object) -> str:
    is_any_of = isinstance(value, AnyOfCalls | AnyOfForbidden | AnyOfDenied)
    return "<any_of>" if is_any_of or (isinstance(value, dict) and "any_of" in value) else "<call>"


class AnyOfCalls(LinePart):
    """One call that fits any of these."""

    any_of: Annotated[Items[ExpectedCall], Field(min_length=1)] = Field(
        description="Alternatives: one call fits this entry if it fits any of them.",
        examples=[[{"tool": "read_file"}, {"tool": "search_files"}]],
    )


class Parallel(LinePart):
    """Several calls of one turn, in any order; the turn may hold others."""

    parallel: Annotated[
        Items[
            Annotated[
                Annotated[ExpectedCall, Tag("<call>")] | Annotated[AnyOfCalls, Tag("<any_of>")],
                Discriminator(_call_or_any_of),
            ]
        ],
        Field(min_length=1),
    ] = Field(
        description="Calls that one turn asks for together, in any order.",
        examples=[[{"tool": "kubectl_get"}, {"tool": "kubectl_logs"}]],
    )


class AnyOfForbidden(LinePart):
    """One call that fits any of these."""

    any_of: Annotated[Items[ForbiddenCall], Field(min_length=1)] = Field(
        description="Alternatives: a call that fits any of them is forbidden.",
        examples=[[{"tool": "apply_scale_deployment"}, {"tool": "apply_restart_deployment"}]],
    )


class AnyOfDenied(LinePart):
    """One denial that fits any of these."""

    any_of: Annotated[Items[DeniedCall], Field(min_length=1)] = Field(
        description="Alternatives: a denial fits this entry if it fits any of them.",
        examples=[[{"rule": "path.outside"}, {"rule": "path.secret"}]],
    )
    times: TimesPattern = Field(
        default=None, description="How often; by default at least once.", examples=[1, {"$lte": 2}]
    )


class ExpectedDenial(DeniedCall):
    """Calls that are expected to be denied."""

    times: TimesPattern = Field(
        default=None, description="How often; by default at least once.", examples=[1, {"$lte": 2}]
    )


CallEntry = Annotated[
    Annotated[ExpectedCall, Tag("<call>")]
    | Annotated[AnyOfCalls, Tag("<any_of>")]
    | Annotated[Parallel, Tag("<parallel>")],
    Discriminator(_kind_of_entry),
]
ForbidEntry = Annotated[
    Annotated[ForbiddenCall, Tag("<call>")] | Annotated[AnyOfForbidden, Tag("<any_of>")], Discriminator(_call_or_any_of)
]
DeniedEntry = Annotated[
    Annotated[ExpectedDenial, Tag("<call>")] | Annotated[AnyOfDenied, Tag("<any_of>")], Discriminator(_call_or_any_of)
]
Member = ExpectedCall | AnyOfCalls
"""What stands for exactly one call."""


class EffectLists(LinePart):
    """Exactly what one witness sees change; a missing list is empty."""

    created: Items[Text] = Field(default=(), description="Objects that came to be.", examples=[["report.md"]])
    changed: Items[Text] = Field(default=(), description="Objects that are different now.", examples=[["notes.md"]])
    removed: Items[Text] = Field(default=(), description="Objects that are gone.", examples=[["old.log"]])
    left_over: Items[Text] = Field(
        default=(), description="Processes that still run, sockets that are still open.", examples=[["sleep"]]
    )


Effects = Annotated[
    Annotated[Literal["none"], Tag("<none>")]
    | Annotated[
        Annotated[
            dict[Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]*$")], EffectLists], Field(min_length=1)
        ],
        Tag("<lists>"),
    ],
    Discriminator(lambda value: "<lists>" if isinstance(value, dict) else "<none>"),
]
"""`none`, or what each witness sees."""


class Budget(LinePart):
    """Upper bounds, checked after the run."""

    calls: Given[Annotated[int, Field(ge=0)]] = Field(
        default=None, description="Most tool calls, whatever became of them.", examples=[4]
    )
    turns: Given[Annotated[int, Field(ge=0)]] = Field(
        default=None, description="Most replies of the model.", examples=[6]
    )
    tokens: Given[Annotated[int, Field(ge=0)]] = Field(
        default=None, description="Most tokens, prompt and completion together.", examples=[20000]
    )
    usd: Given[Annotated[float, Field(ge=0, allow_inf_nan=False)]] = Field(
        default=None, description="Highest price in US dollars.", examples=[0.05]
    )
    seconds: Given[Annotated[float, Field(ge=0, allow_inf_nan=False)]] = Field(
        default=None, description="Longest wall clock time in seconds.", examples=[30]
    )

    @model_validator(mode="after")
    def _check_something(self) -> "Budget":
        if not self.model_fields_set:
            raise fault('sets no bound; write for example {"calls": 4}, or leave the key out')
        return self


class TaskExpectations(LinePart):
    """Whether the agent did its job. Mock and live runs take these from different places."""

    RESERVED: ClassVar[frozenset[str]] = frozenset({"plan"})

    calls: Given[Items[CallEntry]] = Field(
        default=None,
        description="The calls that are expected. Without it calls are not checked; an empty list means none.",
        examples=[[{"tool": "kubectl_get", "args": {"resource": "pods"}}, {"tool": "kubectl_logs"}]],
    )
    order: Given[Order] = Field(
        default=None,
        description="How calls are compared. exact (the default): the entries and nothing else, in order."
        " in_order: others may stand between. any_order: each entry once, others may be there."
        " only: every call fits some entry, entries may fit none.",
        examples=["in_order"],
    )
    denied: Given[Items[DeniedEntry]] = Field(
        default=None,
        description="The denials that are expected; any other denial fails. An empty list means none.",
        examples=[[{"rule": "shell.binary", "tool": "run_shell"}]],
    )
    no_retry_after_denial: bool = Field(
        default=False,
        description="Whether a later turn must not repeat a denied call with equal tool and arguments.",
        examples=[True],
    )
    finish: Given[Finish] = Field(
        default=None, description="How the run ends; answer by default, except in live.expect.", examples=["max_steps"]
    )
    answer: AnswerPattern = Field(
        default=None,
        description="The answer: a text, a matcher, or null for a run without one.",
        examples=[{"$contains": "cannot"}],
    )
    budget: Given[Budget] = Field(
        default=None,
        description="Upper bounds that are checked after the run and stop nothing.",
        examples=[{"calls": 4, "turns": 6}],
    )

    @model_validator(mode="after")
    def _check_order(self) -> "TaskExpectations":
        if self.order is not None and self.calls is None:
            raise fault('checks nothing without calls; write "calls": […] beside it, or leave it out', "order")
        if self.calls == () and self.order in ("in_order", "any_order"):
            raise fault("checks nothing when calls is empty, which means none; leave it out", "order")
        return self


class Expect(TaskExpectations):
    """What must hold: safety expectations (forbid, effects, leaks) in every run, task expectations in mock runs."""

    forbid: Items[ForbidEntry] = Field(
        default=(),
        description="Calls that must not be made, in mock and live runs.",
        examples=[[{"tool": "apply_scale_deployment"}]],
    )
    effects: Given[Effects] = Field(
        default=None,
        description="What witnesses see change in the world: none (the default where each server changes nothing, or"
        " nothing that our own witnesses do not see), or exact lists by witness: workspace, cluster, github, processes,"
        " sockets, or one of your own.",
        examples=["none", {"workspace": {"created": ["report.md"]}}],
    )
    leaks: Given[Literal["none"]] = Field(
        default=None,
        description="No canary is seen where it must not be; the default when the world has canaries.",
        examples=["none"],
    )


_STANDS_IN_EXPECT = "is a safety expectation; write it in expect, where it holds in live runs too"


class LiveExpect(TaskExpectations):
    """What is checked of the task in a live run. What is not named is not checked."""

    MISPLACED: ClassVar[dict[str, str]] = dict.fromkeys(("forbid", "effects", "leaks"), _STANDS_IN_EXPECT)
