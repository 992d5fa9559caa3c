"""What the errors of model endpoints mean, whether they come as a status, inside a 200 or inside a stream."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from mcp_ops.llm.base import ModelErrorKind
from mcp_ops.llm.reading import json_of, mapping, text

Quote = Callable[[object], str]
"""Makes words of the other side fit to be repeated."""

OVERLOADED = 529
"""Status of an endpoint that has too much to do."""

_STATUS_OF: Mapping[str, int] = {
    "api_error": 500,
    "authentication_error": 401,
    "billing_error": 402,
    "context_length_exceeded": 400,
    "insufficient_quota": 402,
    "invalid_api_key": 401,
    "invalid_request_error": 400,
    "model_not_found": 404,
    "not_found_error": 404,
    "overloaded_error": OVERLOADED,
    "permission_error": 403,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "request_too_large": 413,
    "server_error": 500,
    "timeout_error": 504,
}
"""Names that providers give to errors, and the statuses that they belong to."""


class Unusable(Exception):
    """An answer that holds no reply. The message is one sentence that may be shown."""

    def __init__(
        self, kind: ModelErrorKind, message: str, *, again: bool, wait: float | None = None, field: str = ""
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.again = again
        """Whether asking once more may help."""
        self.wait = wait
        """How many seconds the other side asks to wait first."""
        self.field = field
        """The field of the request that the other side names as the wrong one."""


def status_fault(status: int, data: bytes, quote: Quote, *, wait: float | None = None) -> Unusable:
    """Return what an answer with an error status means."""
    body = json_of(data)
    return _fault(status, body.get("error", body) if isinstance(body, dict) else None, quote, wait)


def error_inside(error: object, quote: Quote) -> Unusable:
    """Return what an error inside a good answer means: by its code or type, else as the server's fault."""
    details = mapping(error)
    number = _status(details.get("code")) or _status(details.get("type"))
    return _fault(number if number >= HTTPStatus.BAD_REQUEST else HTTPStatus.BAD_GATEWAY, error, quote, None)


def refused(words: str) -> Unusable:
    """Return what a model's refusal to answer means. `words` may be empty."""
    return Unusable("refused", f"the model refused: {words}" if words else "the model refused", again=False)


def filtered() -> Unusable:
    """Return what a provider's content filter means."""
    return Unusable("refused", "the provider's content filter stopped the reply", again=False)


def no_text(cut: bool, finish: str | None) -> Unusable:
    """Return what a reply with nothing in it means."""
    if cut:
        return Unusable("empty", "the reply ran into the length limit before any text", again=False)
    return Unusable("empty", f"the reply has no text (finish_reason {finish or 'missing'})", again=True)


def _status(code: object) -> int:
    if isinstance(code, int | str) and str(code).isdecimal() and len(str(code)) == 3:
        return int(code)
    return _STATUS_OF.get(text(code), 0)


def _fault(status: int, error: object, quote: Quote, wait: float | None) -> Unusable:
    details = mapping(error)
    said = quote(error if isinstance(error, str) else details.get("message") or details.get("detail"))
    words = f": {said}" if said else ""
    if "insufficient_quota" in (details.get("code"), details.get("type")):
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
        case _ if status == OVERLOADED:
            return Unusable("server", f"the endpoint is overloaded (529){words}", again=True, wait=wait)
        case _ if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return Unusable("server", f"the endpoint failed ({status}){words}", again=True, wait=wait)
        case _ if status < HTTPStatus.BAD_REQUEST:
            sentence = f"the endpoint redirects ({status}) and no redirect is followed: set the final base URL"
            return Unusable("refused", sentence, again=False)
    sentence = f"the endpoint refuses the request ({status}){words}"
    return Unusable("refused", sentence, again=False, field=quote(details.get("param")))


def message_of(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the error in an event of a stream, which may be the event itself."""
    inside = value.get("error")
    return inside if isinstance(inside, dict) else value
