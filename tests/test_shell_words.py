"""From a command line to words: quotes, globs, and nothing else of a shell."""

import random
import shlex

import pytest

from mcp_ops.gate import Denied, Refuse
from mcp_ops.ops.guards.shell.words import MAX_COMMAND_BYTES, Word, split_words


def words(command: str, *off: str) -> list[str] | str:
    """The words of a command, or the rule that refuses it."""
    try:
        return [word.text for word in split_words(command, Refuse(frozenset(off)))]
    except Denied as denied:
        return denied.rule.name


@pytest.mark.covers("A8")
@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("ls -la logs", ["ls", "-la", "logs"]),
        ("  ls \t -la  ", ["ls", "-la"]),
        ("", []),
        ("ls ''", ["ls", ""]),
        ("cat 'on call.md' \"b c\" d\\ e", ["cat", "on call.md", "b c", "d e"]),
        ("cat 'a'\"b\"c", ["cat", "abc"]),
        (r"grep it\'s f", ["grep", "it's", "f"]),
        ("grep 'it'\"'\"'s' f", ["grep", "it's", "f"]),
        (r'grep "a\"b\\c\$d\`e\f" f', ["grep", 'a"b\\c$d`e\\f', "f"]),
        (r"grep 'a\b$(x)`y`${z}|;&<>(){}#' f", ["grep", r"a\b$(x)`y`${z}|;&<>(){}#", "f"]),
        (r"find . \( -name a \) \; \| \{\} \# \$", ["find", ".", "(", "-name", "a", ")", ";", "|", "{}", "#", "$"]),
        ("find . ! -name a", ["find", ".", "!", "-name", "a"]),
        ('grep "a$" f', ["grep", "a$", "f"]),
        ('grep "|;&<>(){}#" f', ["grep", "|;&<>(){}#", "f"]),
        ('grep "\\$(x)" f', ["grep", "$(x)", "f"]),
        ("grep a=b f", ["grep", "a=b", "f"]),
        ("cat notes.md~ a~b", ["cat", "notes.md~", "a~b"]),
        ("grep 'a\nb' f", ["grep", "a\nb", "f"]),
        ("ls a\u00a0b\u3000c", None),
        ("grep é résumé.md", ["grep", "é", "résumé.md"]),
        *((f"ls {operator} x", "shell.syntax") for operator in ";|&<>(){}$`#"),
        *((f"ls x{operator}x", "shell.syntax") for operator in ";|&<>(){}$`#"),
        ("ls && rm x", "shell.syntax"),
        ("ls 2>&1", "shell.syntax"),
        ("ls\nrm x", "shell.syntax"),
        ("ls\n", ["ls"]),
        ("ls -l \r\n\n", ["ls", "-l"]),
        ("ls\n\u00a0", "shell.syntax"),
        ("\nls", "shell.syntax"),
        ("ls\r\nrm x", "shell.syntax"),
        ("ls \\\nx", "shell.syntax"),
        ("cat $'x'", "shell.syntax"),
        ('cat $"x"', "shell.syntax"),
        ('ls "$(rm x)"', "shell.syntax"),
        ('ls "${HOME}"', "shell.syntax"),
        ('ls "`id`"', "shell.syntax"),
        ("ls 'x", "shell.quoting"),
        ('ls "x', "shell.quoting"),
        ('ls "x\\"', "shell.quoting"),
        ("ls x\\", "shell.quoting"),
        ("ls\0", "shell.encoding"),
        ("ls '\x1b[31m'", "shell.encoding"),
        ("ls \x7f", "shell.encoding"),
        ("ls \u202ex", "shell.encoding"),
        ("\ufeffls", "shell.encoding"),
        ("cat .\u200benv", "shell.encoding"),
        ("ls\u2028rm x", "shell.encoding"),
        ("ls \U000e0041", "shell.encoding"),
        ("ls \ud800", "shell.encoding"),
        ("ls " + "x" * (MAX_COMMAND_BYTES - 3), ["ls", "x" * (MAX_COMMAND_BYTES - 3)]),
        ("ls " + "x" * (MAX_COMMAND_BYTES - 2), "shell.length"),
        ("ls " + "é" * (MAX_COMMAND_BYTES // 2), "shell.length"),
    ],
)
def test_a_command_is_split_as_a_shell_quotes_or_refused(command: str, answer: list[str] | str | None) -> None:
    expected = ["ls", "a\u00a0b\u3000c"] if answer is None else answer
    assert words(command) == expected


@pytest.mark.covers("A8")
@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("ls | head", "no pipes"),
        ("ls; pwd", "one command per call"),
        ("ls > out", "nothing can be written"),
        ("cat < in", "name the file as an argument"),
        ("cat $HOME/x", "single quotes"),
        ("cat a{b,c}", "Braces are not expanded"),
        ("find . -exec cat {} +", "find cannot run a program"),
        ("ls # all", "Leave comments out"),
        ("ls\nls", "one line"),
    ],
)
def test_a_refusal_says_what_to_do_instead(command: str, part: str) -> None:
    with pytest.raises(Denied) as denied:
        split_words(command, Refuse())
    assert part.lower() in denied.value.hint.lower()


@pytest.mark.parametrize(
    ("word", "glob"),
    [
        ("*.md", "*.md"),
        ("'*'.md", None),
        ("\\*.md", None),
        ("'on call'*.md", "on call*.md"),
        ("'a*'*", "a\\**"),
        ("[a-k]*", "[a-k]*"),
        ("a[bc]", "a[bc]"),
        ("a[", None),
        ("a]", None),
        ("'a['b]", None),
        ("a?", "a?"),
        ("'{a}'*", "\\{a\\}*"),
    ],
)
def test_only_unquoted_characters_make_a_glob(word: str, glob: str | None) -> None:
    assert split_words(word, Refuse())[0].glob == glob


@pytest.mark.parametrize(
    ("word", "is_variable"),
    [
        ('"$HOME/x"', True),
        ('"a$1"', True),
        ('"a$"', False),
        ("'$HOME'", False),
        ('"\\$HOME"', False),
        ("\\$HOME", False),
    ],
)
def test_a_variable_in_double_quotes_is_noticed(word: str, is_variable: bool) -> None:
    assert split_words(word, Refuse())[0].variable is is_variable


def test_plain_quoting_is_read_as_the_standard_library_reads_it() -> None:
    dice = random.Random(1)
    for _ in range(2000):
        command = "".join(dice.choice("ab  '\"\\-=.*") for _ in range(dice.randrange(12)))
        try:
            expected: list[str] | str = shlex.split(command)
        except ValueError:
            expected = "shell.quoting"
        assert words(command) == expected, command


@pytest.mark.parametrize(
    ("command", "off", "answer"),
    [
        ("ls | head", "shell.syntax", ["ls", "|", "head"]),
        ("ls\nrm x", "shell.syntax", ["ls", "rm", "x"]),
        ('ls "$(x)"', "shell.syntax", ["ls", "$(x)"]),
        ("ls 'x", "shell.quoting", ["ls", "x"]),
        ('ls "x', "shell.quoting", ["ls", "x"]),
        ("ls x\\", "shell.quoting", ["ls", "x"]),
        ("ls \x1b", "shell.encoding", ["ls", "\x1b"]),
    ],
)
def test_with_a_rule_switched_off_its_characters_are_text(command: str, off: str, answer: list[str]) -> None:
    assert words(command, off) == answer


def test_words_are_values() -> None:
    assert Word("a") == Word("a", None, variable=False)
