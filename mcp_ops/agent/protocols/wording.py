"""Words and limits that the protocols share."""

from mcp_ops.text import cap, clean

REPLY_BUDGET = 4_096
"""Most bytes of one earlier reply of the model that it is shown again."""
DESCRIPTION_BUDGET = 2_048
"""Most bytes of one tool's description, and of its schema where that is text."""

ROLE = "You are an operations agent. You work on the user's task with these tools and with nothing else."


def earlier_reply(text: str) -> str:
    """Return what a model said before, as it is shown again."""
    return cap(clean(text), REPLY_BUDGET).text or "(an empty reply)"
