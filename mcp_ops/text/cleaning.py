"""Text from outside without what can act on a terminal, a page, a model or a CI runner, and within a limit."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

# CSI, then string sequences (OSC, DCS, SOS, PM, APC) up to their terminator or the end, then two-character escapes.
_ESCAPE_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x9c|\x1b\\)?"
    r"|\x1b[ -/]*[0-~]?"
)
_HIDDEN = re.compile("[\U000e0000-\U000e0fff\ufe00-\ufe0d]+")
# One selector says whether the emoji before it is text or a picture. Any other one shows nothing and carries a message.
_SELECTOR = re.compile("[\ufe0e\ufe0f]")
_LOOSE_SELECTOR = re.compile(
    "(?<![#*0-9\xa9\xae\u203c-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff])[\ufe0e\ufe0f]"
)
_VISIBLE_ESCAPE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160"
    "\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_ASCII_CONTROLS = bytes({*range(32), 127} - set(b"\t\n"))
_SOMETHING_TO_CLEAN = re.compile(
    # One class: an alternative is five times slower. Every terminal sequence begins with a character of the first.
    "[" + "".join(known.pattern.rstrip("+")[1:-1] for known in (_VISIBLE_ESCAPE, _HIDDEN, _SURROGATE, _SELECTOR)) + "]"
)
# GitHub obeys `::command::` at the beginning of a line, after any blanks, and `##[command]` anywhere in it; Azure obeys
# `##vso[…]` anywhere, TeamCity `##teamcity[…]`.
_RUNNER_ANYWHERE = re.compile(r"##(?=[\w-]*\[)")
_RUNNER_AT_THE_BEGINNING = re.compile(r"^(\s*):(?=:)", re.MULTILINE)

MARKER_BYTES = 64
"""Room kept inside a cap for the sentence that says how much was cut, in bytes."""


def is_plain(text: str) -> bool:
    """Return whether a text is ASCII without any control character but tab and LF."""
    if not text.isascii():
        return False
    data = text.encode("ascii")
    return len(data.translate(None, _ASCII_CONTROLS)) == len(data)


def clean(text: str) -> str:
    """Return `text` without anything that can act on a terminal, a page, a model or a JSON-RPC peer.

    Terminal sequences, invisible tag characters and variation selectors are removed, but for one selector behind an
    emoji; other control and format characters become `<U+202E>`; lone surrogates become U+FFFD; CRLF and CR become LF.
    Tab and LF stay.
    """
    if is_plain(text) or not _SOMETHING_TO_CLEAN.search(text):
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _ESCAPE_SEQUENCE.sub("", text)
    text = _HIDDEN.sub("", text)
    text = _LOOSE_SELECTOR.sub("", text)
    text = _SURROGATE.sub("\ufffd", text)
    return _VISIBLE_ESCAPE.sub(lambda found: f"<U+{ord(found[0]):04X}>", text)


def clean_value(value: object) -> object:
    """Return a JSON value with every string in it, keys included, cleaned."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): clean_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_value(item) for item in value]
    return value


def one_line(text: str, limit: int = 200) -> str:
    r"""Return `text` cleaned, on one line (`\n` stands for a line end), in at most `limit` characters."""
    line = clean(text).replace("\n", "\\n").replace("\t", " ")
    return line if len(line) <= limit else line[: limit - 1] + "…"


def inert(text: str) -> str:
    """Return `text` cleaned, without any line that a CI runner obeys."""
    return _RUNNER_AT_THE_BEGINNING.sub(r"\1: ", _RUNNER_ANYWHERE.sub("# #", clean(text)))


def quoted_block(text: str, prefix: str = "  | ") -> str:
    """Return `text` inert, each line behind `prefix`, so that no printed line begins with text from outside."""
    return "\n".join(prefix + line for line in inert(text).split("\n"))


@dataclass(frozen=True)
class Capped:
    """A text that was made to fit a limit."""

    text: str
    """At most the limit, its cut marker included."""
    truncated: bool
    full_length: int
    """Length of the whole text in UTF-8 bytes."""


def cap(text: str, limit: int, *, keep: Literal["head", "ends"] = "head") -> Capped:
    """Cut `text` to `limit` bytes of UTF-8, on a character boundary, with a marker that says what is missing.

    `keep="ends"` drops the middle: the end of a description (its events) often matters more.
    """
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return Capped(text, truncated=False, full_length=len(data))
    room = max(0, limit - MARKER_BYTES)
    head = room if keep == "head" else room // 2
    tail = room - head
    first = data[:head].decode("utf-8", "ignore")
    last = data[len(data) - tail :].decode("utf-8", "ignore") if tail else ""
    marker = f"\n[{len(data) - room} of {len(data)} bytes cut]" + ("\n" if tail else "")
    return Capped(first + marker + last, truncated=True, full_length=len(data))
