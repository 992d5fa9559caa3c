"""The rules of the shell guard."""

from mcp_ops.gate import Rule, State

SHELL_LENGTH = Rule(
    "shell.length",
    State.DENIED,
    "The command is longer than 4096 bytes.",
    "Send a shorter command; name a folder or a glob instead of many files.",
)
SHELL_ENCODING = Rule(
    "shell.encoding",
    State.DENIED,
    "The command holds a control character, an invisible format character or half a surrogate pair.",
    "Write the command in plain visible characters.",
)
SHELL_SYNTAX = Rule(
    "shell.syntax",
    State.DENIED,
    "The command uses shell syntax: an operator, a redirection, an expansion, a comment or a second line. "
    "No shell runs here.",
    "Send one program with its arguments; quote a character that belongs to a pattern.",
)
SHELL_QUOTING = Rule(
    "shell.quoting",
    State.DENIED,
    "A quote is not closed, or the command ends in a backslash.",
    "Close the quote, or put the word into single quotes.",
)
SHELL_BINARY = Rule(
    "shell.binary",
    State.DENIED,
    "The first word is not the bare name of one of the programs that may run.",
    "Use one of ls cat head tail wc grep find du stat sort uniq date, by its bare name.",
)
SHELL_OPTION = Rule(
    "shell.option",
    State.DENIED,
    "The option is unknown or malformed, or it would write, run a program, follow links, wait or read a list of files.",
    "Leave the option out.",
)
SHELL_OPERAND = Rule(
    "shell.operand",
    State.DENIED,
    "An argument has no place there: an output file, a new system time, the name of a destructive program, "
    "or a missing pattern.",
    "Name files to read and nothing else.",
)
SHELL_STDIN = Rule(
    "shell.stdin",
    State.DENIED,
    "The command would read standard input, and there is none.",
    "Name the file to read.",
)
SHELL_GLOB = Rule(
    "shell.glob",
    State.DENIED,
    "The glob fits nothing that may be shown, or too much.",
    "Look with ls or find which names there are, then name them.",
)
SHELL_WIDTH = Rule(
    "shell.width",
    State.DENIED,
    "A field width in a format has five digits or more.",
    "Leave the width out.",
)
SHELL_REGEX = Rule(
    "shell.regex",
    State.DENIED,
    "The pattern can take the regex engine past any deadline: a back-reference, or counts that multiply.",
    "Use grep -P, which gives up by itself, or smaller counts.",
)
SHELL_TIMEZONE = Rule(
    "shell.timezone",
    State.DENIED,
    "A TZ= in a date names something else than a plain time zone; date would open it as a file.",
    'Write a zone name such as TZ="Europe/Berlin", or leave TZ out: times are UTC.',
)
SHELL_RECURSION = Rule(
    "shell.recursion",
    State.DENIED,
    "The recursion would follow links, or covers more files than can be checked.",
    "Use grep -r on a smaller folder.",
)
SHELL_UNAVAILABLE = Rule(
    "shell.unavailable",
    State.UNAVAILABLE,
    "The program is not installed on the server's machine, or is not GNU: the option tables hold for GNU only.",
    "Use read_file and search_files instead.",
)
SHELL_KILLED = Rule(
    "shell.killed",
    State.FAILED,
    "The program was ended by a signal, usually at the limit of memory or file size.",
    "Ask for less: a smaller file, or a part of it with head or tail.",
)

RULES = (
    SHELL_LENGTH,
    SHELL_ENCODING,
    SHELL_SYNTAX,
    SHELL_QUOTING,
    SHELL_BINARY,
    SHELL_OPTION,
    SHELL_OPERAND,
    SHELL_STDIN,
    SHELL_GLOB,
    SHELL_WIDTH,
    SHELL_REGEX,
    SHELL_TIMEZONE,
    SHELL_RECURSION,
    SHELL_UNAVAILABLE,
    SHELL_KILLED,
)
"""Every rule that `run_shell` can answer with, besides those of `path.*` and of the gate."""
