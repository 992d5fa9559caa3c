"""States and rules: the words in which a tool call is answered."""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """What became of a tool call.

    executed: the tool ran to its end, whatever the exit code. failed: it ran and could not finish.
    denied: a rule said no before anything ran. unavailable: the thing behind the tool is absent.
    declined: a person said no.
    """

    EXECUTED = "executed"
    FAILED = "failed"
    DENIED = "denied"
    UNAVAILABLE = "unavailable"
    DECLINED = "declined"


@dataclass(frozen=True)
class Rule:
    """A guard's smallest named reason; every state but `executed` carries one."""

    name: str
    """`shell.option`: lower case, stable, documented."""
    state: State
    meaning: str
    """One sentence for the table of rules: when the rule fires."""
    hint: str = ""
    """What the model can do instead; shown with the reason unless the guard knows better."""


class Denied(Exception):
    """How `Refuse` unwinds a guard. It never leaves the gate: `call` turns it into a reply."""

    def __init__(self, rule: Rule, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.rule = rule
        self.reason = reason
        self.hint = hint


@dataclass(frozen=True)
class Refuse:
    """Says no in the name of a rule: `refuse(PATH_OUTSIDE, "../x leads outside the workspace")`.

    It returns when the rule is switched off, which only the code that builds a server can do, to measure whether
    a suite would notice that the rule is gone. So the statements after a refusal must make sense as if it allowed.
    """

    off: frozenset[str] = frozenset()

    def __call__(self, rule: Rule, reason: str, hint: str | None = None) -> None:
        """Raise `Denied` unless the rule is switched off.

        Raises:
            Denied: The rule says no.
        """
        if rule.name not in self.off:
            raise Denied(rule, reason, rule.hint if hint is None else hint)


TOOL_UNKNOWN = Rule(
    "tool.unknown", State.DENIED, "The server has no tool of this name.", "Use one of the listed tools."
)
ARGS_INVALID = Rule(
    "args.invalid",
    State.DENIED,
    "The arguments do not fit the tool's schema: unknown key, wrong type, value out of range.",
    "Send exactly the arguments that the tool's schema names.",
)
GUARD_ERROR = Rule(
    "guard.error", State.DENIED, "The guard itself failed; what cannot be judged is not run.", "Try a simpler call."
)
BUDGET_SPENT = Rule("budget.spent", State.DENIED, "The run's limit of calls is used up.", "Finish with what you know.")
TOOL_ERROR = Rule("tool.error", State.FAILED, "The tool raised an unexpected error after it was allowed.")
TIME_LIMIT = Rule("time.limit", State.FAILED, "The tool did not finish within its time.", "Ask for less.")

GATE_RULES = (TOOL_UNKNOWN, ARGS_INVALID, GUARD_ERROR, BUDGET_SPENT, TOOL_ERROR, TIME_LIMIT)
"""The rules that every server has."""
