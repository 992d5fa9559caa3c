"""What formats and dates may not hold: floods, and time zones that are files."""

import re

from mcp_ops.gate import Refuse
from mcp_ops.ops.guards.shell.rules import SHELL_TIMEZONE, SHELL_WIDTH
from mcp_ops.text import one_line

_DIRECTIVE = re.compile(r"%(?:%|[^%A-Za-z]*)")
_WIDE = re.compile(r"[0-9]{5,}")
_ZONE_RULE = re.compile(r"TZ\s*=", re.IGNORECASE)
_PLAIN_ZONE = re.compile(r'\s*TZ="[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z][A-Za-z0-9_+-]*){0,2}"(?P<rest>.*)', re.DOTALL)


def check_format(text: str, refuse: Refuse) -> None:
    """Refuse a format that pads to a width of five digits or more.

    Raises:
        Denied: `shell.width`.
    """
    for directive in _DIRECTIVE.finditer(text):
        if _WIDE.search(directive[0]):
            refuse(SHELL_WIDTH, f"the format has a field {one_line(directive[0], 30)} of five digits or more")


def check_date(text: str, refuse: Refuse) -> None:
    """Refuse a date whose time zone is anything but a plain name of the zone database.

    Raises:
        Denied: `shell.timezone`.
    """
    plain = _PLAIN_ZONE.fullmatch(text)
    if _ZONE_RULE.search(plain["rest"] if plain else text):
        refuse(SHELL_TIMEZONE, f"the time zone in {one_line(text, 60)!r} is not a plain zone name")
