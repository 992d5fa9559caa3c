"""What a glob stands for, inside the workspace and nowhere else."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mcp_ops.gate import Denied, Refuse
from mcp_ops.ops.guards.globs import Glob, GlobError, compile_glob
from mcp_ops.ops.walk import Found
from mcp_ops.ops.workspace import Workspace

MAX_FITTING = 2000
MAX_READ = 20_000
"""Names that are compared, fitting or not."""


class Expansion:
    """Expands one glob. A folder that a link leads out to is as good as empty."""

    def __init__(self, workspace: Workspace, refuse: Refuse) -> None:
        self._workspace = workspace
        self._refuse = refuse
        self._read = 0

    def of(self, glob: str) -> Iterator[str]:
        """Yield the names that fit, in the order of a shell, each with `./` in front: none can become an option.

        Raises:
            GlobError: The glob is malformed or fits too much.
        """
        steps = [_Step.of(component) for component in glob.split("/")]
        for count, name in enumerate(self._below("", steps)):
            if count >= MAX_FITTING:
                raise GlobError(f"fits more than {MAX_FITTING} names")
            yield name if name.startswith("./") else f"./{name}"

    def is_there(self, path: str) -> bool:
        """Whether there is something of this very name, inside the workspace."""
        found = self._look(path)
        return found is not None and found.kind != "missing"

    def _below(self, folder: str, steps: Sequence["_Step"]) -> Iterator[str]:
        step, rest = steps[0], steps[1:]
        names = [step.text] if step.glob is None else [name for name in self._names_in(folder) if step.fits(name)]
        for name in names:
            path = folder + name
            if rest:
                yield from self._below(f"{path}/", rest)
            elif step.glob is not None or self.is_there(path):
                yield path

    def _names_in(self, folder: str) -> list[str]:
        found = self._look(folder or ".")
        if found is None or found.kind != "directory":
            return []
        try:
            with os.scandir(self._workspace.root / found.resolved) as entries:
                names = sorted(entry.name for entry in entries)
        except OSError:
            return []
        self._read += len(names)
        if self._read > MAX_READ:
            raise GlobError(f"would have to be compared with more than {MAX_READ} names")
        return names

    def _look(self, path: str) -> Found | None:
        try:
            return self._workspace.look(path, self._refuse.leaving_out, may_be_secret=True)
        except Denied:
            return None


@dataclass(frozen=True)
class _Step:
    """One component of a glob."""

    text: str
    glob: Glob | None
    """None when it is a plain name."""

    @classmethod
    def of(cls, component: str) -> "_Step":
        if any(character in component for character in "*?[\\"):
            return cls(component, compile_glob(component))
        return cls(component, None)

    def fits(self, name: str) -> bool:
        """Whether a name fits; a hidden one only if the glob says so."""
        if name.startswith(".") and not self.text.startswith("."):
            return False
        return self.glob is not None and self.glob.fits(name)
