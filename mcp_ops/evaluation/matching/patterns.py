"""Patterns that a line wrote, compiled to RE2: time is linear in the text, whatever the pattern."""

from functools import lru_cache
from typing import Any

import re2

MAX_PATTERN = 2000
"""Most characters of a pattern."""


class BadPattern(ValueError):
    """The pattern is not one. The message is a part of a sentence: `missing ): (a`."""


@lru_cache(maxsize=512)
def compiled(pattern: str) -> Any:
    """Return an RE2 pattern, on bytes of UTF-8.

    Raises:
        BadPattern: It is not RE2.
    """
    if len(pattern) > 4 * MAX_PATTERN:
        raise BadPattern(f"it has more than {MAX_PATTERN} characters")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern.encode(), options)
    except UnicodeEncodeError:
        raise BadPattern("half of a surrogate pair stands in it") from None
    except re2.error as error:
        reason = error.args[0] if error.args else b"?"
        raise BadPattern(reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)) from None


def check_regex(pattern: str) -> None:
    """Raise unless `pattern` is RE2.

    Raises:
        BadPattern: It is not.
    """
    compiled(pattern)


def check_glob(pattern: str) -> None:
    """Raise unless `pattern` is a glob.

    Raises:
        BadPattern: It is not, such as `[z-a]`.
    """
    compiled(_glob_to_regex(pattern))


def search(pattern: str, text: str) -> bool:
    """Return whether the RE2 `pattern` is found in `text`."""
    return compiled(pattern).search(text.encode("utf-8", "replace")) is not None


def glob_covers(pattern: str, text: str) -> bool:
    """Return whether the glob covers the whole `text`. `*` takes any characters, `/` and line ends too."""
    return compiled(_glob_to_regex(pattern)).fullmatch(text.encode("utf-8", "replace")) is not None


@lru_cache(maxsize=512)
def _glob_to_regex(pattern: str) -> str:
    parts = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        position += 1
        if character == "*":
            parts.append(".*")
        elif character == "?":
            parts.append(".")
        elif character == "[" and (end := _end_of_class(pattern, position)) is not None:
            parts.append(_class_to_regex(pattern[position:end]))
            position = end + 1
        else:
            parts.append(_literal(character))
    return "(?s)" + "".join(parts)


def _end_of_class(pattern: str, start: int) -> int | None:
    """Return where the `]` of a class stands; a `]` in its first place is a member. None: the `[` is a character."""
    first = start + 1 if pattern[start : start + 1] == "!" else start
    end = pattern.find("]", first + 1)
    return end if end >= 0 else None


def _class_to_regex(members: str) -> str:
    negated = members.startswith("!")
    body = "".join(member if member == "-" else _literal(member) for member in members[negated:])
    return f"[{'^' if negated else ''}{body}]"


def _literal(character: str) -> str:
    return character if character.isalnum() or ord(character) > 127 else f"\\x{ord(character):02x}"
