"""The person of a line: what is answered when a call that changes something waits for a yes."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from mcp_ops.evaluation.line.call_pattern import TOOL_DESCRIPTION, one_or_many
from mcp_ops.evaluation.line.line_model import Items, LinePart
from mcp_ops.evaluation.line.pattern_fields import ArgumentsPattern, NamePattern

Word = Literal["yes", "no", "eof"]
"""What a person can do: say yes, say no, or end the input."""


class ScriptedAnswer(LinePart):
    """One answer, and the question that it is for."""

    tool: NamePattern = Field(
        default=None, description=TOOL_DESCRIPTION, examples=["create_issue", {"$glob": "create_*"}]
    )
    args: ArgumentsPattern = Field(
        default=None,
        description="Arguments that the person is shown, or a matcher of them.",
        examples=[{"title": {"$contains": "502"}}],
    )
    answer: Word = Field(description="yes, no, or eof: the input ends, which is a no.", examples=["yes"])


ConfirmEntry = Annotated[
    Annotated[Word, Tag("<word>")] | Annotated[ScriptedAnswer, Tag("<entry>")],
    Discriminator(lambda value: "<entry>" if isinstance(value, dict | ScriptedAnswer) else "<word>"),
]
Confirm = Annotated[
    Annotated[Literal["yes", "no"], Tag("<one>")] | Annotated[Items[ConfirmEntry], Tag("<many>")],
    Discriminator(one_or_many),
]
"""One word for every question, or an entry for each of them in order."""
