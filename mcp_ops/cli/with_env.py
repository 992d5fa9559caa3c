"""Starts a program with variables that its parent hands down in a file, so that the parent has them nowhere else.

Run as a file, by `python -I -S with_env.py DESCRIPTOR PROGRAM ARGUMENT…`: it imports nothing of the package. The
program gets `PATH` and the variables, and nothing else.
"""

import json
import os
import sys

NOT_FOUND = 127


def read_variables(descriptor: int) -> dict[str, str]:
    """Return what a file of variables holds. Its position does not move, as others may read it too."""
    data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    return {str(name): str(value) for name, value in json.loads(data).items()}


def main(words: list[str]) -> int:
    """Become the program."""
    descriptor, command = int(words[0]), words[1:]
    environment = {"PATH": os.environ.get("PATH", os.defpath), **read_variables(descriptor)}
    os.close(descriptor)
    try:
        os.execvpe(command[0], command, environment)  # noqa: S606 - this is what it is for
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {(error.strerror or '').lower()}\n")
    return NOT_FOUND


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
