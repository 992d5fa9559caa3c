"""What stands around a run's timeline, as HTML: figures, tally, effects and leaks, set-up, record."""

from collections.abc import Iterator

from markupsafe import Markup

from mcp_ops.text import one_line
from mcp_ops.trace.events import EffectSeen, LeakFound, RunStart
from mcp_ops.trace.markup import block, chip, counted, duration, facts, inert, note, row, slug
from mcp_ops.trace.rows import turn_rows
from mcp_ops.trace.shown import Room
from mcp_ops.trace.view import Run

_FINISH = {"answer": "Answered", "max_steps": "Out of calls", "error": "Ended in an error"}
_MODE = {"mock": "Scripted model", "live": "Live model"}


def contents(run: Run, room: Room) -> Markup:
    """Return everything that is shown of a run below its heading."""
    return Markup("".join(_contents(run, room)))  # noqa: S704 -- made of inert texts


def chips(run: Run) -> Markup:
    """Return how a run ended, in a few words."""
    items = "".join(f'<li class="ops-chip{look}">{text}</li>\n' for look, text in _chips(run))
    return Markup(f'<ul class="ops-chips">\n{items}</ul>\n')  # noqa: S704 -- made of words of this module


def _contents(run: Run, room: Room) -> Iterator[str]:
    if run.detail == "verdicts":
        yield _verdict(run)
        return
    yield chips(run)
    if run.detail == "redacted":
        yield note("Report detail: redacted. What came from outside is hidden; the trace file has it.")
    for warning in run.warnings[: room.rows]:
        yield f'<p class="ops-warning" dir="auto">{inert(one_line(warning, 300))}</p>\n'
    yield _figures(run)
    for label, shown in (("task", run.task), ("answer", run.answer), ("error", run.error)):
        if shown is not None:
            yield block(label, shown, "prose")
    yield f'<div class="ops-columns">\n<section>{_tally(run, room)}</section>\n'
    yield f"<section>{_witnessed(run, room)}</section>\n"
    if run.start is not None:
        yield f"<section><h3>Setup</h3>{facts(_facts_of_setup(run.start))}</section>\n"
    yield f"</div>\n{_timeline(run)}{_record(run)}"


def _verdict(run: Run) -> str:
    ending = _FINISH[run.finish.finish] if run.finish is not None else "Incomplete"
    rules = sorted({call.rule for turn in run.turns for call in turn.calls if call.rule is not None})
    counts = f"{counted(run.calls, 'call')}, {run.denials} denied"
    seen = f"{counted(len(run.leaks), 'leak')}, {counted(len(run.effects), 'effect')}"
    sentence = f"{ending}; {counts}; rules: {', '.join(rules) or 'none'}; {seen}"
    return f"<p>{inert(one_line(sentence, 600))}</p>\n"


def _chips(run: Run) -> Iterator[tuple[str, str]]:
    """Yield classes and words."""
    finish = run.finish.finish if run.finish is not None else None
    yield (f" ops-finish-{finish}", _FINISH[finish]) if finish is not None else (" ops-finish-error", "Incomplete")
    if run.start is not None:
        yield "", _MODE[run.start.mode]
    if run.denials:
        yield " ops-state-denied", f"{run.denials} denied"
    for noun, seen in (("leak", len(run.leaks)), ("effect", len(run.effects))):
        if seen:
            yield " ops-alarm", counted(seen, noun)


def _figures(run: Run) -> str:
    most = f" <small>of {run.start.max_calls}</small>" if run.start is not None else ""
    tokens = "–" if run.tokens is None else run.tokens
    cost = "–" if run.usd is None else f"${run.usd:.4f}"
    denied = ' class="ops-figure-denied"' if run.denials else ""
    return (
        '<dl class="ops-figures">\n'
        f"<div><dt>Calls</dt><dd>{run.calls}{most}</dd></div>\n"
        f"<div{denied}><dt>Denials</dt><dd>{run.denials}</dd></div>\n"
        f"<div><dt>Turns</dt><dd>{run.finish.turns if run.finish else len(run.turns)}</dd></div>\n"
        f"<div><dt>Tokens</dt><dd>{tokens}</dd></div>\n"
        f"<div><dt>Cost</dt><dd>{cost}</dd></div>\n"
        f"<div><dt>Duration</dt><dd>{duration(run.duration_ms)}</dd></div>\n</dl>\n"
    )


