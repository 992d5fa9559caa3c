"""find: no options but an expression, with its own words and no abbreviations."""

from mcp_ops.ops.guards.shell.options import Operands, Program, Value, flag, forbidden

_FOLLOWS = "it follows links, which may lead outside"
_RUNS = "it runs a program"
_WRITES = "it writes a file"
_BY_ITSELF = "List the files first, then call the program by itself on the ones you need."
_RESULT = "What is found comes back as the result: use -print, -printf or -ls."
_AS_LINKS = "Links are found as links (-type l); search the folder that a link points to by itself."

FIND = Program(
    "find",
    "GNU findutils",
    (
        flag("P"),
        forbidden("L", _FOLLOWS, _AS_LINKS),
        forbidden("H", _FOLLOWS, _AS_LINKS),
        forbidden("D", "it is for debugging find itself", "Leave it out."),
        forbidden("O", "it is for tuning find itself", "Leave it out."),
    ),
    Operands.EXPRESSION,
)

OPERATORS = frozenset({"(", ")", "!", ","})

_WITHOUT_VALUE = (
    "-a -and -o -or -not -true -false -daystart -depth -d -mount -xdev -noleaf -warn -nowarn"
    " -ignore_readdir_race -noignore_readdir_race -empty -executable -readable -writable -nouser -nogroup"
    " -print -print0 -ls -prune -quit -help --help -version --version"
)
WITHOUT_VALUE = frozenset(_WITHOUT_VALUE.split())

_WITH_TEXT = (
    "-amin -atime -cmin -ctime -mmin -mtime -used -context -fstype -gid -group -uid -user -inum -links -perm -size"
    " -type -xtype -name -iname -path -ipath -wholename -iwholename -lname -ilname -maxdepth -mindepth -regextype"
)
WITH_VALUE = dict.fromkeys(_WITH_TEXT.split(), Value.TEXT) | {
    "-printf": Value.FORMAT,
    "-regex": Value.REGEX,
    "-iregex": Value.REGEX,
    "-newer": Value.FILE,
    "-anewer": Value.FILE,
    "-cnewer": Value.FILE,
    "-samefile": Value.FILE,
}

REFUSED = {
    "-delete": ("it deletes what it finds", "Nothing can be deleted."),
    "-exec": (_RUNS, _BY_ITSELF),
    "-execdir": (_RUNS, _BY_ITSELF),
    "-ok": (_RUNS, _BY_ITSELF),
    "-okdir": (_RUNS, _BY_ITSELF),
    "-fprint": (_WRITES, _RESULT),
    "-fprint0": (_WRITES, _RESULT),
    "-fprintf": (_WRITES, _RESULT),
    "-fls": (_WRITES, _RESULT),
    "-follow": (_FOLLOWS, _AS_LINKS),
    "-files0-from": ("it takes names from a file", "Name the folders as arguments."),
}
"""Why a word is refused, as the end of a sentence, and what to do instead."""

VALUES_OF_REFUSED = {"-fprint": 1, "-fprint0": 1, "-fprintf": 2, "-fls": 1, "-files0-from": 1}
"""Values of refused words; those of -exec and its like end at a `;` or `+`."""
