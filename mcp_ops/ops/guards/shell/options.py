"""The words of an option table: what one option of one program is, and what its value means to the guard."""

from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property


class Argument(Enum):
    """Whether an option takes a value: never, always, or only when glued to it."""

    NONE = auto()
    REQUIRED = auto()
    OPTIONAL = auto()


class Value(Enum):
    """What the value of an option is, if the guard has to look at it."""

    TEXT = auto()
    """Nothing to look at: a number, a separator, a pattern of names."""
    FORMAT = auto()
    """A format with `%` directives, which may hold field widths."""
    TIME_STYLE = auto()
    """A name such as `iso`, or a format behind a `+`."""
    DATE = auto()
    """A date in words, which may name a time zone."""
    FILE = auto()
    """A file of which only the times are looked at."""
    REGEX = auto()
    """A pattern of the regex engine."""
    DIRECTORIES = auto()
    """What grep does with folders; `recurse` reads all that is in them."""


class Access(Enum):
    """What a program does with a file operand."""

    NAMES = auto()
    """Shows names, sizes, times; opens no file."""
    CONTENT = auto()
    """Reads as much as it needs."""
    WHOLE = auto()
    """Prints or holds all of it, however large."""


class Operands(Enum):
    """What the arguments of a program are that belong to no option."""

    FILES = auto()
    ONE_FILE = auto()
    """A second one would be written to."""
    PATTERN_AND_FILES = auto()
    """A pattern of grep, and files."""
    DATE_FORMAT = auto()
    EXPRESSION = auto()
    """Folders and then the expression of find."""
    TEXT_AND_FILES = auto()
    """The first one is text, the others are files."""
    TEXTS = auto()
    """No file at all."""
    NONE = auto()


@dataclass(frozen=True)
class Option:
    """One option under all its names."""

    letters: str
    names: tuple[str, ...]
    argument: Argument = Argument.NONE
    value: Value = Value.TEXT
    forbidden: str = ""
    """Why it is refused, as the end of a sentence; empty when it is allowed."""
    hint: str = ""

    @property
    def key(self) -> str:
        """The name under which code refers to it: the first long one if there is one."""
        return self.names[0] if self.names else self.letters[0]


def flag(names: str) -> Option:
    """Return an option without a value. `names` holds letters and long names: `q quiet silent`."""
    return Option(*_split(names))


def flags(letters: str) -> tuple[Option, ...]:
    """Return options without a value that have a letter and no long name."""
    return tuple(Option(letter, ()) for letter in letters)


def takes(names: str, value: Value = Value.TEXT) -> Option:
    """Return an option that must have a value."""
    return Option(*_split(names), Argument.REQUIRED, value)


def may_take(names: str, value: Value = Value.TEXT) -> Option:
    """Return an option whose value, if any, is glued to it."""
    return Option(*_split(names), Argument.OPTIONAL, value)


def forbidden(names: str, why: str, hint: str = "", *, argument: Argument = Argument.NONE) -> Option:
    """Return an option that is refused in every spelling."""
    return Option(*_split(names), argument, forbidden=why, hint=hint)


def _split(names: str) -> tuple[str, tuple[str, ...]]:
    words = names.split()
    return "".join(word for word in words if len(word) == 1), tuple(word for word in words if len(word) > 1)


@dataclass(frozen=True)
class Program:
    """One program that may run.

    The options are all that GNU knows, so that an abbreviation means what GNU takes it for.
    """

    name: str
    package: str
    """What the first line of `PROGRAM --version` must hold: the table holds for this program only."""
    options: tuple[Option, ...]
    operands: Operands
    access: Access = Access.NAMES
    """What it does with its file operands."""
    reads_stdin: bool = False
    """It reads standard input without a file operand and for the operand `-`."""
    number: str = ""
    """Key of the option that `-NUM` stands for."""
    plus_number: str = ""
    """Key of the option that an operand `+NUM` stands for."""
    takes_folders: bool = True
    """Whether a folder may be an operand: what a program of which we know less does with one, nobody has checked."""
    dotted: bool = False
    """Whether names of files get `./` in front. Some programs take `@name` for a list of further arguments and
    `file:name` for a URL, and open what nobody judged."""
    always: tuple[str, ...] = ()
    """Options that it always gets."""

    @cached_property
    def takes_files(self) -> bool:
        """Whether anything in its arguments can be a file."""
        by_option = any(option.value is Value.FILE for option in self.options)
        return by_option or self.operands not in (Operands.TEXTS, Operands.NONE)

    @cached_property
    def by_letter(self) -> dict[str, Option]:
        """Options by their letters."""
        return {letter: option for option in self.options for letter in option.letters}

    @cached_property
    def by_name(self) -> dict[str, Option]:
        """Options by their long names."""
        return {name: option for option in self.options for name in option.names}


HELP = (flag("help"), flag("version"))
"""What every GNU program has: it prints and ends."""
