"""GNU getopt over an option table: bundles, glued values, abbreviations, options after operands, `--`.

What comes out is written anew, each option under its full name and by itself, so that the program cannot read it
another way than the guard did.
"""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from mcp_ops.gate import Refuse
from mcp_ops.ops.guards.shell.options import Argument, Option, Program
from mcp_ops.ops.guards.shell.rules import SHELL_OPTION
from mcp_ops.ops.guards.shell.words import Word
from mcp_ops.text import one_line

_NUMBER = re.compile(r"-(?P<count>[0-9]+)(?P<unit>[bkm]?)(?P<letters>[a-zA-Z]*)")
_PLUS_NUMBER = re.compile(r"\+(?P<count>[0-9]+)(?P<unit>[bcl]?)(?P<follow>f?)")
_DIGITS = re.compile(r"[0-9]+")
_OLD_FOLLOW = "-cf"
"""To tail no option -c with the value `f`, but its old way to follow a file by bytes."""
_BYTES = Option("c", ("bytes",), Argument.REQUIRED)
_SORT_KEY = "Use -k: `sort -k 2,2 FILE` sorts by the second field."


@dataclass(frozen=True)
class Given:
    """One option as it was given."""

    option: Option
    spelling: str
    """Full name with its dashes: `-n` or `--lines`; as typed if the option is not known."""
    value: str | None = None
    variable: bool = False
    """The value holds `$NAME` inside double quotes."""

    @property
    def words(self) -> tuple[str, ...]:
        """The option as the program gets it."""
        if self.value is None:
            return (self.spelling,)
        if self.spelling.startswith("--") or self.option.names:
            # A letter glued to its value may mean something else in a program's older ways: tail -cf follows.
            spelling = self.spelling if self.spelling.startswith("--") else f"--{self.option.key}"
            return (f"{spelling}={self.value}",)
        return (self.spelling + self.value,) if self.value else (self.spelling, self.value)


@dataclass
class Parsed:
    """The arguments of one program, told apart."""

    options: list[Given] = field(default_factory=list)
    operands: list[Word] = field(default_factory=list)

    def has(self, *keys: str) -> bool:
        """Whether any of the options was given, by key or letter."""
        return any(given.option.key in keys for given in self.options)


def parse(program: Program, arguments: Sequence[Word], refuse: Refuse) -> Parsed:
    """Tell options and operands apart as GNU getopt does.

    Raises:
        Denied: `shell.option`.
    """
    return _Parser(program, arguments, refuse).parsed()


