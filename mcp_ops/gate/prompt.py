"""Texts that a person picks for a model. A prompt takes the road of a call; a refusal is an MCP error."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import mcp_types

from mcp_ops.gate.choke import decide_and_run
from mcp_ops.gate.failure import failure
from mcp_ops.gate.reply import Hide, shown, stopped
from mcp_ops.gate.rules import PROMPT_UNKNOWN, Refuse
from mcp_ops.gate.tool import MAX_REPLY_BYTES, A, C, Guarded, P
from mcp_ops.text import one_line

K = TypeVar("K")


@dataclass(frozen=True)
class Prompt(Guarded[A, C, P]):
    """One prompt. Its runner's text is the message of the user. Its arguments are texts."""

    @cached_property
    def definition(self) -> mcp_types.Prompt:
        """The prompt as `prompts/list` shows it."""
        arguments = [
            mcp_types.PromptArgument(name=name, description=field.description, required=field.is_required())
            for name, field in self.arguments.model_fields.items()
        ]
        return mcp_types.Prompt(name=self.name, description=self.description, arguments=arguments)


async def get_prompt(
    prompts: Mapping[str, Prompt[A, K, P]],
    name: str,
    arguments: Mapping[str, str] | None,
    context: K,
    *,
    refuse: Refuse,
    hide: Hide,
) -> mcp_types.GetPromptResult:
    """Answer one request for a prompt.

    Raises:
        MCPError: It was refused or failed; the message is the sentence that a call would say.
    """
    prompt = prompts.get(name)
    if prompt is None:
        known = ", ".join(prompts)
        result = stopped(PROMPT_UNKNOWN, f"there is no prompt {one_line(name, 60)!r}; there are {known}")
    else:
        result = await decide_and_run(prompt, arguments or {}, context, refuse)
    if result.rule is not None:
        raise failure(result, result.rule, hide)
    content = mcp_types.TextContent(text=shown(result, MAX_REPLY_BYTES, hide).text)
    message = mcp_types.PromptMessage(role="user", content=content)
    return mcp_types.GetPromptResult(description=prompt.description if prompt else None, messages=[message])
