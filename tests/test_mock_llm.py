"""MockLLM: a script, said word by word."""

import json

import pytest

from mcp_ops.agent.protocol import Malformed, RequestedCall, Turn, parse_turn
from mcp_ops.llm import Message, MockLLM, PastCall, ScriptError

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
