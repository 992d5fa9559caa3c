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

RULES = (BUDGET_SPENT, SERVER_ERROR, SERVER_DIED, SERVER_TOO_LARGE, SERVER_ASKED, CLAIMED)
"""The rules of the harness."""
