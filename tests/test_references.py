"""References: how a script names what really came back."""

import json

import pytest

from mcp_ops.llm.references import BrokenReference, NotFound, PastCall, check_references, resolve

pytestmark = pytest.mark.covers("A18")

PODS = "payments-api-7d9f 0/1 CrashLoopBackOff\nweb-1 1/1 Running\nlogs/2026-11-30/app.log"
CALLS = [
    PastCall(PODS, "executed", None, ""),
    PastCall("GUARD DENIED: first", "denied", "shell.binary", "kubectl is not allowed here"),
    PastCall("GUARD DENIED: second", "denied", "path.outside", "../x leads outside"),
    PastCall('say "hi"\tnow', "executed", None, ""),
]
SHOWN = [call.text for call in CALLS] + [call.reason for call in CALLS]


def filled(value: object, calls: list[PastCall] = CALLS, shown: list[str] = SHOWN) -> object:
    assert check_references(value) == []
    return resolve(value, calls, lambda: shown)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${last.text}", 'say "hi"\tnow'),
        ("${call[0].text}", PODS),
        ("${call[-1].text}", 'say "hi"\tnow'),
        ("${call[-4].text}", PODS),
        ("${call[0].text /payments-api-[a-z0-9-]+/}", "payments-api-7d9f"),
        ("${call[0].text /(web-[0-9]+) +1\\/1/}", "web-1"),
        ("${call[0].text /logs\\/([0-9-]+)\\/app/}", "2026-11-30"),
        ("${call[0].text /[0-9]{4}/}", "2026"),
        ("${call[0].text /(?m)^web.*$/}", "web-1 1/1 Running"),
        ("${call[0].text   /web/  }", "web"),
        ("${denied.reason}", "../x leads outside"),
        ("${denied.text}", "GUARD DENIED: second"),
        ("${call[1].reason /^kubectl/}", "kubectl"),
        ("pod ${call[0].text /web-1/} and ${call[0].text /Running/}!", "pod web-1 and Running!"),
        ('${call[3].text /["]hi["]/}', '"hi"'),
    ],
)
def test_a_reference_is_replaced_by_what_it_finds(text: str, expected: str) -> None:
    assert filled(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$${last.text}", "${last.text}"),
        ("a $${ b", "a ${ b"),
        ("$$${last.text}", "$${last.text}"),
        ("$${call[0].text} ${last.text /hi/}", "${call[0].text} hi"),
        ("echo ${HOME} ${lasting.text} ${call(0)} ${deniedx}", "echo ${HOME} ${lasting.text} ${call(0)} ${deniedx}"),
        ("${", "${"),
        ("$last.text {last.text}", "$last.text {last.text}"),
        ("", ""),
    ],
)
def test_what_does_not_begin_like_a_reference_is_text(text: str, expected: str) -> None:
    assert filled(text) == expected


def test_references_are_found_at_any_depth_and_other_values_stay() -> None:
    value = {"action": {"tool": "x", "args": {"a": ["${last.text /hi/}", 1, None, True, 2.5], "b": {}}}}
    assert filled(value) == {"action": {"tool": "x", "args": {"a": ["hi", 1, None, True, 2.5], "b": {}}}}


def test_what_a_reference_brings_in_is_not_read_again() -> None:
    calls = [PastCall("${denied.reason} $${", "executed", None, "")]
    assert filled("${last.text}", calls, [calls[0].text]) == "${denied.reason} $${"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("${call[7].text}", "the number of calls so far is 4"),
        ("${call[-5].text}", "the number of calls so far is 4"),
        ("${call[0].text /redis/}", "finds nothing in the text of that call"),
        ("${call[0].text /web(x)?/}", "finds nothing in the text of that call"),
        ("${call[0].text /z*/}", "finds nothing in the text of that call"),
        ("${call[0].reason}", "finds nothing in the reason of that call"),
    ],
)
def test_a_reference_that_finds_nothing_says_which_and_why(text: str, why: str) -> None:
    with pytest.raises(NotFound) as caught:
        filled(f"see {text}!")
    assert str(caught.value).startswith(text)
    assert why in str(caught.value)


@pytest.mark.parametrize("text", ["${last.text}", "${call[0].text}"])
def test_without_any_call_there_is_nothing_to_find(text: str) -> None:
    with pytest.raises(NotFound, match="the number of calls so far is 0"):
        filled(text, [])


def test_without_a_denial_the_word_denied_finds_nothing() -> None:
    with pytest.raises(NotFound, match="no call was denied so far"):
        filled("${denied.reason}", [CALLS[0]])


def test_a_value_that_the_model_was_not_shown_is_not_found() -> None:
    with pytest.raises(NotFound, match="the agent did not show"):
        filled("${call[0].text /web-1/}", shown=["the task names no pod"])


@pytest.mark.parametrize("escape_all", [True, False])
def test_a_value_may_have_been_shown_json_escaped(escape_all: bool) -> None:
    text = 'line "one"\nzwei: ü'
    shown = [json.dumps({"result": text}, ensure_ascii=escape_all)]
    assert filled("${last.text}", [PastCall(text, "executed", None, "")], shown) == text


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("${call[x].text}", "write ${call[0].text}"),
        ("${call[].text}", "write ${call[0].text}"),
        ("${call[0.text}", "write ${call[0].text}"),
        ("${call[0]}", "write ${call[0].text}"),
        ("${call[0].rule}", "with text or reason after the point"),
        ("${last.}", "with text or reason after the point"),
        ("${denied.exit_code}", "with text or reason after the point"),
        ("${denied.reasons}", "with text or reason after the point"),
        ("${last.text", "is not closed"),
        ("${last.text web}", "is not closed"),
        ("${last.text /web}", "has a pattern without an end"),
        ("${last.text /web\\/}", "has a pattern without an end"),
        ("${last.text /web/ /x/}", "is not closed"),
        ("${last.text /(web/}", "RE2 does not take"),
        ("${last.text /(?=web)/}", "RE2 does not take"),
        ("${last.text /(a)\\1/}", "RE2 does not take"),
        ("${last.text /\ud800/}", "RE2 does not take"),
    ],
)
def test_a_broken_reference_is_reported_with_how_to_write_it(text: str, how: str) -> None:
    [problem] = check_references({"thought": "t", "finish": f"see {text}"})
    assert how in problem
    assert problem.isprintable()
    with pytest.raises(BrokenReference):
        resolve(text, CALLS, lambda: SHOWN)


def test_every_broken_reference_of_an_entry_is_reported() -> None:
    entry = {"actions": [{"tool": "a", "args": {"x": "${last.}"}}, {"tool": "b", "args": {"y": ["${call[z].text}"]}}]}
    assert len(check_references(entry)) == 2


def test_a_reference_in_a_key_is_reported() -> None:
    [problem] = check_references({"action": {"tool": "x", "args": {"${last.text}": 1}}})
    assert "only values may hold references" in problem


def test_a_raw_reply_takes_no_references_so_none_is_broken() -> None:
    assert check_references({"raw": "${last. ${call[}"}) == []


def test_an_argument_that_is_called_raw_is_no_raw_reply() -> None:
    assert check_references({"action": {"tool": "x", "args": {"raw": "${last.}"}}}) != []
