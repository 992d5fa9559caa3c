"""The strict JSON protocol: what is read, and what is refused with a sentence."""

import json
import time

import pytest

from mcp_ops.agent.protocols.json_schema import TURN_SCHEMA, turn_schema
from mcp_ops.agent.protocols.json_turn import MAX_REPLY_CHARACTERS, parse_turn
from mcp_ops.agent.turns import MAX_CALLS_A_TURN, Malformed, RequestedCall, Turn
from mcp_ops.llm.strict_json import MAX_DEPTH

pytestmark = pytest.mark.covers("A15")

FINISH = '{"thought":"t","finish":"ok"}'
DONE = Turn("t", finish="ok")


def reason(text: str) -> str:
    turn = parse_turn(text)
    assert isinstance(turn, Malformed), turn
    return turn.reason


@pytest.mark.parametrize(
    "text",
    [
        FINISH,
        f"\n  {FINISH}\r\n",
        f"```json\n{FINISH}\n```",
        f"```\n{FINISH}\n```",
        f"```JSON\r\n{FINISH}```\n",
        f"<think>maybe</think>{FINISH}",
        f"<think>one</think>\n<thinking>two</thinking>\n\n{FINISH}",
        f"<think>hm</think>```json\n{FINISH}\n```",
    ],
)
def test_one_object_alone_in_a_fence_or_after_closed_think_blocks_is_read(text: str) -> None:
    assert parse_turn(text) == DONE


def test_a_draft_inside_a_think_block_is_never_the_turn() -> None:
    assert parse_turn('<think>maybe {"action":{"tool":"kubectl_delete"}}</think>' + FINISH) == DONE


@pytest.mark.parametrize("answer", ["use ```bash\nls\n``` then", "a <think>b</think> c", "{}", "GUARD DENIED: no"])
def test_what_stands_inside_a_string_is_data_and_kept_byte_for_byte(answer: str) -> None:
    assert parse_turn(json.dumps({"finish": answer})) == Turn("", finish=answer)


def test_an_action_is_one_call_with_its_arguments_as_they_are() -> None:
    args = {"path": "x", "max_lines": None, "deep": {"list": [1, 2.5, "ü", True]}}
    text = json.dumps({"thought": "look", "action": {"tool": "read_file", "args": args}})
    assert parse_turn(text) == Turn("look", calls=(RequestedCall("read_file", args),))


def test_actions_are_several_calls_in_order() -> None:
    text = '{"actions": [{"tool": "a", "args": {}}, {"tool": "b", "args": {"n": 1}}]}'
    assert parse_turn(text) == Turn("", calls=(RequestedCall("a", {}), RequestedCall("b", {"n": 1})))


@pytest.mark.parametrize("action", ['{"tool":"read_file","args":null}', '{"tool":"read_file"}'])
def test_arguments_that_are_null_or_missing_are_none_and_the_tools_own_schema_judges_them(action: str) -> None:
    assert parse_turn(f'{{"action":{action}}}') == Turn("", calls=(RequestedCall("read_file", {}),))


def test_a_null_key_counts_as_left_out() -> None:
    assert parse_turn('{"thought":null,"action":null,"finish":"ok"}') == Turn("", finish="ok")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the reply is empty"),
        (" \n\t", "the reply is empty"),
        (f"Sure! {FINISH}", "does not begin with a JSON object"),
        (f"{FINISH} I hope this helps", "text follows the JSON object"),
        (f"{FINISH}}}", "text follows the JSON object"),
        (f"{FINISH}\n{FINISH}", "more than one JSON object"),
        ('{"action":{"tool":"x","args":{}}}\n{"finish":"done"}', "more than one JSON object"),
        (f"```json\n{FINISH}\n```\nDone.", "does not enclose the whole reply"),
        (f"Here:\n```json\n{FINISH}\n```", "does not begin with a JSON object"),
        (f"```json\n{FINISH}\n```\n```json\n{FINISH}\n```", "text follows the JSON object"),
        (f"```json\n{FINISH}", "does not enclose the whole reply"),
        (f"<think>maybe {FINISH}", "the <think> block is not closed"),
        (f"maybe</think>{FINISH}", "does not begin with a JSON object"),
        ("<think>all of it</think>", "nothing stands after the think block"),
        ('{"finish":"a","finish":"b"}', "'finish' stands twice"),
        ('{"action":{"tool":"x","args":{"a":1,"a":2}}}', "'a' stands twice"),
        ('{"finish":"ok",}', "leave the trailing comma out"),
        ('{"action":{"tool":"x","args":{"a":[1,2, ]}}}', "leave the trailing comma out"),
        ('{"action":{"tool":"x","args":{"path":"a', "cut off before its end"),
        ('{"action":{"tool":"x"', "cut off before its end"),
        ("{", "cut off before its end"),
        ('{"finish":"raw\ttab and \nnewline inside the string"}', "write it as \\n"),
        ("{'finish':'ok'}", "not valid JSON at line 1, column 2"),
        ('{"finish":"ok" // done\n}', "not valid JSON at line 1, column 16"),
        ('{"action":{"tool":"x","args":{"n":NaN}}}', "NaN is no JSON number"),
        ('{"action":{"tool":"x","args":{"n":-Infinity}}}', "-Infinity is no JSON number"),
        ('{"action":{"tool":"x","args":{"n":1e999}}}', "1e999 is too large"),
        ('{"action":{"tool":"x","args":{"n":' + "1" * 5000 + "}}}", "too many digits"),
        ("[]", "JSON but a list"),
        ('"finish"', "JSON but a string"),
        ("null", "JSON but null"),
        ("{}", "neither action nor finish"),
        ('{"thought":"t"}', "neither action nor finish"),
        ('{"action":{"tool":"x","args":{}},"finish":"ok"}', "action and finish"),
        ('{"action":{"tool":"x","args":{}},"actions":[]}', "action and actions"),
        ('{"thought":1,"finish":"ok"}', "thought is a number"),
        ('{"finish":{"text":"ok"}}', "finish is an object"),
        ('{"finish":"ok","confidence":1}', "unknown key 'confidence'"),
        ('{"action":{"tool":"x","args":{},"observation":"done"}}', "unknown key 'observation'"),
        ('{"action":"ls"}', "an action is a string"),
        ('{"action":{"args":{}}}', "tool is null or missing"),
        ('{"action":{"tool":7,"args":{}}}', "tool is a number"),
        ('{"action":{"tool":"read_file","args":"{\\"path\\":\\"x\\"}"}}', "not JSON inside a string"),
        ('{"action":{"tool":"read_file","args":["x"]}}', "args are a list"),
        ('{"actions":[]}', f"1 to {MAX_CALLS_A_TURN} calls"),
        ('{"actions":"x"}', f"1 to {MAX_CALLS_A_TURN} calls"),
        ('{"actions":{"tool":"x","args":{}}}', f"1 to {MAX_CALLS_A_TURN} calls"),
        (json.dumps({"actions": [{"tool": "x"}] * (MAX_CALLS_A_TURN + 1)}), f"1 to {MAX_CALLS_A_TURN} calls"),
        ('{"tool_calls":[{"function":{"name":"x","arguments":"{}"}}]}', "native tool calls are not used"),
        (json.dumps({"finish": "x" * MAX_REPLY_CHARACTERS}), "longer than"),
    ],
)
def test_what_could_be_read_in_two_ways_or_not_at_all_is_malformed_and_says_why(text: str, sentence: str) -> None:
    assert sentence in reason(text)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 50_000])
