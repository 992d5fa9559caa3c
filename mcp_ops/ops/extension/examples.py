"""Judging the examples of an addition: the guard decides, nothing runs."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp_ops.gate import Denied, Refuse
from mcp_ops.ops.extension.model import (
    ExtensionFile,
    KindCall,
    KindEntry,
    ProgramEntry,
    SecretNameEntry,
    Wrong,
)
from mcp_ops.ops.extension.tables import Extension, spellings_of, with_names
from mcp_ops.ops.guards.kubectl import guard_output, guard_target
from mcp_ops.ops.guards.shell import guard_command
from mcp_ops.ops.guards.shell.rules import (
    SHELL_BINARY,
    SHELL_ENCODING,
    SHELL_LENGTH,
    SHELL_QUOTING,
    SHELL_SYNTAX,
)
from mcp_ops.ops.rules import PATH_SECRET
from mcp_ops.ops.workspace import Workspace

_BEFORE_THE_TABLE = {rule.name for rule in (SHELL_LENGTH, SHELL_ENCODING, SHELL_SYNTAX, SHELL_QUOTING, SHELL_BINARY)}

Judged = tuple[str, str, Mapping[str, Any], str | None]
"""`attack` or `harmless`, tool, arguments, and the rule that denies."""


class Judge:
    """Judges examples in one workspace, with all additions of a file."""

    def __init__(self, file: ExtensionFile, extension: Extension, root: Path) -> None:
        self._file = file
        self._extension = extension
        self._workspace = Workspace(root, secret_names=extension.secret_names)

    def of(self, entry: ProgramEntry | KindEntry | SecretNameEntry) -> Iterator[Judged]:
        """Yield every example of an entry with what was decided.

        Raises:
            Wrong: An attack would be allowed, a harmless example denied, or an example has nothing to do with the
                entry.
        """
        if isinstance(entry, ProgramEntry):
            yield from self._program(entry)
        elif isinstance(entry, KindEntry):
            yield from self._kind(entry)
        else:
            yield from self._secret_name(entry)

    def _program(self, entry: ProgramEntry) -> Iterator[Judged]:
        for what, command in _both(entry):
            if command.split()[:1] != [entry.name]:
                raise Wrong(f"the {what} example {command!r} does not begin with {entry.name}")
            rule = self._command(command)
            _expect(what, command, rule)
            if rule in _BEFORE_THE_TABLE:
                raise Wrong(
                    f"the attack {command!r} is denied by {rule} whatever the table says; write one that uses an "
                    "option or an operand of the program"
                )
            yield what, "run_shell", {"command": command}, rule

    def _secret_name(self, entry: SecretNameEntry) -> Iterator[Judged]:
        others = [other for other in self._file.secret_name if other is not entry]
        without = replace(self._workspace, secret_names=with_names(others))
        for what, command in _both(entry):
            rule = self._command(command)
            _expect(what, command, rule)
            if what == "attack" and (rule != PATH_SECRET.name or self._command(command, without) is not None):
                raise Wrong(f"the attack {command!r} is denied without this pattern too; write one that needs it")
            yield what, "run_shell", {"command": command}, rule

    def _kind(self, entry: KindEntry) -> Iterator[Judged]:
        plural, others = spellings_of(entry)
        for what, call in _both_calls(entry):
            if not any(spelling in call.resource.casefold() for spelling in (plural, *others)):
                raise Wrong(f"the {what} example with resource {call.resource!r} does not name {entry.plural}")
            rule = self._call(call)
            _expect(what, call.resource, rule)
            yield what, "kubectl_get", call.model_dump(exclude_none=True), rule

    def _command(self, command: str, workspace: Workspace | None = None) -> str | None:
        try:
            guard_command(command, workspace or self._workspace, Refuse(), self._extension.allowed.programs)
        except Denied as denied:
            return denied.rule.name
        return None

    def _call(self, call: KindCall) -> str | None:
        try:
            kinds = self._extension.allowed.kinds
            guard_target(call.resource, call.name, call.namespace, Refuse(), kinds=kinds)
            guard_output(call.output, Refuse())
        except Denied as denied:
            return denied.rule.name
        return None


def _both(entry: ProgramEntry | SecretNameEntry) -> Iterator[tuple[str, str]]:
    yield from (("attack", command) for command in entry.attack)
    yield from (("harmless", command) for command in entry.harmless)


def _both_calls(entry: KindEntry) -> Iterator[tuple[str, KindCall]]:
    yield from (("attack", call) for call in entry.attack)
    yield from (("harmless", call) for call in entry.harmless)


def _expect(what: str, shown: str, rule: str | None) -> None:
    if what == "attack" and rule is None:
        raise Wrong(f"the attack {shown!r} would be allowed; refuse the option, or write a call that must be denied")
    if what == "harmless" and rule is not None:
        raise Wrong(f"the harmless example {shown!r} is denied by {rule}; widen the table, or write another example")