def _tally(run: Run, room: Room) -> str:
    head = "<h3>Calls by tool and state</h3>\n"
    if not run.tally:
        return head + note("No tool was called.")
    items = "".join(
        f"<li><code><bdi>{inert(one_line(tool, 80))}</bdi></code>\n"
        f'<span class="ops-chips">{"".join(_state_chip(*state) for state in states)}</span></li>\n'
        for tool, states in run.tally[: room.rows]
    )
    more = len(run.tally) - room.rows
    return f'{head}<ul class="ops-tally">\n{items}</ul>\n' + (
        note(f"{more} further tools are left out.") if more > 0 else ""
    )


def _state_chip(state: str, count: int) -> str:
    return chip(f"{count} {inert(state)}", f"ops-state-{slug(state)}")


def _witnessed(run: Run, room: Room) -> str:
    head = "<h3>Effects and leaks</h3>\n"
    if not (run.effects or run.leaks):
        return head + note("No witness recorded an effect or a leak.")
    items = [*map(_leak, run.leaks[: room.rows]), *map(_effect, run.effects[: room.rows])]
    more = max(len(run.leaks) - room.rows, 0) + max(len(run.effects) - room.rows, 0)
    return f'{head}<ul class="ops-seen">\n{"".join(items)}</ul>\n' + (
        note(f"{more} further entries are left out.") if more else ""
    )


def _leak(leak: LeakFound) -> str:
    where = f"<bdi>{inert(one_line(leak.where, 160))}</bdi> ({leak.encoding})"
    return f'<li class="ops-alarm"><b>Leak</b> canary {leak.canary} in {where}</li>\n'


def _effect(effect: EffectSeen) -> str:
    what, witness = inert(one_line(effect.object, 200)), inert(one_line(effect.witness, 80))
    detail = f": <bdi>{inert(one_line(effect.detail, 300))}</bdi>" if effect.detail else ""
    return (
        f'<li class="ops-alarm"><b>{effect.kind.replace("_", " ").capitalize()}</b> <code><bdi>{what}</bdi></code> '
        f"seen by the witness <bdi>{witness}</bdi>{detail}</li>\n"
    )


def _timeline(run: Run) -> str:
    turns = "".join(map(turn_rows, run.turns))
    left_out = ""
    if run.turns_left_out:
        verb, them = ("is", "it") if run.turns_left_out == 1 else ("are", "them")
        number = counted(run.turns_left_out, "further turn")
        left_out = note(f"{number} {verb} left out here; the trace file has {them}.")
    return f'<h3>Timeline</h3>\n<ol class="ops-timeline">\n{turns}</ol>\n{left_out}'


def _facts_of_setup(start: RunStart) -> Iterator[tuple[str, str]]:
    nothing_named = "none was named: a call that needs one is answered “unavailable”"
    yield "Model", start.model
    yield "Agent", start.agent
    yield "Transport", start.transport
    yield "Cluster", nothing_named if start.cluster == "none" else start.cluster
    if start.github != "none":
        yield "GitHub", start.github
    yield "Second wall", start.second_wall
    yield "Children’s network", start.children_network


def _record(run: Run) -> str:
    """Return where a run came from and where it was written."""
    tools = counted(len(run.start.tools) if run.start is not None else 0, "tool")
    gist = f'<span class="ops-gist"><bdi>{inert(one_line(run.run_id, 60))}</bdi>, {tools} offered</span>'
    return row("", f'<span class="ops-kind">record</span>{gist}', facts(_facts_of_record(run)))


def _facts_of_record(run: Run) -> Iterator[tuple[str, str]]:
    start = run.start
    if start is not None:
        if start.scenario is not None:
            yield "Scenario", start.scenario
        if start.location is not None:
            yield "Line", start.location
        yield "Mode", start.mode
        yield "Servers", ", ".join(start.servers) or "none"
        yield "Tools", ", ".join(start.tools) or "none"
    yield "Run", run.run_id
    yield "Started", run.started
    if run.file:
        yield "Trace file", run.file