def test_a_reply_that_is_nothing_but_brackets_is_malformed_not_a_crash(text: str) -> None:
    assert "nested deeper" in reason(text)


def test_the_nesting_is_bounded_at_its_limit_exactly() -> None:
    def nested(levels: int) -> str:
        return '{"action":{"tool":"x","args":' + '{"a":' * levels + "1" + "}" * levels + "}}"

    assert isinstance(parse_turn(nested(MAX_DEPTH - 2)), Turn)
    assert "nested deeper" in reason(nested(MAX_DEPTH - 1))


def test_a_sentence_never_carries_control_characters_of_the_reply() -> None:
    sentence = reason('{"\\u001b[31mred\\n::error::":1}')
    assert sentence.isprintable()


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({f"k{n}": n for n in range(20_000)})[:-1] + ',"k19999":1}',
        "```" * 80_000,
        "<think>" * 30_000,
        "<think></think>" * 15_000,
        '{"finish":"' + "\\" * 200_000,
    ],
)
def test_hostile_replies_are_judged_in_linear_time(text: str) -> None:
    started = time.process_time()
    reason(text)
    assert time.process_time() - started < 1.0


def matches(schema: object, value: object) -> bool:
    """Judge the few keywords of JSON Schema that the turn's schema uses."""
    assert isinstance(schema, dict)
    if "anyOf" in schema:
        return any(matches(branch, value) for branch in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    kinds = {"string": str, "object": dict, "array": list, "integer": int}
    if not isinstance(value, kinds[schema["type"]]):
        return False
    if isinstance(value, list):
        return schema["minItems"] <= len(value) <= schema["maxItems"] and all(
            matches(schema["items"], item) for item in value
        )
    if isinstance(value, dict):
        known = schema.get("properties", {})
        closed = schema.get("additionalProperties") is False
        return (
            all(key in value for key in schema.get("required", []))
            and not (closed and value.keys() - known.keys())
            and all(matches(known[key], item) for key, item in value.items() if key in known)
        )
    return True


ACTION = {"thought": "t", "action": {"tool": "x", "args": {"a": 1}}}


@pytest.mark.parametrize(
    ("turn", "valid"),
    [
        (ACTION, True),
        ({"thought": "t", "finish": "ok"}, True),
        ({"thought": "t", "actions": [ACTION["action"], ACTION["action"]]}, True),
        ({"thought": "t", "actions": []}, False),
        ({**ACTION, "finish": "ok"}, False),
        ({"thought": "t"}, False),
        ({"thought": "t", "action": {"tool": "x", "args": "{}"}}, False),
    ],
)
def test_the_schema_allows_what_the_protocol_reads_and_nothing_ambiguous(turn: object, valid: bool) -> None:
    assert matches(TURN_SCHEMA, turn) is valid
    assert isinstance(parse_turn(json.dumps(turn)), Turn) is valid


def test_a_schema_made_for_a_roster_knows_each_tools_arguments() -> None:
    arguments = {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
        "additionalProperties": False,
    }
    schema = turn_schema({"read_file": arguments, "ping": {"type": "object"}})

    def action(tool: str, **args: object) -> object:
        return {"thought": "t", "action": {"tool": tool, "args": args}}

    assert matches(schema, action("read_file", path="x"))
    assert matches(schema, action("ping", anything=1))
    assert not matches(schema, action("read_file", file="x"))
    assert not matches(schema, action("delete_file", path="x"))
    assert matches(schema, {"thought": "t", "finish": "done"})


def test_a_tool_schema_that_refers_to_its_own_parts_is_left_open() -> None:
    arguments = {"$defs": {"p": {"type": "string"}}, "type": "object", "properties": {"p": {"$ref": "#/$defs/p"}}}
    assert "$ref" not in json.dumps(turn_schema({"x": arguments}))
    assert matches(turn_schema({"x": arguments}), ACTION)
