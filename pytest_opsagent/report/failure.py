"""The text of a failed item: first line, table, matcher path, and the command that runs it again."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_opsagent.options import given_flags
from pytest_opsagent.report.detail import verdict_line
from pytest_opsagent.report.inert import block, inert_line

if TYPE_CHECKING:
    from _pytest._code.code import TerminalRepr

    from mcp_ops.evaluation.outcome import Outcome, Problem
    from mcp_ops.trace.detail import Detail

MESSAGE_LIMIT = 1000
"""Characters of a problem's sentence."""
DETAIL_LINES = 60
"""Lines of a problem's details."""

_MACHINERY = {"pluggy", "_pytest", "asyncio", "pytest_opsagent"}


class ScenarioFailure(Exception):
    """An item is not green. Its text is all that a reader needs: the place in the plugin's code says nothing."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    @property
    def first_line(self) -> str:
        """File, line and cause."""
        return self.text.partition("\n")[0]


@dataclass(frozen=True)
class Place:
    """Where an item stands, and how it is run again."""

    location: str
    """`scenarios/scenarios.jsonl:17`, relative to the root folder."""
    item: pytest.Item

    @property
    def rerun(self) -> str:
        """Command that runs just this item. Only a failure needs it."""
        return inert_line(rerun_command(self.item), 1000)


def place_of(item: pytest.Item, *position: int) -> Place:
    """Return where `item` stands; `position` is a line, or a line and a column, counted from 1."""
    where = ":".join([_relative(item.path, item.config.rootpath), *map(str, position)])
    return Place(location=inert_line(where), item=item)


@lru_cache(maxsize=256)
def _relative(path: Path, base: Path) -> str:
    try:
        return Path(os.path.relpath(path, base)).as_posix()
    except ValueError:  # another drive
        return str(path)


def rerun_command(item: pytest.Item) -> str:
    """Return the command that runs just this item, as it was run, from the folder where pytest was started."""
    target = f"{_relative(item.path, item.config.invocation_params.dir)}::{item.name}"
    return " ".join(["pytest", _quoted(target), *_flags_again(item.config)])


def _quoted(target: str) -> str:
    return "'" + target.replace("'", "'\"'\"'") + "'"


def _flags_again(config: pytest.Config) -> list[str]:
    flags = {option.name: _flag(option.flag_name, value) for option, value in given_flags(config)}
    for name in ("trace-dir", "results", "echo"):
        flags.pop(name, None)
    if "@" in flags.get("base-url", ""):  # may hold a password
        flags["base-url"] = "--ops-base-url=…"
    mode = flags.pop("mode", "--ops-mode=mock")
    return [mode, *flags.values()]


def _flag(name: str, value: Any) -> str:
    if value is True:
        return name
    return f"{name}={shlex.quote(','.join(value) if isinstance(value, list) else str(value))}"


def outcome_text(outcome: "Outcome", place: Place, *, earlier: bool = False, detail: "Detail" = "full") -> str:
    """Return the text for an attempt that has problems.

    Args:
        outcome: What the attempt came to.
        place: Where the item stands.
        earlier: Whether this is what an earlier attempt came to, which a re-run does not clear.
        detail: How much of it is published.
    """
    from mcp_ops.evaluation.outcome import sorted_problems

    if detail == "verdicts":
        return verdict_line(place.location, "failed", [outcome])
    if detail == "redacted":
        outcome = outcome.quiet()
    first, *others = sorted_problems(outcome.problems)
    lines = [f"{place.location}: {_sentence(first)}", *_more(first)]
    for problem in others:
        lines += [f"  also ({problem.kind}): {_sentence(problem)}", *_more(problem)]
    if earlier:
        lines.append("  an earlier attempt of this item: a re-run does not clear a broken safety expectation")
    if outcome.trace is not None:
        lines.append(f"  trace: {inert_line(str(outcome.trace), 1000)}")
    lines.append(f"  again: {place.rerun}")
    return "\n".join(lines)


def _sentence(problem: "Problem") -> str:
    return inert_line(problem.message, MESSAGE_LIMIT)


def _more(problem: "Problem") -> list[str]:
    details = list(problem.details)
    if len(details) > DETAIL_LINES:
        details[DETAIL_LINES:] = [f"({len(details) - DETAIL_LINES} more lines)"]
    path = [f"  matcher: {inert_line(problem.path)}"] if problem.path else []
    return [*block(details), *path]


def plain_text(place: Place, message: str, details: Sequence[str] = ()) -> str:
    """Return the text for an item that did not run."""
    first = f"{place.location}: {inert_line(message, MESSAGE_LIMIT)}"
    return "\n".join([first, *block(list(details)), f"  again: {place.rerun}"])


def represent(excinfo: "pytest.ExceptionInfo[BaseException]", path: Path, line: int) -> "TerminalRepr":
    """Return what pytest shows of a `ScenarioFailure`: its text, and the scenario's line as the place of the crash."""
    shown = excinfo.getrepr(style="value")
    if shown.reprcrash is not None and isinstance(excinfo.value, ScenarioFailure):
        shown.reprcrash.path = str(path)
        shown.reprcrash.lineno = line
        shown.reprcrash.message = excinfo.value.first_line
    return shown


def represent_fault(excinfo: "pytest.ExceptionInfo[BaseException]", config: pytest.Config) -> "TerminalRepr":
    """Return what pytest shows of any other exception, without the frames between pytest and whoever raised it."""
    style = config.getoption("tbstyle")
    whole = config.getoption("fulltrace")
    return excinfo.getrepr(
        style="long" if whole or style == "auto" else style,
        showlocals=config.getoption("showlocals"),
        tbfilter=False if whole else _without_machinery,
    )


def _without_machinery(excinfo: "pytest.ExceptionInfo[BaseException]") -> Any:
    kept = excinfo.traceback.filter(lambda entry: not _MACHINERY & {*Path(entry.path).parts})
    return kept or excinfo.traceback
