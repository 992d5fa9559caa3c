"""Where programs are looked for."""

import os
from pathlib import Path

TRUSTED_FOLDERS = (Path("/usr/bin"), Path("/bin"))
"""The PATH of the server and the workspace have no say."""


def trusted_program(name: str) -> Path | None:
    """Return the absolute path of a program in a trusted folder."""
    for folder in TRUSTED_FOLDERS:
        if os.access(folder / name, os.X_OK):
            return folder / name
    return None
