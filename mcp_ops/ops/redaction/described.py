"""Hiding credentials in what `kubectl describe` prints: sections, columns and values over several lines."""

import re
from dataclasses import dataclass

from mcp_ops.ops.guards.secret_names import DEFAULT
from mcp_ops.ops.redaction.words import REDACTED, is_credential, looks_random, redact_text

_COLOUR = re.compile(r"\^\[\[[0-9;]*[A-Za-z]")
"""A colour as kubectl describe writes it, with `^[` for the escape character."""


def redact_described(text: str) -> str:
    """Return the output of `kubectl describe` with credentials hidden, and without colours that could hide them."""
    lines = redact_text(_COLOUR.sub("", text)).split("\n")
    layout = _Layout(last_events=max((i for i, line in enumerate(lines) if line.startswith("Events:")), default=-1))
    shown = []
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        kept = layout.line(number, line, following)
        if kept is not None:
            shown.append(kept)
    return "\n".join(shown)


@dataclass
class _Layout:
    """Where in the output we are."""

    last_events: int
    """Line of the closing Events section, or -1."""
    _in_data: bool = False
    _hide_entry: bool = False
    """In a ConfigMap's entry whose value is hidden."""
    _hide_below: int | None = None
    """A value was hidden here: its further lines are those indented deeper."""
    _hide_at: int | None = None
    """A credential flag was here: its value is the next line if indented equally."""

    def line(self, number: int, line: str, following: str) -> str | None:
        """Return what is shown of a line, or None for nothing."""
        if following.startswith("===="):
            self._in_data, self._hide_entry = line.rstrip() in ("Data", "BinaryData"), False
        elif number == self.last_events:
            self._in_data = self._hide_entry = False
        if self._in_data:
            return self._data_line(line, following)
        return self._field_line(line)

    def _data_line(self, line: str, following: str) -> str | None:
        if line.endswith(":") and following == "----":
            name = line[:-1]
            self._hide_entry = is_credential(name, "x") or DEFAULT.pattern_for_name(name) is not None
            return line
        if line == "----":
            return f"{line}\n{REDACTED}" if self._hide_entry else line
        if self._hide_entry:
            return None
        return REDACTED if looks_random(line) else line

    def _field_line(self, line: str) -> str | None:
        plain = line.lstrip(" ")
        indent = len(line) - len(plain)
        if self._hide_below is not None and plain and indent > self._hide_below:
            return None
        hide_at, self._hide_below, self._hide_at = self._hide_at, None, None
        if hide_at == indent and plain and not plain.startswith("-"):
            return " " * indent + REDACTED
        if plain.startswith("-") and is_credential(plain.strip("- "), "x") and "=" not in plain and " " not in plain:
            self._hide_at = indent
        name, separator, value = plain.partition(":")
        value = value.strip()
        if value == REDACTED:
            self._hide_below = indent
        elif separator and indent and looks_random(value) and " " not in name:
            self._hide_below = indent
            return f"{line[: len(line) - len(value)]}{REDACTED}"
        return line
