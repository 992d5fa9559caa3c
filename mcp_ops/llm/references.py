r"""References: how a scripted reply refers to what really came back.

`${call[0].text /payments-[a-z0-9-]+/}`, `${last.text}`, `${denied.reason}`. Each names a call (`call[n]`, counted from
0, a negative index from the end; `last`; `denied`, the last call that was denied), one of its texts (`text`, `reason`)
and, if wanted, an RE2 pattern: group 1 if there is one, else the match. `\/` is a slash in the pattern. `$${` writes a
literal `${`. Any other `${` is text.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import re2

from mcp_ops.text import one_line

FIELDS = ("text", "reason")
"""What a reference may take of a call: the text of its reply, or why it did not run."""

_BEGINS = re.compile(r"\$\{(?:call\[|last\.|denied\.)")
_HEAD = re.compile(r"\$\{(?P<word>call|last|denied)(?:\[(?P<index>-?[0-9]{1,6})\])?\.(?P<field>text|reason)\b[ \t]*")
_PATTERN = re.compile(r"/(?P<pattern>(?:[^/\\]|\\.)*)/[ \t]*", re.DOTALL)
_QUIET = re2.Options()
_QUIET.log_errors = False


@dataclass(frozen=True)
class PastCall:
    """What an earlier call of the run came to, cleaned."""

    text: str
    state: str
    rule: str | None
    reason: str


class NotFound(Exception):
    """A reference found nothing. The message is one sentence that names the reference."""


class BrokenReference(ValueError):
    """A reference is written wrongly. The message says how to write it."""


@dataclass(frozen=True)
class Reference:
    """One reference, read."""

    source: str
    """As it is written."""
    index: int | None
    """Which call; None is the last one that was denied."""
    field: str
    pattern: str | None

    def value(self, calls: Sequence[PastCall]) -> str:
        """Look the reference up.

        Raises:
            NotFound: There is no such call, or nothing is found in it.
        """
        text: str = getattr(self._call(calls), self.field)
        if self.pattern is not None:
            found = _compile(self.pattern).search(text)
            text = (found.group(1 if found.re.groups else 0) or "") if found else ""
        if not text:
            raise NotFound(f"{self} finds nothing in the {self.field} of that call")
        return text

    def _call(self, calls: Sequence[PastCall]) -> PastCall:
        candidates = calls if self.index is not None else [call for call in calls if call.state == "denied"]
        index = -1 if self.index is None else self.index
        if -len(candidates) <= index < len(candidates):
            return candidates[index]
        if self.index is None:
            raise NotFound(f"{self} finds nothing: no call was denied so far")
        raise NotFound(f"{self} finds nothing: the number of calls so far is {len(calls)}")

    def __str__(self) -> str:
        return one_line(self.source)


class _Piece(NamedTuple):
    literal: str
    reference: Reference | None


def check_references(entry: object) -> list[str]:
    """Return a sentence for each reference in an entry of a script that is written wrongly.

    An entry `{"raw": …}` takes no references, so nothing in it is wrong.
    """
    problems: list[str] = []
    if isinstance(entry, Mapping) and "raw" in entry:
        return problems
    for text, is_key in _strings(entry):
        try:
            pieces = list(_split(text))
        except BrokenReference as error:
            problems.append(str(error))
            continue
        if is_key and any(piece.reference for piece in pieces):
            problems.append(f"the key {one_line(text, 80)!r} holds a reference; only values may hold references")
    return problems


def resolve(value: Any, calls: Sequence[PastCall], shown: Callable[[], Sequence[str]]) -> Any:
    """Return a JSON value with each reference in it replaced by what it refers to.

    Args:
        value: An entry of a script.
        calls: The calls so far, oldest first.
        shown: Returns the texts that the model was shown. A value must stand in one of them, as it is or
            JSON-escaped; so an agent that drops results fails.

    Raises:
        NotFound: A reference finds nothing, or finds what the model was not shown.
        BrokenReference: A reference is written wrongly.
    """
    if isinstance(value, str):
        return "".join(_filled(piece, calls, shown) for piece in _split(value)) if "${" in value else value
    if isinstance(value, Mapping):
        return {key: resolve(item, calls, shown) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [resolve(item, calls, shown) for item in value]
    return value


def _filled(piece: _Piece, calls: Sequence[PastCall], shown: Callable[[], Sequence[str]]) -> str:
    if piece.reference is None:
        return piece.literal
    value = piece.reference.value(calls)
    if not _stands_in(value, shown()):
        raise NotFound(f"{piece.reference} finds a text that the agent did not show to the model")
    return value


def _stands_in(value: str, texts: Sequence[str]) -> bool:
    spellings = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    return any(spelling in text for text in texts for spelling in spellings)


def _strings(value: object) -> Iterator[tuple[str, bool]]:
    """Yield every string in a JSON value, and whether it is a key."""
    if isinstance(value, str):
        yield value, False
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key), True
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


def _split(text: str) -> Iterator[_Piece]:
    """Split a text into literal pieces and references."""
    done = 0
    while (dollar := text.find("${", done)) >= 0:
        if dollar > done and text[dollar - 1] == "$":
            yield _Piece(text[done : dollar - 1] + "${", None)
            done = dollar + 2
        elif _BEGINS.match(text, dollar):
            yield _Piece(text[done:dollar], None)
            reference, done = _read(text, dollar)
            yield _Piece("", reference)
        else:
            yield _Piece(text[done : dollar + 2], None)
            done = dollar + 2
    yield _Piece(text[done:], None)


def _read(text: str, start: int) -> tuple[Reference, int]:
    """Read the reference that begins at `start`; return it and where it ends."""
    head = _HEAD.match(text, start)
    if head is None or (head["word"] == "call") is (head["index"] is None):
        raise BrokenReference(
            f"{_excerpt(text, start)} is no reference: write ${{call[0].text}}, ${{last.text /pattern/}} or "
            "${denied.reason}, with text or reason after the point, and $${ for a literal ${"
        )
    end, pattern = head.end(), None
    if text.startswith("/", end):
        found = _PATTERN.match(text, end)
        if found is None:
            raise BrokenReference(f"{_excerpt(text, start)} has a pattern without an end: close it with / and }}")
        end, pattern = found.end(), re.sub(r"\\(.)", _unescape_slash, found["pattern"], flags=re.DOTALL)
    if not text.startswith("}", end):
        raise BrokenReference(f"{_excerpt(text, start)} is not closed: a pattern stands between slashes, then comes }}")
    source = text[start : end + 1]
    if pattern is not None:
        _check_pattern(pattern, source)
    index = {"last": -1, "denied": None}.get(head["word"], int(head["index"] or 0))
    return Reference(source, index, head["field"], pattern), end + 1


def _unescape_slash(escape: re.Match[str]) -> str:
    return "/" if escape[1] == "/" else escape[0]


def _check_pattern(pattern: str, source: str) -> None:
    try:
        _compile(pattern)
    except (re2.error, UnicodeEncodeError) as error:
        why = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
        raise BrokenReference(f"{one_line(source)} has a pattern that RE2 does not take: {one_line(why)}") from None


def _compile(pattern: str) -> Any:
    return re2.compile(pattern, _QUIET)


def _excerpt(text: str, start: int) -> str:
    return one_line(text[start : start + 60])
