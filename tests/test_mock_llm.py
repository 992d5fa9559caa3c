"""MockLLM: a script, said word by word."""

import json

import pytest

from mcp_ops.agent import Malformed, RequestedCall, Turn, parse_turn
from mcp_ops.llm import (
    CallResult,
    Message,
    MockLLM,
    ModelTurn,
    NativeCall,
    NativeMockLLM,
    NativeReply,
    PastCall,
    ResultsTurn,
    ScriptError,
    UserTurn,
)

pytestmark = pytest.mark.covers("A18")

SYSTEM = Message("system", "protocol and tools")
TASK = Message("user", "Task: look at the pods")


def asked(*contents: str) -> list[Message]:
    return [SYSTEM, TASK, *(Message("user", content) for content in contents)]


def script(*turns: dict[str, object], calls: list[PastCall] | None = None) -> MockLLM:
    return MockLLM(turns, calls=lambda: calls or [])


async def test_each_entry_is_said_once_in_order_as_a_model_would_write_it() -> None:
    model = script({"thought": "look", "action": {"tool": "x", "args": {"n": 1}}}, {"finish": "dönè"})
    first, second = await model.complete(asked()), await model.complete(asked())
    assert parse_turn(first.text) == Turn("look", calls=(RequestedCall("x", {"n": 1}),))
    assert second.text == '{"finish": "dönè"}'
    assert (second.model, second.finish_reason, second.attempts, model.name) == ("mock", "stop", 1, "mock")


async def test_an_entry_goes_through_the_strict_protocol_too() -> None:
    both = {"thought": "t", "action": {"tool": "x", "args": {}}, "finish": "ok"}
    reply = await script(both).complete(asked())
    assert isinstance(parse_turn(reply.text), Malformed)


async def test_a_raw_entry_is_said_literally() -> None:
    raw = 'Sure! ${last.text} $${ {"finish": "x"} \ud800'
    assert (await script({"raw": raw}).complete(asked())).text == raw


async def test_references_are_looked_up_when_the_turn_comes_not_earlier() -> None:
    calls: list[PastCall] = []
    model = MockLLM(
        [{"finish": "one"}, {"action": {"tool": "kubectl_logs", "args": {"pod": "${last.text /web-[0-9]+/}"}}}],
        calls=lambda: calls,
    )
    await model.complete(asked())
    calls.append(PastCall("web-1 Running", "executed", None, ""))
    reply = await model.complete(asked("web-1 Running"))
    assert json.loads(reply.text)["action"]["args"] == {"pod": "web-1"}


async def test_a_value_with_quotes_and_line_breaks_stays_inside_its_string() -> None:
    text = 'a "quoted"\nline", "finish": "x'
    reply = await script({"finish": "${last.text}"}, calls=[PastCall(text, "executed", None, "")]).complete(asked(text))
    assert parse_turn(reply.text) == Turn("", finish=text)


async def test_a_reference_that_finds_nothing_names_the_turn_and_the_reference() -> None:
    model = script(
        {"finish": "a"}, {"finish": "${call[0].text /redis/}"}, calls=[PastCall("web", "executed", None, "")]
    )
    await model.complete(asked())
    with pytest.raises(ScriptError) as caught:
        await model.complete(asked("web"))
    assert str(caught.value).startswith("turn 2 of the mock script: ${call[0].text /redis/} finds nothing")
    assert caught.value.kind == "script"
    assert not caught.value.infrastructure


async def test_an_agent_that_drops_a_result_cannot_pass() -> None:
    model = script({"finish": "${last.text}"}, calls=[PastCall("web-1", "executed", None, "")])
    with pytest.raises(ScriptError, match="the agent did not show"):
        await model.complete(asked())


async def test_the_models_own_earlier_words_do_not_count_as_shown() -> None:
    model = script({"finish": "${last.text}"}, calls=[PastCall("web-1", "executed", None, "")])
    with pytest.raises(ScriptError, match="the agent did not show"):
        await model.complete([*asked(), Message("assistant", "I guess web-1")])


async def test_a_script_that_ends_too_early_says_which_turn_is_missing() -> None:
    model = script({"finish": "a"})
    await model.complete(asked())
    with pytest.raises(ScriptError, match="ends after turn 1 and the agent asked for another"):
        await model.complete(asked())


async def test_entries_that_were_not_asked_for_are_counted() -> None:
    model = script({"finish": "a"}, {"finish": "b"}, {"finish": "c"})
    assert model.unused == 3
    await model.complete(asked())
    assert model.unused == 2


@pytest.mark.covers("D10")
async def test_a_model_with_native_calls_says_a_script_as_text_and_calls() -> None:
    one, two = {"tool": "x", "args": {"n": 1}}, {"tool": "y", "args": {}}
    script = [{"thought": "both", "actions": [one, two]}, {"thought": "t", "action": two}, {"finish": "done"}]
    model = NativeMockLLM([*script, {"raw": "as it is ${last.text}"}], calls=list)
    said = [await model.converse("s", [UserTurn("Task: x")], []) for _ in range(4)]
    assert [reply.text for reply in said] == ["both", "t", "done", "as it is ${last.text}"]
    assert [(call.name, call.arguments) for call in said[0].calls] == [("x", {"n": 1}), ("y", {})]
    assert len({call.id for reply in said for call in reply.calls}) == 3
    assert said[2] == NativeReply("done", model="mock", finish_reason="stop")
    with pytest.raises(ScriptError, match="ends after turn 4"):
        await model.converse("s", [], [])


@pytest.mark.covers("D10")
async def test_a_native_script_refers_only_to_what_came_back_as_a_result() -> None:
    past = [PastCall("web-1", "executed", None, "")]

    async def finish(*turns: ModelTurn | ResultsTurn) -> str:
        return (await NativeMockLLM([{"finish": "${last.text}"}], calls=lambda: past).converse("s", turns, [])).text

    assert await finish(ResultsTurn((CallResult("id", "x", "pod web-1"),))) == "web-1"
    with pytest.raises(ScriptError, match="did not show to the model"):
        await finish(ModelTurn("web-1", (NativeCall("id", "web-1", {}),)))
