"""Reading what a chat completions endpoint answered, whatever it answered."""

import json
import math
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from mcp_ops.llm.base import ModelErrorKind, Reply

Quote = Callable[[object], str]
"""Makes words of the other side fit to be repeated."""


class Unusable(Exception):
    """An answer that holds no reply. The message is one sentence that may be shown."""

    def __init__(self, kind: ModelErrorKind, message: str, *, again: bool, wait: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.again = again
        """Whether asking once more may help."""
        self.wait = wait
        """How many seconds the other side asks to wait first."""


def read_completion(data: bytes, quote: Quote) -> Reply:
    """Read the body of a successful answer.

    A native tool call is kept as text, `{"tool_calls": […]}`, which the agent's protocol refuses with a sentence.
    Reasoning is never taken for the answer.

    Raises:
        Unusable: It holds no reply.
    """
    body = _json(data)
    if not isinstance(body, dict):
        raise Unusable("server", "the endpoint answered with something that is not a JSON object", again=True)
    if body.get("error"):
        raise error_inside(body["error"], quote)
    choice = _first(body.get("choices"))
    if choice is None:
        raise Unusable("empty", "the endpoint answered without any choice", again=True)
    if choice.get("error"):
        raise error_inside(choice["error"], quote)
    finish = quote(choice.get("finish_reason")) or None
    usage = _mapping(body.get("usage"))
    return Reply(
        _text(_mapping(choice.get("message")), finish, quote),
        model=quote(body.get("model")),
        finish_reason=finish,
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        usd=_amount(usage.get("cost")),
    )


def status_fault(status: int, data: bytes, quote: Quote, *, wait: float | None = None) -> Unusable:
    """Return what an answer with an error status means."""
    body = _json(data)
    return _fault(status, body.get("error", body) if isinstance(body, dict) else None, quote, wait)


def error_inside(error: object, quote: Quote) -> Unusable:
    """Return what an error inside a 200 means: by its code, if that is a status, else as the server's fault."""
    code = _mapping(error).get("code")
    number = int(code) if isinstance(code, int | str) and str(code).isdecimal() and len(str(code)) == 3 else 0
    return _fault(number if number >= HTTPStatus.BAD_REQUEST else HTTPStatus.BAD_GATEWAY, error, quote, None)


def _fault(status: int, error: object, quote: Quote, wait: float | None) -> Unusable:
    details = _mapping(error)
    said = quote(error if isinstance(error, str) else details.get("message") or details.get("detail"))
    words = f": {said}" if said else ""
    if details.get("code") == "insufficient_quota":
        status = HTTPStatus.PAYMENT_REQUIRED
    match status:
        case HTTPStatus.UNAUTHORIZED:
            return Unusable("auth", f"the endpoint does not accept the API key (401){words}", again=False)
        case HTTPStatus.PAYMENT_REQUIRED:
            return Unusable("payment", f"the endpoint asks for payment: no credit is left (402){words}", again=False)
        case HTTPStatus.NOT_FOUND:
            return Unusable("refused", f"the endpoint has no such address or model (404){words}", again=False)
        case HTTPStatus.REQUEST_TIMEOUT:
            return Unusable("timeout", f"the endpoint gave up waiting (408){words}", again=True)
        case HTTPStatus.TOO_MANY_REQUESTS:
            return Unusable("rate_limit", f"the endpoint limits the rate (429){words}", again=True, wait=wait)
        case _ if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return Unusable("server", f"the endpoint failed ({status}){words}", again=True, wait=wait)
        case _ if status < HTTPStatus.BAD_REQUEST:
            sentence = f"the endpoint redirects ({status}) and no redirect is followed: set the final base URL"
            return Unusable("refused", sentence, again=False)
    return Unusable("refused", f"the endpoint refuses the request ({status}){words}", again=False)


def _text(message: Mapping[str, Any], finish: str | None, quote: Quote) -> str:
    if finish == "content_filter":
        raise Unusable("refused", "the provider's content filter stopped the reply", again=False)
    text = _content(message.get("content"))
    called = message.get("tool_calls") or message.get("function_call")
    if called:
        text = "\n".join(part for part in (text, json.dumps({"tool_calls": called})) if part)
    if text.strip():
        return text
    if refusal := quote(message.get("refusal")):
        raise Unusable("refused", f"the model refused: {refusal}", again=False)
    if finish == "length":
        raise Unusable("empty", "the reply ran into the length limit before any text", again=False)
    raise Unusable("empty", f"the reply has no text (finish_reason {finish or 'missing'})", again=True)


def _content(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = [_mapping(part) for part in content] if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if part.get("type") in ("text", "output_text")]
    return "".join(text for text in texts if isinstance(text, str))


def _json(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None


def _first(choices: object) -> Mapping[str, Any] | None:
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _amount(value: object) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
    return float(value) if known else None  # type: ignore[arg-type]
