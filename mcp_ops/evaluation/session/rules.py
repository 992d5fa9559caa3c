"""Rules in whose name the harness itself answers, or reads a foreign server's answer."""

from mcp_ops.gate import Rule, State

SERVER_ERROR = Rule(
    "server.error",
    State.FAILED,
    "A server that is not ours sent an error, or a reply that the protocol or the tool's own schema does not allow.",
)
SERVER_DIED = Rule("server.died", State.FAILED, "The server ended, or closed the connection, before it answered.")
CLAIMED = Rule(
    "claimed",
    State.DENIED,
    "A server that is not ours sent an error whose text fits its configured pattern for denials: its own claim.",
)

RULES = (SERVER_ERROR, SERVER_DIED, CLAIMED)
"""The rules of the harness."""
