"""The pattern of one call, as the entries of `calls`, `denied` and `forbid` share it."""

from typing import Annotated, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from mcp_ops.evaluation.line.line_model import Given, Items, LinePart, fault
from mcp_ops.evaluation.line.pattern_fields import ArgumentsPattern, NamePattern, ResultPattern
from mcp_ops.trace.events import StateName

ALL_STATES: frozenset[StateName] = frozenset({"executed", "failed", "denied", "unavailable", "declined"})


TOOL_DESCRIPTION = "Name of the tool, or a matcher of it. `server.tool` is the tool of one server."
TOOL_EXAMPLES = ["kubectl_logs", {"$glob": "kubectl_*"}]


def one_or_many(value: object) -> str:
    """Return the tag by which a value is told from a list of such values."""
    return "<many>" if isinstance(value, list | tuple) else "<one>"


States = Annotated[
    Annotated[Literal[StateName, "any"], Tag("<one>")]
    | Annotated[Annotated[Items[StateName], Field(min_length=1)], Tag("<many>")],
    Discriminator(one_or_many),
]
"""A state, `any`, or a list of states."""


class CallPattern(LinePart):
    """One call, described by as much of it as matters."""

    DEFAULT_STATES: ClassVar[frozenset[StateName]] = ALL_STATES

    tool: NamePattern = Field(default=None, description=TOOL_DESCRIPTION, examples=TOOL_EXAMPLES)
    server: NamePattern = Field(
        default=None, description="Name of the server that was asked, or a matcher.", examples=["ops"]
    )
    state: Given[States] = Field(
        default=None,
        description="What became of the call: a state, a list of states, or any."
        " By default executed in calls, denied in denied, any in forbid.",
        examples=["denied", ["failed", "unavailable"], "any"],
    )
    rule: NamePattern = Field(
        default=None,
        description="The rule in whose name a call was denied, failed, unavailable or declined, or a matcher.",
        examples=["shell.binary", {"$glob": "path.*"}],
    )
    args: ArgumentsPattern = Field(
        default=None,
        description="Arguments that the call must have; others may be there. Values may be matchers.",
        examples=[{"namespace": "demo", "pod": {"$glob": "payments-api-*"}}],
    )
    result: ResultPattern = Field(
        default=None,
        description="What came back: text, structured and exit_code. A text or a bare matcher looks at the text.",
        examples=[{"$contains": "CrashLoopBackOff"}, {"exit_code": 0}],
    )

    @property
    def states(self) -> frozenset[StateName]:
        """The states that fit."""
        if self.state is None:
            return self.DEFAULT_STATES
        if isinstance(self.state, tuple):
            return frozenset(self.state)
        return ALL_STATES if self.state == "any" else frozenset({self.state})

    @model_validator(mode="after")
    def _check_rule(self) -> "CallPattern":
        if self.rule is not None and self.states == {"executed"}:
            raise fault(
                'can never fit, because an executed call has no rule; write "state": "denied" beside it', "rule"
            )
        return self
