"""Fuzzing led by the lines that run: `atheris_targets.py TARGET [SECONDS]`. Needs atheris (`--group fuzz`)."""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import atheris

with atheris.instrument_imports(include=["mcp_ops.agent", "mcp_ops.ops.guards", "mcp_ops.evaluation.line"]):
    from calls import make_lab

    from mcp_ops.agent import Malformed, parse_turn
    from mcp_ops.evaluation.line.parse import BadLine, parse_line
    from mcp_ops.gate import Denied, Refuse
    from mcp_ops.ops.guards.shell import guard_command
    from mcp_ops.ops.workspace import Workspace

DATA = Path(__file__).parent.parent / "data"
SCENARIOS = Path(__file__).parent.parent.parent / "scenarios"
SECONDS = 60


def commands(folder: Path) -> Callable[[str], None]:
    """A command is refused by a rule, or its arguments are text that a program can be given."""
    workspace = Workspace(make_lab(folder))

    def one(command: str) -> None:
        try:
            plan = guard_command(command, workspace, Refuse())
        except Denied:
            return
        for argument in plan.arguments:
            assert "\0" not in argument
            argument.encode()

    return one


def replies(_: Path) -> Callable[[str], None]:
    """A reply is malformed, or it answers or calls."""

    def one(reply: str) -> None:
        turn = parse_turn(reply)
        assert isinstance(turn, Malformed) or (turn.finish is None) != (not turn.calls)

    return one


def lines(_: Path) -> Callable[[str], None]:
    """A line is a scenario, or says in one line where it is none."""

    def one(line: str) -> None:
        parsed = parse_line(line, None, 1)
        if isinstance(parsed, BadLine):
            assert 1 <= parsed.column <= len(line) + 1
            assert "\n" not in parsed.message

    return one


TARGETS = {"commands": commands, "replies": replies, "lines": lines}


def write_seeds(folder: Path, target: str) -> None:
    """Write what the fuzzer begins with."""
    if target == "commands":
        seeds = (DATA / "shell_commands.txt").read_text("utf-8").splitlines()[::7]
    else:
        seeds = (SCENARIOS / "guardrail.scenarios.jsonl").read_text("utf-8").splitlines()
        seeds += ['{"thought": "t", "action": {"tool": "a", "args": {}}}', '```json\n{"finish": "a"}\n```']
    folder.mkdir()
    for number, seed in enumerate(seeds):
        (folder / str(number)).write_text(seed, "utf-8")


def fuzz(target: str, seconds: int, folder: Path) -> None:
    """Run one target. libFuzzer ends the process, and not with 0 when something was found."""
    write_seeds(folder / "seeds", target)
    one = TARGETS[target](folder / "lab")
    options = [
        f"-max_total_time={seconds}",
        "-max_len=4096",
        "-timeout=10",
        f"-artifact_prefix={tempfile.gettempdir()}/",
    ]
    atheris.Setup(
        [sys.argv[0], *options, str(folder / "seeds")], lambda data: one(data.decode("utf-8", "surrogateescape"))
    )
    atheris.Fuzz()


def main(target: str, seconds: int = SECONDS, folder: str = "") -> int:
    """Run a target in a process of its own, whose folder is removed afterwards."""
    if folder:
        fuzz(target, seconds, Path(folder))
    with tempfile.TemporaryDirectory() as made:
        return subprocess.run([sys.executable, __file__, target, str(seconds), made]).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:3]), *sys.argv[3:4]))
