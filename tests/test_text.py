import base64
import json
import re
import time
from urllib.parse import quote

import pytest

from mcp_ops.text import Redactor, cap, clean, clean_value, find_value, inert, needles, one_line, quoted_block


@pytest.mark.covers("A26")
@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("plain text, tab\t and line\n", "plain text, tab\t and line\n"),
        ("grüße 漢字 🎉 é", "grüße 漢字 🎉 é"),
        ("👩‍💻", "👩<U+200D>💻"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;never closed", ""),
        ("\x9b31mred\x9d0;t\x9cx", "redx"),
        ("\x1bPdevice\x1b\\x", "x"),
        ("\x1bcx", "x"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\0b\x07c\x08d\x7fe", "a<U+0000>b<U+0007>c<U+0008>d<U+007F>e"),
        ("a\u202eb\u2066c\u200bd\ufeffe\u2028f\u00adg", "a<U+202E>b<U+2066>c<U+200B>d<U+FEFF>e<U+2028>f<U+00AD>g"),
        ("tag\U000e0041\U000e007f end", "tag end"),
        ("variation\ufe00\ufe0dx", "variationx"),
        ("lone \ud83d and \udcff", "lone \ufffd and \ufffd"),
        ("", ""),
    ],
)
def test_what_can_act_is_removed_or_made_visible(hostile: str, shown: str) -> None:
    assert clean(hostile) == shown
    assert clean(shown) == shown


@pytest.mark.covers("A26")
def test_clean_text_can_always_be_encoded_and_holds_no_control_character() -> None:
    everything = "".join(
        map(chr, [*range(0x3000), *range(0xD7F0, 0xE010), *range(0xFE00, 0x10000), *range(0xE0000, 0xE0200)])
    )
    shown = clean(everything)
    shown.encode()
    assert [c for c in shown if c not in "\n\t" and (ord(c) < 32 or 0x7F <= ord(c) < 0xA0)] == []


@pytest.mark.covers("A26")
@pytest.mark.parametrize(
    "text", ["\x1b" * 200_000, "\x1b[" * 100_000, "\x1b]" * 100_000, "\x9d" * 200_000, "\r" * 200_000]
)
def test_cleaning_is_linear(text: str) -> None:
    start = time.process_time()
    clean(text)
    assert time.process_time() - start < 1


def test_every_string_of_a_value_is_cleaned_keys_too() -> None:
    value = {"a\x1b[1m": ["\ud800", {"b": "\u202e"}, ("\0",)], "n": 1, "t": True, "z": None}
    assert clean_value(value) == {"a": ["\ufffd", {"b": "<U+202E>"}, ["<U+0000>"]], "n": 1, "t": True, "z": None}


def test_one_line_is_one_line_within_its_limit() -> None:
    assert one_line("a\nb\tc\x1b[1m\r\nd") == "a\\nb c\\nd"
    assert one_line("x" * 300, 10) == "x" * 9 + "…"
    assert one_line("x" * 10, 10) == "x" * 10


def test_a_quoted_block_begins_no_line_with_outside_text() -> None:
    assert quoted_block("::error::x\n\x1b[1mb\r::warning::") == "  | : :error::x\n  | b\n  | : :warning::"


@pytest.mark.covers("H13")
@pytest.mark.parametrize(
    "command", ["::error::x", "  ::warning::x", "##[error]x", "x ##vso[task.complete]", "##teamcity[x]"]
)
def test_inert_text_holds_no_line_that_a_runner_obeys(command: str) -> None:
    shown = inert(f"first\n{command}")
    assert not re.search(r"^\s*::|##[\w-]*\[", shown, re.MULTILINE)
    assert "".join(shown.split()) == "".join(f"first{command}".split())


@pytest.mark.parametrize("keep", ["head", "ends"])
@pytest.mark.parametrize("text", ["x" * 5000, "é" * 5000, "🎉" * 2000, "a漢" * 3000])
@pytest.mark.parametrize("limit", [100, 101, 102, 103, 1000])
def test_a_cut_text_fits_and_stays_text(text: str, limit: int, keep: str) -> None:
    capped = cap(text, limit, keep=keep)  # type: ignore[arg-type]
    assert len(capped.text.encode()) <= limit
    assert capped.truncated
    assert capped.full_length == len(text.encode())
    assert "\ufffd" not in capped.text
    assert f"of {capped.full_length} bytes cut]" in capped.text


def test_a_text_at_the_limit_is_whole() -> None:
    capped = cap("é" * 50, 100)
    assert (capped.text, capped.truncated, capped.full_length) == ("é" * 50, False, 100)


def test_ends_keeps_the_beginning_and_the_end() -> None:
    capped = cap("begin " + "x" * 5000 + " end", 200, keep="ends")
    assert capped.text.startswith("begin ")
    assert capped.text.endswith(" end")
    assert cap("begin " + "x" * 5000 + " end", 200).text.startswith("begin ")


VALUE = 's3cr3t "väl/ue"+\\x'


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (f"a {VALUE} b", "plain"),
        (json.dumps({"k": VALUE}), "json"),
        (json.dumps({"k": VALUE}, ensure_ascii=False), "json"),
        (f"?q={quote(VALUE, safe='')}&", "url"),
        (f"?q={quote(VALUE, safe='').lower()}&", "url"),
        ("nothing here", None),
        ("", None),
    ],
)
def test_a_value_is_found_in_every_encoding(text: str, encoding: str | None) -> None:
    assert find_value(text, VALUE) == encoding


@pytest.mark.parametrize("before", ["", "x", "xy", "xyz"])
@pytest.mark.parametrize("after", ["", "x", "xy"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_value_is_found_in_base64_at_every_alignment(before: str, after: str, encode: object) -> None:
    text = encode(f"{before}CANARY-55aa-0001{after}".encode()).decode()  # type: ignore[operator]
    assert find_value(f"data: {text}", "CANARY-55aa-0001") == "base64"


def test_the_plain_spelling_comes_first_and_none_is_empty() -> None:
    spellings = needles(VALUE)
    assert spellings[0] == ("plain", VALUE)
    assert all(spelling for _, spelling in spellings)
    assert needles("") == ()


def test_redaction_replaces_every_encoding_and_the_longer_value_first() -> None:
    redactor = Redactor({"secret-value": "canary-1", "secret-value-2": "canary-2"})
    coded = base64.b64encode(b"x secret-value y").decode()
    assert redactor.text("a secret-value-2 b secret-value") == "a <redacted:canary-2> b <redacted:canary-1>"
    assert "<redacted:canary-1>" in redactor.text(coded)
    assert redactor.value({"secret-value": ["secret-value", {"k": ("secret-value",)}, 1]}) == {
        "<redacted:canary-1>": ["<redacted:canary-1>", {"k": ["<redacted:canary-1>"]}, 1]
    }


def test_without_values_nothing_is_touched() -> None:
    value = {"a": ("b",)}
    assert Redactor({}).value(value) is value
