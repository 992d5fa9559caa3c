"""Putting one wall of this machine, or none, around the children of a test."""

import shutil
from pathlib import Path

import pytest

from mcp_ops.ops.tools import child
from mcp_ops.ops.tools.child import Command, Ended, Limits, bare_environment, run_child
from mcp_ops.ops.wall import NoWall, Wall, second_wall
from mcp_ops.ops.wall.bubblewrap import find_bubblewrap
from mcp_ops.ops.wall.landlock import find_landlock
from mcp_ops.ops.wall.trial import holds

FINDERS = {"landlock": find_landlock, "bubblewrap": find_bubblewrap}
SCRIPT = "attempt.pl"
NONE = NoWall("switched off by a test")
FREE = Limits(memory_bytes=None, written_bytes=None, processes=None)
"""No limit does the wall's work."""

needs_wall = pytest.mark.skipif(not second_wall().stands, reason=f"no wall here: {second_wall().name}")


def wall_named(name: str) -> Wall:
    """Return a wall of this machine, or skip the test with the reason why there is none."""
    found = FINDERS[name]()
    if isinstance(found, str):
        pytest.skip(found)
    if not holds(found):
        pytest.skip(f"{found.name} does not hold on this machine")
    return found


@pytest.fixture(params=sorted(FINDERS))
def wall(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Wall:
    """Each wall of this machine in turn, around every child without leave for the network."""
    found = wall_named(request.param)
    use(found, monkeypatch)
    return found


def use(wall: Wall, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put this wall around children from now on."""
    monkeypatch.setattr(child, "second_wall", lambda: wall)


async def perl(ws: Path, script: str, *arguments: object) -> Ended:
    """Run a Perl script that needs no module, in a workspace that it may read."""
    program = shutil.which("perl", path="/usr/bin:/bin")
    if program is None:
        pytest.skip("the attempts are written in Perl, which is not installed")
    # Not by -e, for which Perl opens /dev/null.
    if not (ws / SCRIPT).exists() or (ws / SCRIPT).read_text() != script:
        (ws / SCRIPT).write_text(script)
    given = (SCRIPT, *map(str, arguments))
    return await run_child(Command(Path(program), given, ws, bare_environment(ws), reads=ws, limits=FREE))
