"""Further ways to read a text in which a value may stand: with escapes and entities resolved, and across line ends.

A reading is made by fast operations on the whole text, for it is made of every event. Where in the text a value stands
is worked out only once it was found.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from mcp_ops.text.spellings import Encoding, entity_needles, needles, resolve_entities, unescaped_needles

Span = tuple[int, int]
"""From the first character to the one after the last, counted in the text as it was given."""


class Reading(Protocol):
    """What a text says when it is read in one way."""

    def encoding_of(self, value: str) -> Encoding | None:
        """Return how `value` is encoded where this reading finds it, or None."""
        ...

    def spans_of(self, value: str) -> Iterator[Span]:
        """Yield where in the text `value` stands. It may miss what it cannot place."""
        ...


@dataclass
class Traced:
    """A text that was made from another one, and which part of that each of its characters stands for."""

    text: str = ""
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def take(self, source: str, start: int, end: int) -> None:
        """Append a part of the source as it is."""
        self.text += source[start:end]
        self.starts.extend(range(start, end))
        self.ends.extend(range(start + 1, end + 1))

    def spans_of(self, needle: str) -> Iterator[Span]:
        """Yield the parts of the source that stand for `needle`."""
        at = self.text.find(needle)
        while at >= 0:
            end = at + len(needle)
            yield self.starts[at], self.ends[end - 1]
            at = self.text.find(needle, end)


def traced(text: str, pattern: re.Pattern[str], replacement: Callable[[re.Match[str]], str]) -> Traced:
    """Return `pattern.sub(replacement, text)`, traced."""
    pieces: list[str] = []
    made = Traced()
    done = 0
    for found in pattern.finditer(text):
        start, end = found.span()
        new = replacement(found)
        pieces += (text[done:start], new)
        made.starts += (*range(done, start), *[start] * len(new))
        made.ends += (*range(done + 1, start + 1), *[end] * len(new))
        done = end
    made.starts.extend(range(done, len(text)))
    made.ends.extend(range(done + 1, len(text) + 1))
    made.text = "".join((*pieces, text[done:]))
    return made


# A run of backslashes is taken whole, so that a long one is looked at once.
_ESCAPE = re.compile(r"\\++(?:x([0-9A-Fa-f]{2})|u00([0-9A-Fa-f]{2})|([0-3][0-7]{2}))?|%([0-9A-Fa-f]{2})|=([0-9A-F]{2})")
_BACKSLASH_ESCAPE = re.compile(r"\\(?:x|u00|[01])")


class Unescaped:
    """The reading in which percent, backslash and quoted-printable escapes are the characters they stand for."""

    def __init__(self, text: str) -> None:
        self._source = text
        self._text = _ESCAPE.sub(_escaped_character, text)

    @staticmethod
    def applies(text: str) -> bool:
        """Whether there may be an escape in the text."""
        return "%" in text or "=3D" in text or _BACKSLASH_ESCAPE.search(text) is not None

    def encoding_of(self, value: str) -> Encoding | None:
        """Return `escaped` when some character of `value` is."""
        return "escaped" if any(needle in self._text for needle in unescaped_needles(value)) else None

    def spans_of(self, value: str) -> Iterator[Span]:
        """Yield where in the text `value` stands."""
        for needle in unescaped_needles(value):
            yield from self._traced.spans_of(needle)

    @cached_property
    def _traced(self) -> Traced:
        return traced(self._source, _ESCAPE, _escaped_character)


def _escaped_character(found: re.Match[str]) -> str:
    if found[3]:
        return chr(int(found[3], 8))
    digits = found[1] or found[2] or found[4] or found[5]
    return chr(int(digits, 16)) if digits else found[0]


_ENTITY = re.compile(r"&(?:amp;)*(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});?")


class WithoutEntities:
    """The reading in which entities are the characters they stand for."""

    def __init__(self, text: str) -> None:
        self._source = text
        self._text = resolve_entities(text)

    @staticmethod
    def applies(text: str) -> bool:
        """Whether there may be an entity in the text."""
        return "&" in text

    def encoding_of(self, value: str) -> Encoding | None:
        """Return `html` when some character of `value` is an entity."""
        return "html" if any(needle in self._text for needle in entity_needles(value)) else None

    def spans_of(self, value: str) -> Iterator[Span]:
        """Yield where in the text `value` stands."""
        for needle in entity_needles(value):
            yield from self._traced.spans_of(needle)

    @cached_property
    def _traced(self) -> Traced:
        return traced(self._source, _ENTITY, lambda found: resolve_entities(found[0]))


LINE_END = re.compile(r"\n|\\n")
"""The end of a line, in a text or in a JSON string in it."""
_AROUND_A_BREAK = " \t\r\\"
_LEADING = re.compile(r"(?:\\[rt]|[ \t\r\\])*+")
_PREFIX = re.compile(
    r"(?:(?:[^\s:-]{0,200}+[:-]){0,40}?[0-9]{1,7}(?:[:-][0-9]{1,5})?(?:[:-]|\\*\t|\\+t|[ ]{1,3}\|)|>{1,3}|\||[+#*-]|//)"
    r"(?:[ \t]|\\+t)*"
)
"""What tools put before a line: `path:12:`, `path-12-`, `12:5:`, a number and a tab, `12 |`, `>`, `+`, `#`, `//`."""


class Joined:
    """The reading across line ends: without blanks around them, or also without what tools put before a line.

    In the second one the soft line breaks of quoted-printable are left out, too.
    """

    def __init__(self, text: str, joined: str, *, prefixes: bool) -> None:
        self._source = text
        self._text = joined
        self._prefixes = prefixes

    @staticmethod
    def applies(text: str) -> bool:
        """Whether there is a line end in the text."""
        return "\n" in text or "\\n" in text

    @staticmethod
    def of(text: str) -> Iterator["Joined"]:
        """Yield both readings of a text that has a line end; one of them when they are the same."""
        if "\\" in text:
            lines = text.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r").split("\n")
        else:
            lines = text.split("\n")
        lines = [line.strip(_AROUND_A_BREAK) for line in lines]
        joined = "".join(lines)
        yield Joined(text, joined, prefixes=False)
        without_prefixes = "".join([_without_prefix(line) for line in lines])
        if without_prefixes != joined:
            yield Joined(text, without_prefixes, prefixes=True)

    def encoding_of(self, value: str) -> Encoding | None:
        """Return `split`, or what it is encoded in besides."""
        found = next((encoding for encoding, needle in needles(value) if needle in self._text), None)
        return "split" if found == "plain" else found

    def spans_of(self, value: str) -> Iterator[Span]:
        """Yield where in the text `value` stands."""
        for _, needle in needles(value):
            yield from self._traced.spans_of(needle)

    @cached_property
    def _traced(self) -> Traced:
        made, start = Traced(), 0
        parts: list[str] = []
        for end, after in [*(found.span() for found in LINE_END.finditer(self._source)), (len(self._source),) * 2]:
            part = self._inside(start, end)
            made.starts.extend(range(*part))
            made.ends.extend(range(part[0] + 1, part[1] + 1))
            parts.append(self._source[slice(*part)])
            start = after
        made.text = "".join(parts)
        return made

    def _inside(self, start: int, end: int) -> Span:
        """Return what is left of a line."""
        text = self._source
        found = _LEADING.match(text, start, end)
        start = found.end() if found else start
        while end > start and (text[end - 1] in _AROUND_A_BREAK or text[end - 2 : end] in ("\\t", "\\r")):
            end -= 1 if text[end - 1] in _AROUND_A_BREAK else 2
        if self._prefixes:
            found = _PREFIX.match(text, start, end)
            start = found.end() if found else start
            while end > start and text[end - 1] == "=":
                end -= 1
        return start, max(start, end)


def _without_prefix(line: str) -> str:
    found = _PREFIX.match(line)
    return (line[found.end() :] if found else line).rstrip("=")
