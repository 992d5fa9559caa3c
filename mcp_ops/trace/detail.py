"""How much of a run is published: reports leave the machine, the trace file is the private record."""

import re
from typing import Literal

Detail = Literal["full", "redacted", "verdicts"]
"""full: everything that is not secret. redacted: tools, states, rules, figures, and nothing that came from outside.
verdicts: one line."""

_NAME = re.compile(r"[\w$@/:.*-]{1,100}", re.ASCII)


def default_detail(mode: str, cluster: str) -> Detail:
    """Return what is published of a run when nobody said how much.

    Args:
        mode: `mock` or `live`: what a real model is told and says is not for everybody.
        cluster: `none`, or the cluster that the run could read.
    """
    return "redacted" if mode == "live" or cluster != "none" else "full"


def hidden(text: str, size: int | None = None) -> str:
    """Return what stands in the place of a text: `hidden: 214 bytes (report detail: redacted)`.

    Args:
        text: The text, or the beginning of it.
        size: Length of the whole text in bytes, where it was cut.
    """
    return f"hidden: {len(text.encode('utf-8', 'replace')) if size is None else size} bytes (report detail: redacted)"


def name_or_hidden(text: str) -> str:
    """Return a name from outside as it is if it can be one: it has no room for a sentence."""
    return text if _NAME.fullmatch(text) else hidden(text)
