"""Patterns with which GNU's regex engines may never end, told by counting states instead of trying.

Measured with GNU grep 3.8: time grows with the square of the states that may be left out, so that `.{1,500}` takes a
second and `.{1,1000}` eleven; states that must be passed cost next to nothing; back-references have no bound at all.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mcp_ops.gate import Refuse
from mcp_ops.ops.guards.shell.rules import SHELL_REGEX


@dataclass(frozen=True)
class Dialect:
    """Which spellings a pattern language has for its operators."""

    escaped: bool
    r"""`\(` `\{` `\|` are operators, as in basic patterns."""
    plain: bool
    """`(` `{` `|` are operators, as in extended patterns."""


BASIC = Dialect(escaped=True, plain=False)
EXTENDED = Dialect(escaped=False, plain=True)
EITHER = Dialect(escaped=True, plain=True)
"""For languages whose spellings depend on a further option: takes both, and so never too little."""

MAX_STATES_OF_GREP = 4096
MAX_STATES_OF_FIND = 512
"""find has the slower engine, and starts it once for every name."""

_ANY_CHARACTER = 8
"""States of `.`, which takes characters of several bytes."""
_ALMOST_FREE = 8
"""So many states that must be passed count as one that may be left out."""

_TOKEN = re.compile(
    r"(?P<set>\[\^?\]?(?:\[:[^]]*:\]|\[=[^]]*=\]|\[\.[^]]*\.\]|[^]])*\])"
    r"|\\(?P<escaped>.)"
    r"|(?P<run>[^\\\[(){|?+*.]+)|(?P<operator>[(){|?+])|(?P<star>\*)|(?P<any>\.)|(?P<plain>.)",
    re.DOTALL,
)
_COUNT = re.compile(r"([0-9]*)(,?)([0-9]*)\\?\}")


def check_regex(pattern: str, dialect: Dialect, most: int, refuse: Refuse) -> None:
    """Refuse a pattern with a back-reference, or whose counts multiply beyond `most` states.

    Raises:
        Denied: `shell.regex`.
    """
    if "{" not in pattern and "\\" not in pattern and len(pattern) * _ANY_CHARACTER <= most:
        return
    tokens = _tokens(pattern, dialect) if "\\" in pattern else iter(())
    reference = next((text for kind, text in tokens if kind == "reference"), None)
    if reference is not None:
        refuse(SHELL_REGEX, f"the pattern holds the back-reference \\{reference}, with which the engine may never end")
    states = count_states(pattern, dialect)
    if states > most:
        shown = f"about {states}" if states < 10**9 else "more than a billion"
        refuse(SHELL_REGEX, f"the counts in the pattern multiply to {shown} states, and {most} are allowed")


@dataclass(frozen=True)
class _Size:
    """States of a part of a pattern."""

    passed: int = 0
    """Those that every match goes through."""
    optional: int = 0

    def __add__(self, other: "_Size") -> "_Size":
        return _Size(self.passed + other.passed, self.optional + other.optional)

    def repeated(self, least: int, most: int) -> "_Size":
        if self.optional or least == 0:
            return _Size(0, (self.passed + self.optional) * max(most, 1))
        return _Size(self.passed * least, self.passed * max(most - least, 0))


def count_states(pattern: str, dialect: Dialect) -> int:
    """Return about how many states the engine makes of a pattern, weighted by what they cost."""
    finished: list[_Size] = [_Size()]
    last: list[_Size] = [_Size()]
    for kind, text in _tokens(pattern, dialect):
        if kind == "(":
            finished.append(_Size())
            last.append(_Size())
        elif kind == ")" and len(last) > 1:
            group = finished.pop() + last.pop()
            finished[-1], last[-1] = finished[-1] + last[-1], group
        elif kind in ("*", "?"):
            last[-1] = last[-1].repeated(0, 1)
        elif kind == "{":
            last[-1] = last[-1].repeated(*_bounds(text))
        elif kind == "run":
            finished[-1], last[-1] = finished[-1] + last[-1] + _Size(len(text) - 1), _Size(1)
        elif kind == "atom":
            finished[-1], last[-1] = finished[-1] + last[-1], _Size(_ANY_CHARACTER if text == "." else 1)
    total = sum((*finished, *last), start=_Size())
    return total.passed // _ALMOST_FREE + total.optional


def _tokens(pattern: str, dialect: Dialect) -> Iterator[tuple[str, str]]:
    """Yield the operators `( ) | + ? *`, `{` with the count's text, `reference` with its digit, `atom`, and `run`.

    A run is several atoms in a row.
    """
    at = 0
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None:
            return
        at = token.end()
        kind, text = token.lastgroup or "", token[token.lastgroup or 0]
        if kind == "escaped" and text in "123456789":
            yield "reference", text
        elif kind == "run":
            yield "run", text
        elif kind == "star":
            yield "*", text
        elif not (kind == "operator" and dialect.plain) and not (kind == "escaped" and dialect.escaped):
            yield "atom", "." if kind == "any" else text
        elif text == "{" and (count := _COUNT.match(pattern, at)):
            at = count.end()
            yield "{", count[0]
        elif text in "()|?+":
            yield text, text
        else:
            yield "atom", text


def _bounds(count: str) -> tuple[int, int]:
    """Return least and most copies of `3}`, `3,}`, `,5}` or `3,5}`; an open end costs no more than its beginning."""
    found = _COUNT.match(count)
    least = int(found[1] or 0) if found else 0
    return least, int(found[3]) if found and found[3] else least
