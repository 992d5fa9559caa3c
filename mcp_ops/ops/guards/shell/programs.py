"""Which program a command names, and what to use instead of those that do not run."""

from collections.abc import Mapping, Sequence

from mcp_ops.gate import Refuse
from mcp_ops.ops.guards.shell.options import Program
from mcp_ops.ops.guards.shell.rules import SHELL_BINARY
from mcp_ops.ops.guards.shell.words import Word
from mcp_ops.text import one_line

_KUBECTL = "Use the tools kubectl_get, kubectl_describe and kubectl_logs."
_FOLDER = "The working folder is always the workspace; write paths relative to it, and list it with `ls -la`."
_GREP = "Use grep: `grep -rn PATTERN FOLDER`."
_LINES = "Use head or tail for a range of lines, grep for matching ones, or read_file."
_READ_ONLY = "Nothing can be changed here; say what you would do instead."
_ALONE = "Call one of the programs by its own name, without another program in front."

_INSTEAD = (
    dict.fromkeys(("egrep", "zgrep"), "Use grep -E.")
    | dict.fromkeys(("fgrep",), "Use grep -F.")
    | dict.fromkeys(("rg", "ag", "ack", "locate", "git"), _GREP)
    | dict.fromkeys(("sed", "awk", "gawk", "less", "more", "cut", "tac", "nl", "strings", "zcat"), _LINES)
    | dict.fromkeys(("tree", "dir", "fd", "file", "readlink", "realpath"), "Use find, `ls -R` or stat.")
    | dict.fromkeys(("cd", "pwd", "pushd", "popd"), _FOLDER)
    | dict.fromkeys(("kubectl", "k", "oc", "helm", "k9s"), _KUBECTL)
    | dict.fromkeys(("df",), "Use du for the size of folders, `stat -f .` for the file system.")
    | dict.fromkeys(
        ("xargs", "env", "command", "exec", "time", "timeout", "nice", "nohup", "sudo", "bash", "sh"), _ALONE
    )
    | dict.fromkeys(("rm", "mv", "cp", "touch", "mkdir", "rmdir", "chmod", "chown", "tee", "dd", "ln"), _READ_ONLY)
)


def choose_program(words: Sequence[Word], programs: Mapping[str, Program], refuse: Refuse) -> Program | None:
    """Return the table of the program that a command names; None if the refusal is switched off.

    Raises:
        Denied: `shell.binary`.
    """
    if not words:
        refuse(SHELL_BINARY, "the command is empty")
        return None
    name = words[0].text
    program = programs.get(name)
    if program is None:
        instead = f"Use one of {' '.join(programs)}, by its bare name."
        refuse(SHELL_BINARY, _why(name), _INSTEAD.get(name.rpartition("/")[2].casefold(), instead))
    return program


def _why(name: str) -> str:
    shown = repr(one_line(name, 40))
    if "/" in name:
        return f"{shown} is a path: programs are called by their bare names"
    if "=" in name:
        return f"{shown} sets a variable, and the environment is fixed"
    return f"{shown} is not one of the programs that may run"
