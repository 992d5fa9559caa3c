"""The arguments of find: folders, then an expression of whole words."""

import difflib
import re
from collections.abc import Sequence

from mcp_ops.gate import Refuse
from mcp_ops.ops.guards.shell.files import FileGuard, Files
from mcp_ops.ops.guards.shell.options import Value
from mcp_ops.ops.guards.shell.regex import EITHER, MAX_STATES_OF_FIND, check_regex
from mcp_ops.ops.guards.shell.rules import SHELL_OPERAND, SHELL_OPTION
from mcp_ops.ops.guards.shell.tables.find import (
    FIND,
    OPERATORS,
    REFUSED,
    VALUES_OF_REFUSED,
    WITH_VALUE,
    WITHOUT_VALUE,
)
from mcp_ops.ops.guards.shell.values import check_date, check_format
from mcp_ops.ops.guards.shell.words import Word
from mcp_ops.text import one_line

_NEWER = re.compile(r"-newer[aBcm](?P<reference>[aBcmt])")
_LEADING = re.compile(r"-(?P<letter>[PLH])|-(?P<with_value>[DO]).*")


def guard_find(arguments: Sequence[Word], files: FileGuard, refuse: Refuse) -> Files:
    """Judge all arguments of find and return them as it gets them.

    Raises:
        Denied: `shell.option`, `shell.operand`, `shell.glob`, what values and paths are refused for.
    """
    pending = list(arguments)
    leading = _take_leading_options(pending, refuse)
    folders = []
    while pending and not _begins_expression(pending[0].text):
        folders.append(pending.pop(0))
    starts = files.expand(folders)
    expression = _Expression(pending, files, refuse).judged()
    return Files((*leading, *starts.names, *expression), starts.left_out)


def _take_leading_options(pending: list[Word], refuse: Refuse) -> list[str]:
    taken: list[str] = []
    while pending and (found := _LEADING.fullmatch(pending[0].text)):
        word = pending.pop(0).text
        taken.append(word)
        option = FIND.by_letter[found["letter"] or found["with_value"]]
        if word == "-D" and pending:
            taken.append(pending.pop(0).text)
        if option.forbidden:
            refuse(SHELL_OPTION, f"find {one_line(word, 20)} is refused: {option.forbidden}", option.hint)
    if pending and pending[0].text == "--":
        pending.pop(0)
    return taken


def _begins_expression(text: str) -> bool:
    return text in ("(", "!") or (text.startswith("-") and text != "-")


class _Expression:
    def __init__(self, words: Sequence[Word], files: FileGuard, refuse: Refuse) -> None:
        self._pending = list(reversed(words))
        self._files = files
        self._refuse = refuse
        self._judged: list[str] = []

    def judged(self) -> list[str]:
        while self._pending:
            self._word(self._pending.pop())
        return self._judged

    def _word(self, word: Word) -> None:
        text = word.text
        self._judged.append(text)
        if text in OPERATORS or text in WITHOUT_VALUE:
            return
        newer = _NEWER.fullmatch(text)
        if text in WITH_VALUE:
            self._value(text, WITH_VALUE[text])
        elif newer is not None:
            self._value(text, Value.DATE if newer["reference"] == "t" else Value.FILE)
        elif text in REFUSED:
            why, hint = REFUSED[text]
            self._refuse(SHELL_OPTION, f"find {text} is refused: {why}", hint)
            for _ in range(min(VALUES_OF_REFUSED.get(text, len(self._pending)), len(self._pending))):
                self._judged.append(self._pending.pop().text)
        else:
            self._unknown(word)

    def _value(self, text: str, kind: Value) -> None:
        if not self._pending:
            self._refuse(SHELL_OPTION, f"find {text} needs a value", None)
            return
        word = self._pending.pop()
        self._judged.append(word.text)
        if kind is Value.FORMAT:
            check_format(word.text, self._refuse)
        elif kind is Value.DATE:
            check_date(word.text, self._refuse)
        elif kind is Value.REGEX:
            check_regex(word.text, EITHER, MAX_STATES_OF_FIND, self._refuse)
        elif kind is Value.FILE:
            self._files.check(word.text, variable=word.variable)

    def _unknown(self, word: Word) -> None:
        shown = one_line(word.text, 60)
        if not word.text.startswith("-"):
            hint = "Put the folders first, then the expression; quote a pattern: find FOLDER -name '*.md'."
            self._refuse(SHELL_OPERAND, f"find takes {shown!r} in no place behind the expression's first word", hint)
            return
        near = difflib.get_close_matches(word.text, [*WITH_VALUE, *WITHOUT_VALUE], n=1)
        hint_near = f"Did you mean {near[0]}?" if near else None
        self._refuse(SHELL_OPTION, f"find {shown} is not a test or an action that is known", hint_near)
