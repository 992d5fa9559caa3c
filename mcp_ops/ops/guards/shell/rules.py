"""The rules of the shell guard."""

from mcp_ops.gate import Rule, State

SHELL_LENGTH = Rule(
    "shell.length",
    State.DENIED,
    "The command is longer than 4096 bytes.",
    "Send a shorter command; name a folder or a glob instead of many files.",
    stands_for="A parser that gives up on long input and lets the rest pass.",
    limits="Long work from a short command.",
)
SHELL_ENCODING = Rule(
    "shell.encoding",
    State.DENIED,
    "The command holds a control character, an invisible format character or half a surrogate pair.",
    "Write the command in plain visible characters.",
    stands_for=(
        "Text that a person or a check reads in another way than the program: bidirectional marks, zero-width "
        "and control characters."
    ),
    limits="Look-alike letters: those are the rule of the program's name, or simply another file's name.",
)
SHELL_SYNTAX = Rule(
    "shell.syntax",
    State.DENIED,
    "The command uses shell syntax: an operator, a redirection, an expansion, a comment or a second line. "
    "No shell runs here.",
    "Send one program with its arguments; quote a character that belongs to a pattern.",
    stands_for=(
        "A check on the first command while a shell runs the rest: [DesktopCommanderMCP "
        "#217](https://github.com/wonderwhy-er/DesktopCommanderMCP/issues/217) (`$()`), [DesktopCommanderMCP "
        "#422](https://github.com/wonderwhy-er/DesktopCommanderMCP/issues/422) (newline), "
        "[DesktopCommanderMCP #497](https://github.com/wonderwhy-er/DesktopCommanderMCP/issues/497) (`<()`)."
    ),
    limits=(
        "Anything that needs no operator: that is what the option tables are for. Operators in quotes are "
        "text and pass."
    ),
)
SHELL_QUOTING = Rule(
    "shell.quoting",
    State.DENIED,
    "A quote is not closed, or the command ends in a backslash.",
    "Close the quote, or put the word into single quotes.",
    stands_for="Two parsers that disagree about where a word ends.",
    limits="Well-formed quotes around a bad word.",
)
SHELL_BINARY = Rule(
    "shell.binary",
    State.DENIED,
    "The first word is not the bare name of one of the programs that may run.",
    "Use one of ls cat head tail wc grep find du stat sort uniq date, by its bare name.",
    stands_for=(
        "Block lists of program names, passed by a path, by quotes or by a wrapper: [DesktopCommanderMCP "
        "#218](https://github.com/wonderwhy-er/DesktopCommanderMCP/issues/218), [DesktopCommanderMCP "
        "#421](https://github.com/wonderwhy-er/DesktopCommanderMCP/issues/421), [DesktopCommanderMCP "
        "#730](https://github.com/wonderwhy-er/DesktopCommanderMCP/issues/730)."
    ),
    limits="What an allowed program can do with its options.",
)
SHELL_OPTION = Rule(
    "shell.option",
    State.DENIED,
    "The option is unknown or malformed, or it would write, run a program, follow links, wait or read a list of files.",
    "Leave the option out.",
    stands_for=(
        "A list of read-only programs without a look at their arguments: [iac-code "
        "#88](https://github.com/aliyun/iac-code/issues/88), [gaia "
        "#2740](https://github.com/amd/gaia/pull/2740) (CWE-184: `find -exec`, `sort -oFILE`), [aki-mcp-sv "
        "#2](https://github.com/lacvietanh/aki-mcp-sv/issues/2)."
    ),
    limits=(
        "A program that says it is the GNU one and is not, and an option that does more than its manual says. An "
        "option of a newer version is unknown, and refused."
    ),
)
SHELL_OPERAND = Rule(
    "shell.operand",
    State.DENIED,
    "An argument has no place there: an output file, a new system time, the name of a destructive program, "
    "or a missing pattern.",
    "Name files to read and nothing else.",
    stands_for=(
        "Programs that write or act by an operand, without any option: `uniq IN OUT` ([gaia "
        "#2740](https://github.com/amd/gaia/pull/2740)), `date 010100002030`."
    ),
    limits="A harmful name that is data: in a pattern or a text every word is allowed.",
)
SHELL_STDIN = Rule(
    "shell.stdin",
    State.DENIED,
    "The command would read standard input, and there is none.",
    "Name the file to read.",
    stands_for="A program that waits for ever, or that reads the protocol stream of a stdio server.",
    limits="A program that is slow on a file.",
)
SHELL_GLOB = Rule(
    "shell.glob",
    State.DENIED,
    "The glob fits nothing that may be shown, or too much.",
    "Look with ls or find which names there are, then name them.",
    stands_for="A file called `--output=x`, which a shell's `sort *` turns into an option.",
    limits="Names that the model types itself.",
)
SHELL_WIDTH = Rule(
    "shell.width",
    State.DENIED,
    "A field width in a format has five digits or more.",
    "Leave the width out.",
    stands_for="Twenty bytes that pad to a gigabyte: `date +%999999999Y`.",
    limits="Widths up to 9999; the output is capped while it is read.",
)
SHELL_REGEX = Rule(
    "shell.regex",
    State.DENIED,
    "The pattern can take the regex engine past any deadline: a back-reference, or counts that multiply.",
    "Use grep -P, which gives up by itself, or smaller counts.",
    stands_for="Back-references and nested counts, with which GNU's engines run past any deadline.",
    limits="Slow patterns below the bound: the deadline ends them.",
)
SHELL_TIMEZONE = Rule(
    "shell.timezone",
    State.DENIED,
    "A TZ= in a date names something else than a plain time zone; date would open it as a file.",
    'Write a zone name such as TZ="Europe/Berlin", or leave TZ out: times are UTC.',
    stands_for="`date -d 'TZ=\"/etc/passwd\" now'`, which opens the file, and hangs on a FIFO.",
    limits="A zone name that does not exist; it means UTC.",
)
SHELL_RECURSION = Rule(
    "shell.recursion",
    State.DENIED,
    "The recursion would follow links, or covers more files than can be checked.",
    "Use grep -r on a smaller folder.",
    stands_for="`grep -R` through a link that leads outside, and trees without end.",
    limits="Time: a large tree below the bound is read until the deadline.",
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
