"""Reading what a chat completions endpoint answered, whatever it answered."""

import json
from collections.abc import Mapping
from typing import Any

from mcp_ops.llm.base import Reply
from mcp_ops.llm.failures import Quote, Unusable, error_inside, filtered, no_text, refused
from mcp_ops.llm.reading import amount, count, json_of, mapping, mappings


def read_completion(data: bytes, quote: Quote) -> Reply:
    """Read the body of a successful answer.

    A native tool call is kept as text, `{"tool_calls": […]}`, which the agent's protocol refuses with a sentence.
    Reasoning is never taken for the answer.

    Raises:
        Unusable: It holds no reply.
    """
    body = json_of(data)
    if not isinstance(body, dict):
        raise Unusable("server", "the endpoint answered with something that is not a JSON object", again=True)
    if body.get("error"):
        raise error_inside(body["error"], quote)
    choice = first_choice(body.get("choices"))
    if choice is None:
        raise Unusable("empty", "the endpoint answered without any choice", again=True)
    if choice.get("error"):
        raise error_inside(choice["error"], quote)
    finish = quote(choice.get("finish_reason")) or None
    usage = mapping(body.get("usage"))
    return Reply(
        _text(mapping(choice.get("message")), finish, quote),
        model=quote(body.get("model")),
        finish_reason=finish,
        prompt_tokens=count(usage.get("prompt_tokens")),
        completion_tokens=count(usage.get("completion_tokens")),
        usd=amount(usage.get("cost")),
    )


def _text(message: Mapping[str, Any], finish: str | None, quote: Quote) -> str:
    if finish == "content_filter":
        raise filtered()
    text = content_text(message.get("content"))
    called = message.get("tool_calls") or message.get("function_call")
    if called:
        text = "\n".join(part for part in (text, json.dumps({"tool_calls": called})) if part)
    if text.strip():
        return text
    if refusal := quote(message.get("refusal")):
        raise refused(refusal)
    raise no_text(finish == "length", finish)


def content_text(content: object) -> str:
    """Return the text of a message's content, which may be a list of parts; reasoning is none."""
    if isinstance(content, str):
        return content
    texts = [part.get("text") for part in mappings(content) if part.get("type") in ("text", "output_text")]
    return "".join(text for text in texts if isinstance(text, str))


def first_choice(choices: object) -> Mapping[str, Any] | None:
    """Return the first choice of an answer, if there is one."""
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None
