"""date: shows the time; an argument without a `+` would set the clock."""

from mcp_ops.ops.guards.shell.options import (
    HELP,
    Argument,
    Operands,
    Program,
    Value,
    flag,
    forbidden,
    may_take,
    takes,
)

DATE = Program(
    "date",
    "GNU coreutils",
    (
        takes("d date", Value.DATE),
        flag("debug"),
        forbidden(
            "f file",
            "it reads dates from a file, and prints what is in it when they are none",
            "Give the date itself: -d 'DATE'.",
            argument=Argument.REQUIRED,
        ),
        may_take("I iso-8601"),
        flag("resolution"),
        flag("R rfc-email rfc-822 rfc-2822"),
        takes("rfc-3339"),
        takes("r reference", Value.FILE),
        forbidden("s set", "it sets the clock", "Use -d to show another time.", argument=Argument.REQUIRED),
        flag("u utc universal uct"),
        *HELP,
    ),
    Operands.DATE_FORMAT,
)
