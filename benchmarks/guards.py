"""What a guard's decision costs, and what the second wall adds to a call.

The commands are 200 characters long and of several kinds: options and a pattern, an expression of find, an attack that
is found out at its end, names of files, a glob, and a recursion, for which the guard looks through the folders. A call
is `cat FILE` through `run_shell`, from the arguments to the reply, with the machine's second wall around the child and
without, in turns.

    python benchmarks/guards.py [--decisions 400] [--calls 100]

Decisions are measured in CPU time of the thread, so that whatever else the machine does does not count; calls, which
wait for a child, by the clock. Exit status 1 when a decision costs more than it may over all commands: 200
microseconds at the median, and a millisecond at the 99th percentile.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

from mcp_ops.gate import Denied, Refuse, State, call, read_reply
from mcp_ops.ops.context import OpsContext
from mcp_ops.ops.guards.shell import guard_command
from mcp_ops.ops.tools import child
from mcp_ops.ops.tools.run_shell import RUN_SHELL
from mcp_ops.ops.wall import NoWall, Wall, second_wall
from mcp_ops.ops.workspace import Workspace

PATTERNS = "-e 'timed? ?out|connection (refused|reset)' -e 'upstream (connect|closed)|no live upstreams'"
STATUS = "-e '(4|5)[0-9]{2} (GET|POST|PUT)'"
COMMANDS = {
    "options, 3 files": f"grep -niE -m 20 -C 2 --color=never {PATTERNS} {STATUS} -- logs/app.log notes.md data.csv",
    "an expression": r"find . -maxdepth 4 \( -name '*.log' -o -name '*.md' -o -iname '*.txt' -o -iname '*.csv' \) "
    r"-type f -size +1k -size -900k -mtime -7 ! -path './tmp/*' ! -path './cache/*' -printf '%p %s %TF %TT %u\n'",
    "an attack": f"grep -niE -m 20 -C 2 --color=never {PATTERNS} {STATUS} -- notes.md logs/../../outside.txt",
    "8 files": f"tail -n 20 --quiet -- {' '.join(f'runbooks/restart-{n}.md' for n in range(8))}",
    "a glob": f"grep -niE -m 20 -C 2 --color=never --no-messages {PATTERNS} {STATUS} -e 'panic:' -- logs/*.log",
    "a recursion": f"grep -rniE --include='*.log' --exclude='old*' -m 20 -C 2 {PATTERNS} {STATUS} -- logs runbooks",
}
MEDIAN_LIMIT, P99_LIMIT = 200, 1000
"""In microseconds."""
READ = {"command": "cat notes.md"}
WARM_UP = 20


def lay_out(folder: Path) -> Workspace:
    """Write a small workspace, with a secret file that a recursion has to leave out."""
    restarts = [f"runbooks/restart-{number}.md" for number in range(8)]
    for name in ("logs/app.log", "logs/ingress.log", "runbooks/dns.md", "notes.md", "data.csv", *restarts):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("connection refused\n" * 20, encoding="utf-8")
    (folder / "logs/.env").write_text("TOKEN=not-a-real-one\n", encoding="utf-8")
    return Workspace(folder)


def decisions(command: str, workspace: Workspace, count: int) -> list[float]:
    """Return how long each decision took, in microseconds of CPU time."""
    refuse, taken = Refuse(), []
    for _ in range(WARM_UP + count):
        began = time.thread_time_ns()
        with suppress(Denied):
            guard_command(command, workspace, refuse)
        taken.append((time.thread_time_ns() - began) / 1000)
    return taken[WARM_UP:]


def spread(times: Sequence[float]) -> tuple[float, float]:
    """Return the median and the 99th percentile."""
    return statistics.median(times), statistics.quantiles(times, n=100)[98]


@contextmanager
def behind(wall: Wall) -> Iterator[None]:
    """Put this wall around children."""
    with patch.object(child, "second_wall", lambda: wall):
        yield


async def calls(workspace: Workspace, count: int, walls: Sequence[Wall]) -> list[list[float]]:
    """Return for each wall how long each call took, in seconds."""
    context, refuse = OpsContext(workspace), Refuse()
    taken: list[list[float]] = [[] for _ in walls]
    for _ in range(WARM_UP + count):
        for wall, times in zip(walls, taken, strict=True):
            with behind(wall):
                began = time.perf_counter()
                reply = await call({RUN_SHELL.name: RUN_SHELL}, RUN_SHELL.name, READ, context, refuse=refuse)
                times.append(time.perf_counter() - began)
            reading = read_reply(reply)
            assert reading is not None
            assert reading.state is State.EXECUTED, reading.reason
    return [times[WARM_UP:] for times in taken]


def main() -> int:
    """Measure, print, and compare with the limits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decisions", type=int, default=400, help="of each command")
    parser.add_argument("--calls", type=int, default=100, help="with the wall, and as many without")
    asked = parser.parse_args()
    wall, all_decisions = second_wall(), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        workspace = lay_out(Path(folder))
        for kind, command in COMMANDS.items():
            taken = decisions(command, workspace, asked.decisions)
            print(f"  {kind:<24} p50 {spread(taken)[0]:6.0f} us   p99 {spread(taken)[1]:6.0f} us")
            all_decisions += taken
        without, within = asyncio.run(calls(workspace, asked.calls, (NoWall("not asked for"), wall)))
    median, p99 = spread(all_decisions)
    print(
        f"guard decision             p50 {median:6.0f} us   p99 {p99:6.0f} us   limits {MEDIAN_LIMIT} and {P99_LIMIT}"
    )
    bare, walled = statistics.median(without), statistics.median(within)
    print(f"call without second wall   p50 {bare * 1e3:6.2f} ms")
    print(f"call with second wall      p50 {walled * 1e3:6.2f} ms   {wall.name}")
    cost = statistics.median(one - other for one, other in zip(within, without, strict=True))
    print(f"cost of the second wall        {cost * 1e3:6.2f} ms a call, the median of {len(within)} pairs")
    return 0 if median <= MEDIAN_LIMIT and p99 <= P99_LIMIT else 1


if __name__ == "__main__":
    raise SystemExit(main())
