"""`mcp-ops agent`."""

import argparse
import os

from mcp_ops.cli.agent.handover import hand_over


def run(args: argparse.Namespace) -> int:
    """Let a model work on one task.

    0: there is an answer, also when a person declined a write: they know. 1: there is none. 3: there is an answer, but
    a write was declined because nobody could be asked: whoever reads the status of a job must not take it for done.
    """
    hand_over(args.words, os.environ)
    # From here on this process has no variable of GitHub's.
    from mcp_ops.cli.agent.start import start

    return start(args, os.environ)
