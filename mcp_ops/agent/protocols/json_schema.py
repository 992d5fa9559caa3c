"""The protocol as a JSON Schema, for providers that can hold a reply to one."""

import json
from collections.abc import Mapping
from typing import Any

from mcp_ops.agent.turns import MAX_CALLS_A_TURN

_THOUGHT: Mapping[str, Any] = {"type": "string", "maxLength": 500}
_ANY_ARGUMENTS: Mapping[str, Any] = {"type": "object"}


def turn_schema(tools: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the JSON Schema of a turn.

    Args:
        tools: Each tool's name with the schema of its arguments. None at all stands for any tool.
    """
    calls = [_call_schema({"enum": [name]}, arguments) for name, arguments in tools.items()]
    call = {"anyOf": calls} if calls else _call_schema({"type": "string"}, _ANY_ARGUMENTS)
    several = {"type": "array", "items": call, "minItems": 1, "maxItems": MAX_CALLS_A_TURN}
    kinds = {"action": call, "finish": {"type": "string"}, "actions": several}
    return {"anyOf": [_closed({"thought": _THOUGHT, kind: value}) for kind, value in kinds.items()]}


def answer_schema() -> dict[str, Any]:
    """Return the JSON Schema of a turn that may only be an answer."""
    return _closed({"thought": _THOUGHT, "finish": {"type": "string"}})


def _call_schema(name: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    # A schema that refers to its own parts cannot be moved into another one.
    refers = '"$ref"' in json.dumps(arguments)
    return _closed({"tool": name, "args": _ANY_ARGUMENTS if refers else arguments})


def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    required = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


TURN_SCHEMA: Mapping[str, Any] = turn_schema({})
"""JSON Schema of a turn that may name any tool."""
