"""States and rules: the words in which a tool call is answered."""

from dataclasses import dataclass, field
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
    stands_for: str = ""
    """The known weakness that it answers, for the documentation: a sentence, with links where it was reported."""
    limits: str = ""
    """What it does not stop."""


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
    rehearse: bool = False
    """Whether a call that only a switched-off rule would have refused is answered as executed instead of being run.
    What does run is then what runs with every rule on: no attack takes place, whatever it is."""
    let_through: list[Rule] = field(default_factory=list, compare=False, repr=False)
    """Switched-off rules that would have refused the call that is being judged."""

    def __call__(self, rule: Rule, reason: str, hint: str | None = None) -> None:
        """Raise `Denied` unless the rule is switched off.

        Raises:
            Denied: The rule says no.
        """
        if rule.name not in self.off:
            raise Denied(rule, reason, rule.hint if hint is None else hint)
        self.let_through.append(rule)

    @property
    def leaving_out(self) -> "Refuse":
        """How rules say no to a part of what was asked for, which is then left out. A rehearsal leaves it out too."""
        return Refuse() if self.rehearse else self


TOOL_UNKNOWN = Rule(
    "tool.unknown",
    State.DENIED,
    "The server has no tool of this name.",
    "Use one of the listed tools.",
    stands_for="A model that invents a tool, or calls one that another server had.",
    limits="A tool of this server that should not be there: what is listed can be called.",
)
ARGS_INVALID = Rule(
    "args.invalid",
    State.DENIED,
    "The arguments do not fit the tool's schema: unknown key, wrong type, value out of range.",
    "Send exactly the arguments that the tool's schema names.",
    stands_for=(
        'Lax argument handling: the MCP SDK\'s own server drops unknown keys and turns "7" and true into '
        "numbers, so that what was approved is not what runs."
    ),
    limits="A value of the right type and the wrong meaning; that is for the rule of the slot.",
)
GUARD_ERROR = Rule(
    "guard.error",
    State.DENIED,
    "The guard itself failed; what cannot be judged is not run.",
    "Try a simpler call.",
    stands_for="A check that fails open: an exception in a guard that lets the call through.",
    limits="A guard that is wrong without raising.",
)
TOOL_ERROR = Rule("tool.error", State.FAILED, "The tool raised an unexpected error after it was allowed.")
TIME_LIMIT = Rule("time.limit", State.FAILED, "The tool did not finish within its time.", "Ask for less.")

RESOURCE_UNKNOWN = Rule(
    "resource.unknown", State.FAILED, "The server has no resource at this address.", "Read a listed resource."
)
PROMPT_UNKNOWN = Rule("prompt.unknown", State.FAILED, "The server has no prompt of this name.", "Take a listed prompt.")

GATE_RULES = (TOOL_UNKNOWN, ARGS_INVALID, GUARD_ERROR, TOOL_ERROR, TIME_LIMIT)
"""The rules that every server has."""
RESOURCE_RULES = (RESOURCE_UNKNOWN, PROMPT_UNKNOWN)
"""The further rules of a server with resources and prompts."""


def can_be_switched_off(rule: Rule) -> bool:
    """Return whether a rule can be left out to see who notices.

    It must be a refusal: without `failed` or `unavailable` there is nothing that a call could do instead. And it is
    not `guard.error`, the net below all guards, which decides nothing and catches what stumbles over a missing rule.
    """
    return rule.state is State.DENIED and rule is not GUARD_ERROR
