"""Names that another process exchanges all the time lead nowhere else: 50 000 attempts by `make fuzz`, fewer in CI."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from budget import thorough
from calls import Reply, ask
from racing import exchanged_without_end
from shelllab import needs_gnu
from walls import needs_wall

from mcp_ops.gate import State
from mcp_ops.ops.context import OpsContext
from mcp_ops.ops.tools.read_file import READ_FILE
from mcp_ops.ops.tools.run_shell import RUN_SHELL
from mcp_ops.ops.tools.search_files import SEARCH_FILES
from mcp_ops.ops.workspace import Workspace

pytestmark = [needs_gnu, pytest.mark.covers("A7")]

INSIDE, OUTSIDE = "INSIDE-MARK", "OUTSIDE-MARK"
ATTEMPTS = {"read_file": (2000, 30_000), "search_files": (1000, 16_000), "run_shell": (150, 4_000)}
"""How often each tool is called: in CI, and by `make fuzz`."""
LEAST = 10
"""How often each side of the race must be met: it goes on until then, at most to a hundred times the attempts."""

Call = Callable[[OpsContext], Awaitable[Reply]]


def read(context: OpsContext) -> Awaitable[Reply]:
    return ask(READ_FILE, context, {"path": "d/sub/f"})


def search(context: OpsContext) -> Awaitable[Reply]:
    return ask(SEARCH_FILES, context, {"pattern": "MARK", "glob": "d/**"})


def cat(context: OpsContext) -> Awaitable[Reply]:
    return ask(RUN_SHELL, context, {"command": "cat d/sub/f"})


def link_out(ws: Path) -> tuple[Path, Path]:
    """A folder, and a link that leads outside to a folder of the same shape."""
    (ws / "l").symlink_to("../outside")
    return ws / "d", ws / "l"


def file_link_out(ws: Path) -> tuple[Path, Path]:
    """A file, and a link that leads outside to a file."""
    (ws / "d/sub/other").symlink_to("../../../outside/sub/f")
    return ws / "d/sub/f", ws / "d/sub/other"


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[Path]:
    for folder, content in (("ws/d/sub", INSIDE), ("outside/sub", OUTSIDE)):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "f").write_text(content)
    yield tmp_path / "ws"
    assert (tmp_path / "outside/sub/f").read_text() == OUTSIDE


async def race(call: Call, context: OpsContext, attempts: int) -> Counter[str]:
    """Call a tool over and over; return how often it said what."""
    seen: Counter[str] = Counter()
    for attempt in range(100 * attempts):
        reply = await call(context)
        said = "denied" if reply.reading.state is State.DENIED else "found nothing"
        seen["outside" if OUTSIDE in reply.text else "inside" if INSIDE in reply.text else said] += 1
        if attempt + 1 >= attempts and seen["inside"] >= LEAST and seen.total() - seen["inside"] >= LEAST:
            break
    return seen


@pytest.mark.parametrize("names", [link_out, file_link_out])
@pytest.mark.parametrize(
    ("tool", "call"),
    [("read_file", read), ("search_files", search), pytest.param("run_shell", cat, marks=needs_wall)],
)
def test_not_one_byte_from_outside_is_shown(
    ws: Path, tool: str, call: Call, names: Callable[[Path], tuple[Path, Path]]
) -> None:
    context = OpsContext(Workspace(ws))
    with exchanged_without_end(*names(ws)):
        seen = asyncio.run(race(call, context, ATTEMPTS[tool][thorough()] // 2))
    print(f"{tool}: {seen.total()} attempts, {dict(seen)}")
    assert seen["outside"] == 0
    assert seen["inside"] >= LEAST, "the tool never met the name inside"
    assert seen["denied"] + seen["found nothing"] >= LEAST, "the tool never met the link"


def test_a_reader_that_looks_first_and_opens_then_is_found_out(ws: Path) -> None:
    async def naive(context: OpsContext) -> Reply:
        reply = await read(context)
        path = context.workspace.root / "d/sub/f"
        try:
            text = path.read_text() if path.resolve().is_relative_to(context.workspace.root) else "refused"
        except OSError:
            text = "refused"
        return Reply(text, {}, reply.reading)

    with exchanged_without_end(*link_out(ws)):
        for _ in range(50):
            if asyncio.run(race(naive, OpsContext(Workspace(ws)), 500))["outside"]:
                return
    pytest.fail("the race was never lost, so the test would not notice a check apart from its use")
