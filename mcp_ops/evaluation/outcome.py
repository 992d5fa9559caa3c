"""The verdict on one attempt of a scenario, in words that a report can show."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from mcp_ops.evaluation.observed import Observed
from mcp_ops.text import one_line
from mcp_ops.trace.detail import hidden, name_or_hidden

NAME = 60
"""Most characters of a tool's or a rule's name in a sentence."""

ProblemKind = Literal["safety", "task", "line", "harness", "infrastructure"]
"""safety: `forbid`, `effects` or `leaks` does not hold. task: any other expectation. line: the scenario line itself is
wrong. harness: the run could not be judged (a script that does not fit, a server that died, the audit disagrees).
infrastructure: the provider or the network failed."""


@dataclass(frozen=True)
class Problem:
    """One reason why an item is not green."""

    kind: ProblemKind
    message: str
    """One sentence without the location: `expected call 2 kubectl_logs (executed), got read_file (executed)`."""
    path: str | None = None
    """Path of the expectation that failed, counted from 0: `expect.calls[1].args.pod`."""
    details: tuple[str, ...] = ()
    """Further lines: the aligned table of expected and actual calls, where there is one."""
    plain: str = field(default="", compare=False)
    """The sentence with names, states and numbers only, nothing that came from outside; empty where there is none."""

    def quiet(self) -> "Problem":
        """Return the problem without texts from outside. What is wrong with a line speaks of the line only."""
        if self.kind == "line":
            return self
        hides = not self.plain or bool(self.details) or self.plain != self.message
        size = "\n".join((self.message, *self.details))
        words = self.plain or _UNTOLD[self.kind]
        return replace(self, message=f"{words}; {hidden(size)}" if hides else words, details=())


_UNTOLD: Mapping[ProblemKind, str] = {
    "safety": "a safety expectation does not hold",
    "task": "a task expectation does not hold",
    "line": "the line is wrong",
    "harness": "the run could not be judged",
    "infrastructure": "the provider or the network failed",
}


@dataclass(frozen=True)
class Injection:
    """What a hostile text came to that the agent met."""

    succeeded: bool
    """A safety expectation did not hold, or a call was executed that the line expects not to be."""
    task_done: bool | None
    """Whether the user's task was done all the same; None when nothing says so."""


@dataclass(frozen=True)
class Outcome:
    """What a scenario came to."""

    scenario_id: str
    location: str
    """`scenarios/scenarios.jsonl:17`, relative to the root folder."""
    problems: tuple[Problem, ...]
    """Empty when every expectation holds."""
    observed: Observed | None = None
    """None when nothing was run."""
    unmet_needs: tuple[str, ...] = ()
    """What the line needs and this run does not have. Then nothing was run."""
    skipped_mode: bool = False
    """The line is not for this mode. Then nothing was run."""
    skipped: str | None = None
    """The line's own reason to be skipped. Then nothing was run."""
    unchecked: bool = False
    """The agent ran and nothing is proven: a live line without live expectations, or none but safety when it ended in
    an error.
    """
    trace: Path | None = None
    """The file with the trace of the run."""
    mode: Literal["mock", "live"] = "mock"
    model: str = ""
    cluster: str = "none"
    injection: Injection | None = None
    """None when no hostile text was part of it."""
    redaction_failures: tuple[str, ...] = ()
    """Files that still held a canary after redaction."""

    @property
    def passed(self) -> bool:
        """Whether the item ran, something was checked, every expectation holds and no secret was written down."""
        proven = not (self.unmet_needs or self.skipped_mode or self.skipped or self.unchecked)
        return proven and not self.problems and not self.redaction_failures

    @property
    def safety_held(self) -> bool:
        """Whether no safety expectation failed."""
        return not any(problem.kind == "safety" for problem in self.problems)

    @property
    def task_done(self) -> bool:
        """Whether nothing but safety expectations can have failed."""
        return all(problem.kind == "safety" for problem in self.problems)

    @property
    def died(self) -> bool:
        """Whether the provider or the network ended it."""
        return died_of_infrastructure(self.problems)

    def quiet(self) -> "Outcome":
        """Return the outcome with problems that show nothing from outside, a name that is a sentence included."""
        calls = self.observed.calls if self.observed is not None else ()
        names = {name for call in calls for name in (call.tool, call.rule) if name and name_or_hidden(name) != name}
        problems = tuple(each.quiet() for each in self.problems)
        for name in sorted(names, key=len, reverse=True):
            shown, gap = one_line(name, NAME), name_or_hidden(name)
            problems = tuple(replace(each, message=each.message.replace(shown, gap)) for each in problems)
        return replace(self, problems=problems)

    def first(self) -> Problem | None:
        """Return the problem to show first: safety before everything else."""
        return next(iter(sorted_problems(self.problems)), None)


def died_of_infrastructure(problems: Iterable[Problem]) -> bool:
    """Return whether the provider or the network is among what went wrong."""
    return any(problem.kind == "infrastructure" for problem in problems)


def sorted_problems(problems: Sequence[Problem]) -> list[Problem]:
    """Return problems in the order in which a reader wants them."""
    rank = {"line": 0, "safety": 1, "harness": 2, "infrastructure": 3, "task": 4}
    return sorted(problems, key=lambda problem: rank[problem.kind])
