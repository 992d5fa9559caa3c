"""Answers that a state scripts, such as GitHub gives when something is wrong."""

import fnmatch
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from mcp_ops.github.memory.answers import Reply, Request
from mcp_ops.github.memory.state import ScriptedAnswer

_DOCS = "https://docs.github.com/rest"
_NOW = re.compile(r"\$\{now([+-][0-9]{1,9})?\}")


@dataclass(frozen=True)
class Known:
    """The parts of an answer that GitHub is known to give."""

    status: int
    message: str
    headers: Mapping[str, str]


KNOWN: Mapping[str, Known] = {
    "bad_credentials": Known(401, "Bad credentials", {}),
    "broken_json": Known(200, "", {}),
    "echo": Known(422, "Validation Failed: ${token}", {}),
    "forbidden": Known(403, "Resource not accessible by personal access token", {}),
    "rate_limited": Known(
        403,
        "API rate limit exceeded for user ID 1.",
        {"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "${now+1800}"},
    ),
    "secondary_limit": Known(
        403,
        "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
        {"Retry-After": "60"},
    ),
    "server_error": Known(502, "Server Error", {}),
    "sso_required": Known(
        403,
        "Resource protected by organization SAML enforcement. You must grant your Personal Access token access to this"
        " organization.",
        {"X-GitHub-SSO": "required; url=https://github.com/orgs/acme/sso?authorization_request=AAAA"},
    ),
}


class Script:
    """The scripted answers of one in-memory GitHub, and how often each was given."""

    def __init__(self, answers: Sequence[ScriptedAnswer]) -> None:
        """Begin with none of them used."""
        self._left = [(answer, answer.times) for answer in answers]

    def reply(self, request: Request, now: datetime) -> Reply | None:
        """Return the scripted answer to a request and count it; None when there is none."""
        for index, (answer, left) in enumerate(self._left):
            if left != 0 and _fits(answer, request):
                self._left[index] = (answer, None if left is None else left - 1)
                return _made(answer, request, now)
        return None


def _fits(answer: ScriptedAnswer, request: Request) -> bool:
    same_method = answer.method is None or answer.method == request.method
    return same_method and fnmatch.fnmatchcase(request.path.casefold(), answer.path.casefold())


def _made(answer: ScriptedAnswer, request: Request, now: datetime) -> Reply:
    known = KNOWN.get(answer.kind or "")
    status = answer.status or (known.status if known else 200)
    headers = {**(known.headers if known else {}), **answer.headers}
    epoch = int(now.timestamp())
    filled = {name: _NOW.sub(lambda found: str(epoch + int(found[1] or 0)), value) for name, value in headers.items()}
    text = _text(answer, known, status).replace("${token}", json.dumps(request.token)[1:-1])
    return Reply(status, {"Content-Type": "application/json; charset=utf-8", **filled}, text.encode())


def _text(answer: ScriptedAnswer, known: Known | None, status: int) -> str:
    if "body" in answer.model_fields_set:
        return answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
    if answer.kind == "broken_json":
        return '{"message": "cut'
    message = known.message if known else "Scripted"
    return json.dumps({"message": message, "documentation_url": _DOCS, "status": str(status)})
