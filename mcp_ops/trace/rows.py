"""The rows of a run's timeline, as HTML."""

from collections.abc import Iterator

from mcp_ops.text import one_line
from mcp_ops.trace.markup import block, chip, counted, duration, facts, in_brief, inert, note, reason, row, slug
from mcp_ops.trace.view import Call, Turn


def turn_rows(turn: Turn) -> str:
    """Return a turn: what the model was asked, what it replied, and the calls that it asked for."""
    at = f" <span>+{inert(turn.at)} s</span>" if turn.at else ""
    rows = [_prompt(turn), _reply(turn), *map(_call, turn.calls)]
    return f'<li><p class="ops-turn"><b>Turn {turn.number}</b>{at}</p>\n{"".join(rows)}</li>\n'


def _prompt(turn: Turn) -> str:
    request = turn.request
    if request is None:
        return ""
    repeated = request.repeated
    gist = counted(repeated + len(request.messages), "message")
    same = ""
    if repeated:
        gist += f", {repeated} as before"
        verbs = ("stands", "is") if repeated == 1 else ("stand", "are")
        message = counted(repeated, "message")
        same = note(f"{message} of the prompt before {verbs[0]} in this one too and {verbs[1]} not shown again.")
    if request.dropped:
        gist += f", {counted(request.dropped, 'older observation')} dropped"
    messages = "".join(block(role, shown) for role, shown in turn.messages)
    summary = f'<span class="ops-kind">prompt</span><span class="ops-gist">{gist}</span>'
    return row("", summary, f"{messages}{same}")


def _reply(turn: Turn) -> str:
    reply, text = turn.reply, turn.reply_text
    if reply is None or text is None:
        return ""
    summary = f'<span class="ops-kind">reply</span><span class="ops-gist" dir="auto">{inert(turn.gist)}</span>'
    if reply.malformed is not None:
        summary += chip("malformed", "ops-state-failed") + reason(reply.malformed)
    known = [reply.model] if reply.model else []
    known += [reply.finish_reason] if reply.finish_reason is not None else []
    known += [counted(reply.prompt_tokens, "prompt token")] if reply.prompt_tokens is not None else []
    known += [counted(reply.completion_tokens, "reply token")] if reply.completion_tokens is not None else []
    known += [f"${reply.usd:.6f}"] if reply.usd is not None else []
    known += [counted(reply.attempts, "request"), duration(reply.duration_ms)]
    body = f"{block('what the model replied', text)}{in_brief(known, turn.events)}"
    return row(" ops-malformed" if reply.malformed is not None else "", summary, body)


def _call(call: Call) -> str:
    classes = f" ops-call ops-call-{slug(call.state)}{' ops-leaky' if call.leaks else ''}"
    return row(classes, "".join(_call_summary(call)), "".join(_call_body(call)))


def _call_summary(call: Call) -> Iterator[str]:
    tool, gist = inert(one_line(call.tool, 80)), inert(call.gist)
    yield f'<span class="ops-kind">call {call.number}</span>'
    yield f'<span class="ops-gist"><b><bdi>{tool}</bdi></b> <code dir="auto">{gist}</code></span>'
    if marks := list(_marks(call)):
        yield marks[0] if len(marks) == 1 else f'<span class="ops-chips">{"".join(marks)}</span>'
    rule = f" · <bdi>{inert(one_line(call.rule, 60))}</bdi>" if call.rule is not None else ""
    yield chip(f"{inert(call.state)}{rule}", f"ops-state-{slug(call.state)}")
    if call.denial is not None:
        yield reason(call.denial.reason, " (claimed by the server)" if call.denial.claimed else "")
    elif call.result is not None and call.state != "executed":
        yield reason(call.result.text)


def _marks(call: Call) -> Iterator[str]:
    if call.leaks:
        yield chip(counted(len(call.leaks), "leak"), "ops-alarm")
    if call.result is not None and call.result.fault is not None:
        yield chip(f"injected fault: {call.result.fault}", "ops-fault")


def _call_body(call: Call) -> Iterator[str]:
    if call.args is not None:
        yield block("arguments", call.args)
    if call.denial is not None and call.denial.hint:
        hint = inert(one_line(call.denial.hint, 600))
        yield f'<p class="ops-hint" dir="auto"><b>Hint:</b> {hint}</p>\n'
    if call.text is not None:
        yield block("what came back", call.text)
    else:
        yield note("The trace has no result of this call.")
    if call.structured is not None:
        yield block("structured content", call.structured)
    if more := list(_facts_of_call(call)):
        yield facts(more)
    result = call.result
    known = [call.server] if call.server else []
    if result is not None:
        known += [call.state + (" (claimed by the server)" if result.claimed else ""), duration(result.duration_ms)]
    yield in_brief(known, call.events)


def _facts_of_call(call: Call) -> Iterator[tuple[str, str]]:
    result = call.result
    if call.rule is not None:
        yield "Rule", call.rule
    if result is not None and result.fault is not None:
        yield "Injected fault", f"{result.fault}: what came back is not what the server said"
    if result is not None and result.exit_code is not None:
        yield "Exit code", str(result.exit_code)
    if call.confirmation is not None:
        given = call.confirmation
        why = f": {given.why}" if given.why else ""
        yield "Confirmation", f"{given.answer}, by {given.by}, for a {given.tool_class} tool{why}"
    for asked in call.asked:
        answer = "granted" if asked.granted else "refused"
        yield "Asked by the server", f"{asked.method}, {answer}" + (f": {asked.text}" if asked.text else "")
    for leak in call.leaks:
        yield "Leak", f"canary {leak.canary} in {leak.where} ({leak.encoding})"
