"""JSON text and the places in it: strict decoding, and where a key or a value stands.

Decoding is `json.loads` with everything refused that JSON does not have (NaN, a key twice) or that a line may not have
(deep nesting, numbers out of range). The scan with positions runs only when something is wrong.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

MAX_LEVELS = 64
"""Deepest nesting of objects and lists; the line's own object is the first level."""
MAX_NUMBER = 300
"""Most characters of a number."""

_TOKEN = re.compile(
    r"[ \t\n\r]*+(?:"
    r"(?P<mark>[{}\[\],:])"
    r'|(?P<string>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")'
    r"|(?P<number>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)(?![0-9A-Za-z.+-])"
    r"|(?P<word>true|false|null)(?![0-9A-Za-z_])"
    r"|(?P<end>\Z)"
    r")"
)
_SPACE = re.compile(r"[ \t\n\r]*+")
_WORD = re.compile(r"-?[A-Za-z_][A-Za-z0-9_]*")
_PLAIN_RUN = re.compile(r'[^"\\\x00-\x1f]*')
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)


class JsonFault(ValueError):
    """The text is not JSON that a line may hold. The message is one sentence without its place."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        """Where, in characters from 0."""


class Spot(NamedTuple):
    """A value and where it stands, in characters from 0."""

    path: tuple[str | int, ...]
    key: int | None
    """Where its key stands, or None in a list and at the root."""
    value: int


def decode(text: str) -> object:
    """Return the JSON value that `text` holds.

    Raises:
        JsonFault: It is not JSON, or not JSON that a line may hold.
    """
    try:
        if _levels(text) <= MAX_LEVELS:
            return json.loads(
                text, object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite, parse_int=_integer
            )
    except (ValueError, RecursionError):
        pass
    for _ in spots(text):
        pass
    raise JsonFault(0, "this is not JSON that can be read")


def _levels(text: str) -> int:
    if text.count("{") + text.count("[") <= MAX_LEVELS:
        return 1
    level = deepest = 0
    for token in _BRACKETS.finditer(text):
        if token[0] in "{[":
            level += 1
            deepest = max(deepest, level)
        elif token[0] in "}]":
            level -= 1
    return deepest


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)


def _finite(digits: str) -> float:
    number = float(digits)
    if len(digits) > MAX_NUMBER or not math.isfinite(number):
        raise ValueError(digits)
    return number


def _integer(digits: str) -> int:
    if len(digits) > MAX_NUMBER:
        raise ValueError(digits)
    return int(digits)


def spots(text: str) -> Iterator[Spot]:
    """Yield every value of a JSON text, each before the values inside it.

    Raises:
        JsonFault: Here the text stops to be JSON that a line may hold.
    """
    return _Scan(text).run()


def locate(text: str, path: Sequence[str | int], *, at_key: bool = False) -> int:
    """Return where a value of a valid JSON text stands, or its key, in characters from 0.

    For a path that does not exist it is the place of the longest part that does.
    """
    best = Spot((), None, 0)
    for spot in spots(text):
        if len(spot.path) >= len(best.path) and tuple(path[: len(spot.path)]) == spot.path:
            best = spot
            if len(spot.path) == len(path):
                break
    return best.key if at_key and best.key is not None and len(best.path) == len(path) else best.value


class _Token(NamedTuple):
    kind: str
    text: str
    start: int


class _Scan:
    """A recursive descent over the text; the depth is bounded by `MAX_LEVELS`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def run(self) -> Iterator[Spot]:
        yield from self._value((), None, self._take(), 1)
        after = self._take()
        if after.kind != "end":
            raise JsonFault(after.start, "more text follows the JSON object; write one object a line")

    def _value(self, path: tuple[str | int, ...], key: int | None, token: _Token, level: int) -> Iterator[Spot]:
        opens = token.kind == "mark" and token.text in "{["
        if not opens and token.kind in ("mark", "end"):
            raise JsonFault(token.start, f"a value is missing before {_named(token)}")
        if opens and level > MAX_LEVELS:
            raise JsonFault(token.start, f"this is nested deeper than {MAX_LEVELS} levels; write it flatter")
        if token.kind == "number" and not _is_readable(token.text):
            raise JsonFault(token.start, "this number is out of range; write a smaller one, or a string")
        yield Spot(path, key, token.start)
        if opens:
            yield from self._object(path, level) if token.text == "{" else self._list(path, level)

    def _object(self, path: tuple[str | int, ...], level: int) -> Iterator[Spot]:
        seen: set[str] = set()
        token = self._take()
        while not (token.kind == "mark" and token.text == "}" and not seen):
            if token.kind != "string":
                raise JsonFault(token.start, f"a key in double quotes is missing before {_named(token)}")
            name = json.loads(token.text)
            if name in seen:
                raise JsonFault(token.start, f"the key {token.text[:80]} stands twice in one object; leave one out")
            seen.add(name)
            colon = self._take()
            if colon.text != ":" or colon.kind != "mark":
                raise JsonFault(colon.start, f"a colon is missing before {_named(colon)}")
            yield from self._value((*path, name), token.start, self._take(), level + 1)
            if self._ends("}"):
                return
            token = self._take()

    def _list(self, path: tuple[str | int, ...], level: int) -> Iterator[Spot]:
        token = self._take()
        index = 0
        while not (token.kind == "mark" and token.text == "]" and index == 0):
            yield from self._value((*path, index), None, token, level + 1)
            if self._ends("]"):
                return
            token = self._take()
            index += 1

    def _ends(self, bracket: str) -> bool:
        """Take what follows a member: the closing bracket, or a comma with a further member behind it."""
        token = self._take()
        if token.kind == "mark" and token.text == bracket:
            return True
        if token.kind != "mark" or token.text != ",":
            raise JsonFault(token.start, f"a comma or {bracket} is missing before {_named(token)}")
        rest = _SPACE.match(self._text, self._position)
        if rest is not None and self._text[rest.end() : rest.end() + 1] in ("}", "]"):
            raise JsonFault(token.start, "a comma stands before a closing bracket; leave it out")
        return False

    def _take(self) -> _Token:
        found = _TOKEN.match(self._text, self._position)
        if found is None or found.lastgroup is None:
            raise self._fault()
        self._position = found.end()
        return _Token(found.lastgroup, found[found.lastgroup], found.start(found.lastgroup))

    def _fault(self) -> JsonFault:
        space = _SPACE.match(self._text, self._position)
        start = space.end() if space is not None else self._position
        character = self._text[start]
        if character == '"':
            return self._string_fault(start)
        word = _WORD.match(self._text, start)
        if word is not None and word[0].lstrip("-") in ("NaN", "Infinity", "nan", "inf"):
            return JsonFault(start, f"{word[0]} is not JSON; write a number, or a string")
        if word is not None:
            return JsonFault(
                start, f"the word {word[0][:40]} is not JSON; write true, false, null or a string in double quotes"
            )
        if character == "'":
            return JsonFault(start, "a string stands in single quotes; write double quotes")
        if character == "\ufeff":
            return JsonFault(start, "a byte order mark stands in the middle of the file; remove it")
        if self._text.startswith(("//", "/*"), start):
            return JsonFault(start, "a comment stands inside the object; a comment is a line of its own")
        if character.isdigit() or character in "-+.":
            return JsonFault(start, "this is not a JSON number; write it like 12, -3 or 0.5")
        if character == "#":
            return JsonFault(start, "a comment begins with //, on a line of its own")
        return JsonFault(start, f"U+{ord(character):04X} does not belong here; write one JSON object a line")

    def _end_of_readable(self, position: int) -> int:
        """Return where a string stops being one, from a position inside it."""
        while True:
            run = _PLAIN_RUN.match(self._text, position)
            position = run.end() if run is not None else position
            escape = _ESCAPE.match(self._text, position)
            if escape is None:
                return position
            position = escape.end()

    def _string_fault(self, start: int) -> JsonFault:
        end = self._end_of_readable(start + 1)
        if end == len(self._text):
            return JsonFault(start, "this string has no end; close it with a double quote")
        if self._text[end] == "\\":
            return JsonFault(end, "this escape is not JSON; write a backslash as \\\\")
        return JsonFault(end, f"a raw control character stands in a string; write it as \\u{ord(self._text[end]):04x}")


def _is_readable(digits: str) -> bool:
    return len(digits) <= MAX_NUMBER and math.isfinite(float(digits))


def _named(token: _Token) -> str:
    return "the end of the line" if token.kind == "end" else token.text[:40]
