"""The strict JSON protocol between the agent and its model: one object a turn, and nothing around it.

`{"thought": "…", "action": {"tool": "…", "args": {…}}}`, `{"thought": "…", "actions": [{…}, …]}` for several calls in
one turn, or `{"thought": "…", "finish": "the answer"}`. The object may stand in a code fence or after closed think
blocks. What could be read in two ways is not read at all: it is malformed, and the model is told what to write.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mcp_ops.agent.turns import MAX_CALLS_A_TURN, Malformed, RequestedCall, Turn
from mcp_ops.llm import strict_json
from mcp_ops.text import one_line

MAX_REPLY_CHARACTERS = 262_144
"""A longer reply is not read."""

EXPECTED = '{"thought": "…", "action": {"tool": "…", "args": {…}}} or {"thought": "…", "finish": "…"}'
"""The two usual shapes of a turn, as a sentence shows them."""

_TURN_KEYS = ("thought", "action", "actions", "finish")
_CALL_KEYS = ("tool", "args")
_THINK_TAGS = ("think", "thinking")
_FENCE = "```"


class _Fault(ValueError):
    """Why a reply is no turn. Never leaves this module."""


def parse_turn(text: str) -> Turn | Malformed:
    """Read one reply of a model. Never raises, whatever the reply."""
    try:
        return _turn(_object(text))
    except _Fault as fault:
        return Malformed(str(fault))


def _object(text: str) -> dict[str, Any]:
    if len(text) > MAX_REPLY_CHARACTERS:
        raise _Fault(f"the reply is longer than {MAX_REPLY_CHARACTERS} characters; write one short JSON object")
    body = text.strip()
    if not body:
        raise _Fault(f"the reply is empty; write {EXPECTED}")
    if not body.startswith("{"):
        body = _unfenced(_after_thinking(body))
    value = _load(body)
    if not isinstance(value, dict):
        raise _Fault(f"the reply is JSON but {_kind(value)}; write one object: {EXPECTED}")
    return value


def _after_thinking(body: str) -> str:
    while tag := next((tag for tag in _THINK_TAGS if body.startswith(f"<{tag}>")), None):
        _, closing, body = body.partition(f"</{tag}>")
        if not closing:
            raise _Fault(f"the <{tag}> block is not closed; close it, then write one JSON object")
        body = body.lstrip()
    if not body:
        raise _Fault(f"nothing stands after the think block; write {EXPECTED}")
    return body


def _unfenced(body: str) -> str:
    if not body.startswith(_FENCE):
        return body
    opening, _, rest = body.partition("\n")
    language = opening.removeprefix(_FENCE).strip()
    if not rest.endswith(_FENCE) or not (language.isalnum() or not language):
        raise _Fault("the code fence does not enclose the whole reply; write one JSON object and nothing around it")
    return rest.removesuffix(_FENCE).strip()


def _load(body: str) -> Any:
    try:
        return strict_json.loads(body)
    except json.JSONDecodeError as error:
        raise _Fault(_syntax_fault(body, error)) from None
    except strict_json.Ambiguous as why:
        raise _Fault(str(why)) from None


def _syntax_fault(body: str, error: json.JSONDecodeError) -> str:
    """Name the usual faults in words of our own: Python's differ between its versions."""
    before, rest = body[: error.pos].rstrip(), body[error.pos :].lstrip()
    if not body.startswith(("{", "[")):
        return f"the reply does not begin with a JSON object; write one object and no text around it: {EXPECTED}"
    if error.msg.startswith("Extra data"):
        if rest.startswith("{"):
            return "the reply holds more than one JSON object; write exactly one, for the next step only"
        return "text follows the JSON object; write the object and nothing after it"
    if error.msg.startswith("Invalid control character"):
        return "a string holds a raw line break, tab or control character; write it as \\n, \\t or \\u00XX"
    if not rest or error.msg.startswith("Unterminated string"):
        return "the JSON object is cut off before its end; write a shorter one, complete"
    # Python 3.13 points at the comma, earlier ones at the bracket behind it.
    if (rest[0] in "]}" and before.endswith(",")) or (rest[0] == "," and rest[1:].lstrip().startswith(("]", "}"))):
        return "a comma stands before a closing bracket; leave the trailing comma out"
    where = f"line {error.lineno}, column {error.colno}"
    return f"the reply is not valid JSON at {where}; write double quotes and no comments"


def _turn(value: Mapping[str, Any]) -> Turn:
    if "tool_calls" in value:
        raise _Fault(f"native tool calls are not used here; write the call as text: {EXPECTED}")
    _check_keys(value, _TURN_KEYS, "the object")
    thought = value.get("thought")
    if not isinstance(thought, str | None):
        raise _Fault(f"thought is {_kind(thought)}; write a string")
    kinds = [key for key in _TURN_KEYS[1:] if value.get(key) is not None]
    if len(kinds) != 1:
        found = " and ".join(kinds) if kinds else "neither action nor finish"
        raise _Fault(f"the object has {found}; write exactly one of action, actions and finish")
    if kinds == ["finish"]:
        if not isinstance(value["finish"], str):
            raise _Fault(f"finish is {_kind(value['finish'])}; write the answer as a string")
        return Turn(thought or "", finish=value["finish"])
    wanted = value["actions"] if kinds == ["actions"] else [value["action"]]
    if not isinstance(wanted, Sequence) or isinstance(wanted, str) or not 1 <= len(wanted) <= MAX_CALLS_A_TURN:
        raise _Fault(f'actions must be a list of 1 to {MAX_CALLS_A_TURN} calls {{"tool": "…", "args": {{…}}}}')
    return Turn(thought or "", calls=tuple(_call(entry) for entry in wanted))


def _call(value: Any) -> RequestedCall:
    if not isinstance(value, dict):
        raise _Fault(f'an action is {_kind(value)}; write {{"tool": "…", "args": {{…}}}}')
    _check_keys(value, _CALL_KEYS, "an action")
    tool, args = value.get("tool"), value.get("args")
    if not isinstance(tool, str):
        raise _Fault(f"the action's tool is {_kind(tool)}; write the tool's name as a string")
    # Null stands for "none given": the call is made, and the tool's own schema says what is missing.
    if args is not None and not isinstance(args, dict):
        raise _Fault(f"the action's args are {_kind(args)}; write an object, not JSON inside a string")
    return RequestedCall(tool, args or {})


def _check_keys(value: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    for key in value:
        if key not in known:
            raise _Fault(f"{what} has an unknown key {one_line(key, 40)!r}; the keys are {', '.join(known)}")


def _kind(value: Any) -> str:
    if value is None:
        return "null or missing"
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list", dict: "an object"}
    return names[type(value)]
