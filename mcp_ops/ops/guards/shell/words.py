"""From a command line to its words, by the quoting rules of a POSIX shell and without anything else of it.

One pass, no second parser behind it: what this module calls a word is what the program gets.
"""

import re
import unicodedata
from dataclasses import dataclass

from mcp_ops.gate import Refuse
from mcp_ops.ops.guards.shell.rules import SHELL_ENCODING, SHELL_LENGTH, SHELL_QUOTING, SHELL_SYNTAX

MAX_COMMAND_BYTES = 4096

_ASCII_TEXT = re.compile(r"[\t\n\r\x20-\x7e]*")
_NEVER = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories: control, format, surrogate, line and paragraph separator."""

_UNQUOTED = re.compile(r"""(?P<blank>[ \t]+)|(?P<plain>[^ \t\n\r'"\\;|&<>(){}$#`*?\[]+)|(?P<glob>[*?\[])""")
_IN_DOUBLE_QUOTES = re.compile(r'[^"\\$`]+')
_VARIABLE = re.compile(r"\$[A-Za-z0-9_]")
_ACTIVE_IN_GLOB = re.compile(r"[*?\[\]{},\\]")

_ONE_COMMAND = "Send one command per call."
_FILES_STAY = "Output comes back as the result and stderr with it; nothing can be written."
_NO_VALUES = "Nothing is expanded: write the value itself, or put a literal $ into single quotes."
_HINTS = {
    "|": "There are no pipes: name the file to the program itself, as in `grep PATTERN FILE` or `sort FILE`; "
    "in a pattern, quote the |.",
    ";": _ONE_COMMAND + " Quote a ; that belongs to an argument, as in `sort -t';' FILE`.",
    "&": _ONE_COMMAND + " Quote an & that belongs to a pattern.",
    "<": "There are no redirections: name the file as an argument.",
    ">": "There are no redirections. " + _FILES_STAY,
    "(": "Quote or escape parentheses: `find . \\( -name A -o -name B \\)`, `grep -E '(a|b)' FILE`.",
    "{": "Braces are not expanded, and find cannot run a program: name each file, or quote a brace in a pattern.",
    "$": _NO_VALUES,
    "$'": "No escapes are read: put the character itself into quotes, a tab for instance.",
    "`": "No command is substituted: call it by itself first; in a pattern, put ` into single quotes.",
    "#": "Leave comments out; quote a # that belongs to a pattern or a name.",
    "\n": _ONE_COMMAND + " Keep it on one line.",
}
_HINTS |= {")": _HINTS["("], "}": _HINTS["{"], "\r": _HINTS["\n"]}


@dataclass(frozen=True, slots=True)
class Word:
    """One argument, and what a shell would have made of its unquoted characters."""

    text: str
    glob: str | None = None
    """The word in the language of `mcp_ops.ops.guards.globs`, if it holds unquoted glob characters."""
    variable: bool = False
    """It holds `$NAME` inside double quotes: a shell would put a value there, here it is text."""


def split_words(command: str, refuse: Refuse) -> list[Word]:
    """Split a command into words.

    Raises:
        Denied: `shell.length`, `shell.encoding`, `shell.syntax`, `shell.quoting`.
    """
    _refuse_unfit(command, refuse)
    return _Scanner(command, refuse).words()


def _refuse_unfit(command: str, refuse: Refuse) -> None:
    size = len(command.encode("utf-8", "surrogatepass"))
    if size > MAX_COMMAND_BYTES:
        refuse(SHELL_LENGTH, f"the command is {size} bytes long; at most {MAX_COMMAND_BYTES} are read")
    if _ASCII_TEXT.fullmatch(command):
        return
    for character in command:
        if unicodedata.category(character) in _NEVER and character not in "\t\n\r":
            shown = f"U+{ord(character):04X}"
            refuse(SHELL_ENCODING, f"the command holds the control or invisible character {shown}")


class _Scanner:
    """Reads one command. Where a refusal is switched off, the character counts as text."""

    def __init__(self, command: str, refuse: Refuse) -> None:
        self._command = command
        self._refuse = refuse
        self._at = 0
        self._words: list[Word] = []
        self._text = self._glob = ""
        self._started = self._variable = self._is_glob = self._bracket = False

    def words(self) -> list[Word]:
        while self._at < len(self._command):
            found = _UNQUOTED.match(self._command, self._at)
            if found is None:
                self._special(self._command[self._at])
                continue
            self._at = found.end()
            if found.lastgroup == "blank":
                self._finish()
            else:
                self._unquoted(found[0])
        self._finish()
        return self._words

    def _special(self, character: str) -> None:
        self._at += 1
        if character == "'":
            self._single_quotes()
        elif character == '"':
            self._double_quotes()
        elif character == "\\":
            self._escaped()
        elif character in "\n\r":
            if self._command[self._at :].strip(" \t\r\n"):
                self._refuse_syntax(character, "the command has more than one line")
            self._finish()
        else:
            kind = "$'" if self._command.startswith("$'", self._at - 1) else character
            self._refuse_syntax(kind, f"unquoted {character!r} is shell syntax, and no shell runs here")
            self._quoted(character)

    def _single_quotes(self) -> None:
        end = self._command.find("'", self._at)
        if end < 0:
            self._refuse(SHELL_QUOTING, "a single quote is not closed")
            end = len(self._command)
        self._quoted(self._command[self._at : end])
        self._at = end + 1

    def _double_quotes(self) -> None:
        self._quoted("")
        while self._at < len(self._command):
            found = _IN_DOUBLE_QUOTES.match(self._command, self._at)
            if found is not None:
                self._quoted(found[0])
                self._at = found.end()
                continue
            character = self._command[self._at]
            self._at += 1
            if character == '"':
                return
            following = self._command[self._at : self._at + 1]
            if character == "\\" and following and following in '"\\$`':
                self._quoted(following)
                self._at += 1
            else:
                self._live(character, following)
        self._refuse(SHELL_QUOTING, "a double quote is not closed")

    def _live(self, character: str, following: str) -> None:
        if character == "`" or (character == "$" and following and following in "({"):
            self._refuse_syntax(character, f"{character + following!r} is live inside double quotes in a shell")
        self._variable = self._variable or _VARIABLE.match(character + following) is not None
        self._quoted(character)

    def _escaped(self) -> None:
        if self._at == len(self._command):
            self._refuse(SHELL_QUOTING, "the command ends in a backslash")
            return
        character = self._command[self._at]
        if character in "\n\r":
            self._refuse_syntax(character, "the command goes on on a second line")
        self._quoted(character)
        self._at += 1

    def _refuse_syntax(self, character: str, reason: str) -> None:
        self._refuse(SHELL_SYNTAX, reason, _HINTS[character])

    def _unquoted(self, text: str) -> None:
        self._started = True
        self._text += text
        self._glob += text
        self._bracket = self._bracket or text == "["
        self._is_glob = self._is_glob or text in "*?" or (self._bracket and "]" in text)

    def _quoted(self, text: str) -> None:
        self._started = True
        self._text += text
        self._glob += _ACTIVE_IN_GLOB.sub(r"\\\g<0>", text)

    def _finish(self) -> None:
        if self._started:
            self._words.append(Word(self._text, self._glob if self._is_glob else None, self._variable))
        self._text = self._glob = ""
        self._started = self._variable = self._is_glob = self._bracket = False
