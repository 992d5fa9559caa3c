"""The scripted model: the entries of `mock`."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from mcp_ops.agent.turns import MAX_CALLS_A_TURN
from mcp_ops.evaluation.line.line_model import Given, Items, LinePart, fault
from mcp_ops.evaluation.wording import Path
from mcp_ops.llm.references import check_references

_KINDS = ("action", "actions", "finish", "raw")


def _check_texts(value: object) -> object:
    for path, text, at_key in _texts(value, ()):
        for sentence in check_references({text: None} if at_key else text):
            raise fault(f"holds a reference that is wrong: {sentence}", *path, at_key=at_key)
    return value


def _texts(value: object, path: Path) -> Iterator[tuple[Path, str, bool]]:
    """Yield every string in a JSON value with its path, and whether it is a key."""
    if isinstance(value, str):
        yield path, value, False
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield (*path, key), key, True
            yield from _texts(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*path, index))


WithReferences = Annotated[str, AfterValidator(_check_texts)]
"""A text that may refer to earlier results."""


class ScriptedCall(LinePart):
    """A call as a model asks for it."""

    tool: WithReferences = Field(description="Name of the tool.", examples=["read_file"])
    args: Annotated[dict[str, Any], AfterValidator(_check_texts)] = Field(
        default_factory=dict, description="Its arguments; texts may hold references.", examples=[{"path": "notes.md"}]
    )


class MockEntry(LinePart):
    """One reply of the scripted model: action, actions, finish or raw."""

    thought: Given[WithReferences] = Field(
        default=None, description="What the model says it thinks.", examples=["look first"]
    )
    action: Given[ScriptedCall] = Field(
        default=None, description="One call.", examples=[{"tool": "read_file", "args": {"path": "notes.md"}}]
    )
    actions: Given[Annotated[Items[ScriptedCall], Field(min_length=1, max_length=MAX_CALLS_A_TURN)]] = Field(
        default=None,
        description="Several calls of one turn, run in order.",
        examples=[[{"tool": "kubectl_get", "args": {"resource": "pods"}}, {"tool": "kubectl_logs"}]],
    )
    finish: Given[WithReferences] = Field(
        default=None, description="The answer.", examples=["I cannot delete it: ${denied.reason}"]
    )
    raw: Given[str] = Field(
        default=None,
        description="A reply taken literally, for replies that are no valid turn. It takes no references.",
        examples=["I will now delete the deployment."],
    )

    @model_validator(mode="after")
    def _check_kind(self) -> "MockEntry":
        kinds = [kind for kind in _KINDS if kind in self.model_fields_set]
        if len(kinds) != 1:
            given = " and ".join(kinds) or "none"
            raise fault(f"must have exactly one of {', '.join(_KINDS)}, and has {given}; write a broken reply as raw")
        if kinds == ["raw"] and self.thought is not None:
            raise fault("stands beside raw, which is the whole reply; leave it out", "thought", at_key=True)
        return self

    def reply(self) -> dict[str, Any]:
        """Return the entry as it stands in the line."""
        return self.model_dump(exclude_unset=True)
