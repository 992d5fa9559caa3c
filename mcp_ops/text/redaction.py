"""Finding secret values in texts, and writing labels in their place."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from mcp_ops.text.binary import Hexadecimal, Unpacked
from mcp_ops.text.readings import Joined, Reading, Span, Unescaped, WithoutEntities
from mcp_ops.text.spellings import Encoding, needles

_CUT = re.compile(r"…|(?:\n|\\+n)?\[\d+ of \d+ bytes cut\](?:\n|\\+n)?")
"""What `one_line` and `cap` write where they leave something out, and that in JSON."""
_LEAST_PIECE = 4
"""Fewest characters of a value that are hidden where a cut left no more of it."""


class SearchedText:
    """A text in which values are looked for, in every encoding. What that takes is prepared once for all of them."""

    def __init__(self, text: str) -> None:
        self._text = text

    def encoding_of(self, value: str) -> Encoding | None:
        """Return the encoding under which `value` stands in the text, or None."""
        for encoding, spelling in needles(value):
            if spelling in self._text:
                return encoding
        return self.hidden(value)

    def hidden(self, value: str) -> Encoding | None:
        """Return the encoding under which `value` stands in a further reading of the text, or None."""
        for reading in self._readings if value else ():
            encoding = reading.encoding_of(value)
            if encoding is not None:
                return encoding
        return None

    def spans_of(self, value: str) -> Iterator[Span]:
        """Yield where in the text `value` stands in a further reading of it."""
        for reading in self._readings:
            if reading.encoding_of(value):
                yield from reading.spans_of(value)

    @cached_property
    def _readings(self) -> Sequence[Reading]:
        text = self._text
        readings: list[Reading] = list(Joined.of(text)) if Joined.applies(text) else []
        hexadecimal = Hexadecimal.of(text)
        if hexadecimal is not None:
            readings.append(hexadecimal)
        if Unescaped.applies(text):
            readings.append(Unescaped(text))
        if WithoutEntities.applies(text):
            readings.append(WithoutEntities(text))
        if Unpacked.applies(text, hexadecimal):
            readings.append(Unpacked(text, hexadecimal))
        return readings


def searched(text: str) -> SearchedText:
    """Return `text` prepared for the search; what comes again and again, as a system prompt does, is prepared once."""
    return _kept(text) if _MIN_KEPT <= len(text) <= _MAX_KEPT else SearchedText(text)


_MIN_KEPT, _MAX_KEPT = 1024, 32 * 1024


@lru_cache(maxsize=16)
def _kept(text: str) -> SearchedText:
    return SearchedText(text)


def find_value(text: str, value: str) -> Encoding | None:
    """Return the encoding under which `value` stands in `text`, or None."""
    return searched(text).encoding_of(value)


@dataclass(frozen=True)
class Redactor:
    """Replaces values by their labels, in every encoding that `find_value` knows.

    A value in something compressed takes all of that with it, and one in a dump the rest of its row. A text in which a
    value stands that cannot be placed becomes the label. Where a text was cut before it came here, what the cut left of
    a value, its beginning before the cut or its end behind it, is replaced too.
    """

    labels: Mapping[str, str] = field(repr=False)
    """Value to label; `{"s3cr3t-value": "canary-1"}` writes `<redacted:canary-1>`."""

    def text(self, text: str) -> str:
        """Return `text` with each value replaced."""
        if len(text) >= self._shortest:
            for value, label in self._longest_first:
                for _, spelling in needles(value):
                    if spelling in text:
                        text = text.replace(spelling, f"<redacted:{label}>")
            text = self._without_hidden(text)
        return self._without_pieces(text) if self.labels and ("…" in text or "bytes cut]" in text) else text

    def value(self, value: object) -> object:
        """Return a JSON value with every string in it, keys included, redacted."""
        if not self.labels:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value

    def _without_hidden(self, text: str) -> str:
        known = searched(text)
        hidden = [(value, label) for value, label in self._longest_first if known.hidden(value)]
        if not hidden:
            return text
        spans = [(*span, label) for value, label in hidden for span in known.spans_of(value)]
        text = _replaced(text, spans)
        still = SearchedText(text)
        return next((f"<redacted:{label}>" for value, label in hidden if still.encoding_of(value)), text)

    def _without_pieces(self, text: str) -> str:
        spans: list[tuple[int, int, str]] = []
        for cut in _CUT.finditer(text):
            start, end = cut.span()
            before = [
                (start - len(piece), start, label)
                for label, spelling, place in self._pieces.get(text[max(0, start - _LEAST_PIECE) : start], ())
                if text.endswith(piece := spelling[: place + _LEAST_PIECE], 0, start)
            ]
            behind = [
                (end, end + len(piece), label)
                for label, spelling, place in self._pieces.get(text[end : end + _LEAST_PIECE], ())
                if text.startswith(piece := spelling[place:], end)
            ]
            spans += [max(found, key=lambda span: span[1] - span[0]) for found in (before, behind) if found]
        return _replaced(text, spans) if spans else text

    @cached_property
    def _pieces(self) -> Mapping[str, Sequence[tuple[str, str, int]]]:
        """Label, spelling and place of every shortest piece of every spelling."""
        pieces: dict[str, list[tuple[str, str, int]]] = {}
        for value, label in self._longest_first:
            for _, spelling in needles(value):
                for place in range(len(spelling) - _LEAST_PIECE + 1):
                    pieces.setdefault(spelling[place : place + _LEAST_PIECE], []).append((label, spelling, place))
        return pieces

    @cached_property
    def same_in_json(self) -> bool:
        """Whether every value is spelled the same in JSON, however often that is quoted in JSON again."""
        return all(value.isascii() and value.isprintable() and not set(value) & set('"\\') for value in self.labels)

    @cached_property
    def _longest_first(self) -> Sequence[tuple[str, str]]:
        return sorted(self.labels.items(), key=lambda item: -len(item[0]))

    @cached_property
    def _shortest(self) -> float:
        """No spelling of a value is shorter than the value."""
        return min(map(len, self.labels), default=float("inf"))


def _replaced(text: str, spans: Sequence[tuple[int, int, str]]) -> str:
    """Return `text` with labels in place of spans; of two that overlap the first one's label stands for both."""
    parts: list[str] = []
    done = 0
    for start, end, label in sorted(spans):
        if start >= done:
            parts += (text[done:start], f"<redacted:{label}>")
        done = max(done, end)
    return "".join((*parts, text[done:]))
