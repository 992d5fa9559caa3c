"""How a subcommand ends when it cannot do what was asked."""

import os


class CommandError(Exception):
    """A user's mistake: one sentence that says what is wrong and what to write instead."""

    def __init__(self, sentence: str, status: int = 2) -> None:
        super().__init__(sentence)
        self.status = status
        """Exit status: 2 for a wrong command line, 1 for something that was found wrong on the way."""


def reason(error: OSError) -> str:
    """Return why the system said no, in its own words without the path."""
    return os.strerror(error.errno).lower() if error.errno else str(error)
