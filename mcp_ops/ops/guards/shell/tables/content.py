"""Programs that print what is in files, or count it: cat, head, tail, wc, sort, uniq."""

from mcp_ops.ops.guards.shell.options import (
    HELP,
    Access,
    Argument,
    Operands,
    Program,
    flag,
    flags,
    forbidden,
    may_take,
    takes,
)

_LISTS = "it takes names from a file, and prints what is in it when they are not there"
_NAME_THEM = "Name the files as arguments."
_WAITS = "it waits for the file to grow"
_TAIL_ONCE = "Use tail -n NUM and call it again later."
_WRITES = "it writes a file"
_RESULT = "The sorted lines come back as the result."
_IN_MEMORY = "--buffer-size=768M"
"""Room for a file of 64 MB with short lines: sort may write no temporary file. Untouched memory costs nothing."""
_AT_ONCE = "--batch-size=200"
"""Files merged in one go: for more than that sort writes temporary files. Each is held open, so the number is small."""
_SPILLS = "it is about temporary files and load, which the server decides"
_LEAVE_OUT = "Leave it out."

CAT = Program(
    "cat",
    "GNU coreutils",
    (
        flag("A show-all"),
        flag("b number-nonblank"),
        *flags("etu"),
        flag("E show-ends"),
        flag("n number"),
        flag("s squeeze-blank"),
        flag("T show-tabs"),
        flag("v show-nonprinting"),
        *HELP,
    ),
    Operands.FILES,
    Access.WHOLE,
    reads_stdin=True,
)

HEAD = Program(
    "head",
    "GNU coreutils",
    (
        takes("c bytes"),
        takes("n lines"),
        flag("q quiet silent"),
        flag("v verbose"),
        flag("z zero-terminated"),
        *HELP,
    ),
    Operands.FILES,
    Access.CONTENT,
    reads_stdin=True,
    number="lines",
)

TAIL = Program(
    "tail",
    "GNU coreutils",
    (
        takes("c bytes"),
        takes("n lines"),
        flag("q quiet silent"),
        flag("v verbose"),
        flag("z zero-terminated"),
        flag("debug"),
        forbidden("f F", _WAITS, _TAIL_ONCE),
        forbidden("follow", _WAITS, _TAIL_ONCE, argument=Argument.OPTIONAL),
        forbidden("retry", _WAITS, _TAIL_ONCE),
        forbidden("s sleep-interval", _WAITS, _TAIL_ONCE, argument=Argument.REQUIRED),
        forbidden("pid", _WAITS, _TAIL_ONCE, argument=Argument.REQUIRED),
        forbidden("max-unchanged-stats", _WAITS, _TAIL_ONCE, argument=Argument.REQUIRED),
        *HELP,
    ),
    Operands.FILES,
    Access.CONTENT,
    reads_stdin=True,
    number="lines",
    plus_number="lines",
)

WC = Program(
    "wc",
    "GNU coreutils",
    (
        flag("c bytes"),
        flag("m chars"),
        flag("l lines"),
        forbidden("files0-from", _LISTS, _NAME_THEM, argument=Argument.REQUIRED),
        flag("L max-line-length"),
        flag("w words"),
        takes("total"),
        flag("debug"),
        *HELP,
    ),
    Operands.FILES,
    Access.CONTENT,
    reads_stdin=True,
)

SORT = Program(
    "sort",
    "GNU coreutils",
    (
        flag("b ignore-leading-blanks"),
        flag("d dictionary-order"),
        flag("f ignore-case"),
        flag("g general-numeric-sort"),
        flag("i ignore-nonprinting"),
        flag("M month-sort"),
        flag("h human-numeric-sort"),
        flag("n numeric-sort"),
        flag("R random-sort"),
        forbidden("random-source", "it reads a further file", _LEAVE_OUT, argument=Argument.REQUIRED),
        flag("r reverse"),
        takes("sort"),
        flag("V version-sort"),
        forbidden("batch-size", _SPILLS, _LEAVE_OUT, argument=Argument.REQUIRED),
        *flags("cC"),
        may_take("check"),
        forbidden("compress-program", "it runs a program", _LEAVE_OUT, argument=Argument.REQUIRED),
        flag("debug"),
        forbidden("files0-from", _LISTS, _NAME_THEM, argument=Argument.REQUIRED),
        takes("k key"),
        flag("m merge"),
        forbidden("o output", _WRITES, _RESULT, argument=Argument.REQUIRED),
        flag("s stable"),
        forbidden("S buffer-size", _SPILLS, _LEAVE_OUT, argument=Argument.REQUIRED),
        takes("t field-separator"),
        forbidden("T temporary-directory", _WRITES, _RESULT, argument=Argument.REQUIRED),
        forbidden("parallel", _SPILLS, _LEAVE_OUT, argument=Argument.REQUIRED),
        flag("u unique"),
        flag("z zero-terminated"),
        *HELP,
    ),
    Operands.FILES,
    Access.WHOLE,
    reads_stdin=True,
    always=(_IN_MEMORY, _AT_ONCE, "--parallel=1"),
)

UNIQ = Program(
    "uniq",
    "GNU coreutils",
    (
        flag("c count"),
        flag("d repeated"),
        flag("D"),
        may_take("all-repeated"),
        takes("f skip-fields"),
        may_take("group"),
        flag("i ignore-case"),
        takes("s skip-chars"),
        flag("u unique"),
        flag("z zero-terminated"),
        takes("w check-chars"),
        *HELP,
    ),
    Operands.ONE_FILE,
    Access.WHOLE,
    reads_stdin=True,
    number="skip-fields",
    plus_number="skip-chars",
)