class _Parser:
    def __init__(self, program: Program, arguments: Sequence[Word], refuse: Refuse) -> None:
        self._program = program
        self._pending = list(reversed(arguments))
        self._refuse = refuse
        self._result = Parsed()

    def parsed(self) -> Parsed:
        while self._pending:
            word = self._pending.pop()
            if word.text == "--":
                self._result.operands += reversed(self._pending)
                break
            if word.text == "-" or not word.text.startswith("-"):
                self._operand(word)
            elif word.text.startswith("--"):
                self._long(word)
            elif not self._leading_number(word.text):
                self._bundle(word)
        return self._result

    def _operand(self, word: Word) -> None:
        found = _PLUS_NUMBER.fullmatch(word.text)
        if found is None or self._program.name not in ("tail", "uniq", "sort"):
            self._result.operands.append(word)
        elif self._program.name == "sort":
            self._no(f"sort {word.text}: an obsolete way to name a sort key", _SORT_KEY)
            self._result.operands.append(word)
        elif self._program.name == "uniq" and not (found["unit"] or found["follow"]):
            self._add(self._program.by_name[self._program.plus_number], "--skip-chars", found["count"])
        elif self._program.name == "tail" and not (self._result.operands or self._result.options):
            self._obsolete("+" + found["count"], "c" if found["unit"] == "c" else "", found["follow"], found["unit"])
        else:
            self._result.operands.append(word)

    def _leading_number(self, text: str) -> bool:
        """Take `-20`, `-5f`, `-2k` or `-cf` of head and tail, whose letters mean something else in the old spelling."""
        found = _NUMBER.fullmatch(text)
        if self._program.name == "tail" and text == _OLD_FOLLOW:
            self._letter("f", text)
            return True
        if found is None or self._program.number != "lines":
            return False
        self._obsolete(found["count"], "c" if found["unit"] else "", found["letters"], found["unit"])
        return True

    def _obsolete(self, count: str, what: str, letters: str, unit: str) -> None:
        in_bytes = what == "c" or "c" in letters
        unit = unit if unit in ("b", "k", "m") else ""
        option = _BYTES if in_bytes else self._program.by_name["lines"]
        self._add(option, f"--{option.key}", count + unit.replace("m", "M").replace("k", "K"))
        for letter in letters.replace("c", "").replace("l", ""):
            self._letter(letter, f"-{letter}")

    def _long(self, word: Word) -> None:
        name, equals, value = word.text[2:].partition("=")
        option, full_name = self._resolve(name, word.text)
        if option is None:
            self._result.options.append(Given(Option("?", ()), word.text))
            return
        spelling = f"--{full_name}"
        if equals and option.argument is Argument.NONE:
            self._no(f"{self._program.name} {spelling} takes no value")
        if not equals and option.argument is Argument.REQUIRED:
            self._next_value(option, spelling)
        else:
            self._add(option, spelling, value if equals else None, variable=word.variable)

    def _resolve(self, name: str, typed: str) -> tuple[Option | None, str]:
        """Expand an abbreviation against all that GNU knows, refused options included."""
        table = self._program.by_name
        if name in table:
            return table[name], name
        fitting = [known for known in table if known.startswith(name)]
        options = {table[known] for known in fitting}
        if len(options) == 1:
            return options.pop(), fitting[0]
        shown = f"{self._program.name} {one_line(typed, 60)}"
        if fitting:
            refused = next((option for option in options if option.forbidden), None)
            self._no(
                f"{shown} may mean {', '.join(f'--{known}' for known in fitting[:4])}",
                refused.hint if refused else None,
            )
        else:
            near = difflib.get_close_matches(name, [known for known in table if not table[known].forbidden], n=1)
            self._no(f"{shown} is not an option that is known", f"Did you mean --{near[0]}?" if near else None)
        return None, name

    def _bundle(self, word: Word) -> None:
        letters = word.text[1:]
        while letters:
            digits = _DIGITS.match(letters)
            if digits is not None and self._program.number in ("context", "skip-fields"):
                self._add(self._program.by_name[self._program.number], f"--{self._program.number}", digits[0])
                letters = letters[digits.end() :]
                continue
            letter, letters = letters[0], letters[1:]
            option = self._program.by_letter.get(letter)
            if option is None or option.argument is Argument.NONE:
                self._letter(letter, word.text)
            elif letters:
                self._add(option, f"-{letter}", letters, variable=word.variable)
                return
            elif option.argument is Argument.REQUIRED:
                self._next_value(option, f"-{letter}")
            else:
                self._add(option, f"-{letter}")

    def _letter(self, letter: str, typed: str) -> None:
        option = self._program.by_letter.get(letter)
        if option is None:
            inside = "" if typed == f"-{letter}" else f" in {one_line(typed, 60)}"
            self._no(f"{self._program.name} -{one_line(letter)}{inside} is not an option that is known")
            option = Option(letter, ())
        self._add(option, f"-{letter}")

    def _next_value(self, option: Option, spelling: str) -> None:
        if self._pending:
            word = self._pending.pop()
            self._add(option, spelling, word.text, variable=word.variable)
        else:
            self._add(option, spelling)
            self._no(f"{self._program.name} {spelling} needs a value")

    def _add(self, option: Option, spelling: str, value: str | None = None, *, variable: bool = False) -> None:
        if option.forbidden:
            self._no(f"{self._program.name} {spelling} is refused: {option.forbidden}", option.hint)
        self._result.options.append(Given(option, spelling, value, variable))

    def _no(self, reason: str, hint: str | None = None) -> None:
        self._refuse(SHELL_OPTION, reason, hint or None)
