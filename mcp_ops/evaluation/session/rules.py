"""Rules in whose name the harness itself answers, or reads a foreign server's answer."""

from mcp_ops.gate import Rule, State

SERVER_ERROR = Rule(
    "server.error",
    State.FAILED,
    "A server that is not ours sent an error, or a reply that the protocol or the tool's own schema does not allow.",
)
SERVER_DIED = Rule("server.died", State.FAILED, "The server ended, or closed the connection, before it answered.")
SERVER_TOO_LARGE = Rule(
    "server.too_large",
    State.FAILED,
    "The server sent a result of more than 1 MB. It is dropped while it is read, and the session goes on.",
    "Ask for less.",
)
SERVER_ASKED = Rule(
    "server.asked",
    State.FAILED,
    "In place of a result the server asked its client for sampling, roots or elicitation, which was not granted.",
)
CLAIMED = Rule(
    "claimed",
    State.DENIED,
    "A server that is not ours sent an error whose text fits its configured pattern for denials: its own claim.",
    stands_for="A text that says denied and proves nothing.",
    limits="Anything: it is the foreign server's word, read by a pattern.",
)

BUDGET_SPENT = Rule(
    "budget.spent",
    State.DENIED,
    "The run's limit of calls is used up.",
    "Finish with what you know.",
    stands_for="A loop that a model does not leave.",
    limits="Harm within the limit; it counts calls and nothing else.",
)
CONFIRM_DECLINED = Rule(
    "confirm.declined",
    State.DECLINED,
    "A person was asked whether a call that changes something may be sent, and said no; so does nobody's being there.",
    "Do not ask for it again; finish and say that it was not done.",
)
WRITES_SPENT = Rule(
    "writes.spent",
    State.DENIED,
    "The run's limit of confirmed calls that change something is used up.",
    "Finish and say what was not done.",
    stands_for="A person who is asked until yes has become a habit, and a confirmation by option that repeats a write.",
    limits="Harm within the limit; it counts confirmed calls, whatever became of them.",
)

RULES = (
    BUDGET_SPENT,
    WRITES_SPENT,
    CONFIRM_DECLINED,
    SERVER_ERROR,
    SERVER_DIED,
    SERVER_TOO_LARGE,
    SERVER_ASKED,
    CLAIMED,
)
"""The rules of the harness."""
