"""How a run of an agent ends on the command line: the answer on stdout, everything else on stderr."""

import json
import sys
from collections.abc import Mapping

from mcp_ops.agent.session import AgentOutput
from mcp_ops.cli import complain
from mcp_ops.text import Redactor, clean, quoted_block
from mcp_ops.trace.writer import TraceWriter


def print_answer(
    output: AgentOutput,
    writer: TraceWriter,
    redactor: Redactor,
    *,
    as_json: bool,
    further: Mapping[str, object] | None = None,
) -> None:
    """Print the answer on stdout; on stderr where the trace is, and why there is no answer.

    Args:
        output: How the run ended.
        writer: Has written its trace.
        redactor: Takes secrets out of the texts.
        as_json: Whether stdout gets one JSON object in place of the answer's text.
        further: Keys of that object beside `run_id`, `trace`, `finish`, `answer` and `error`.
    """
    answer = None if output.answer is None else redactor.text(clean(redactor.text(output.answer)))
    error = None if output.error is None else redactor.text(output.error)
    if as_json:
        told = {"run_id": writer.run_id, "trace": str(writer.path), "finish": output.finish, **(further or {})}
        sys.stdout.write(json.dumps({**told, "answer": answer, "error": error}) + "\n")
    elif answer is not None:
        sys.stdout.write(quoted_block(answer, "| ") + "\n")
    if output.finish != "answer":
        complain(error or "the calls were spent before there was an answer")
    complain(f"the trace is {writer.path}")
