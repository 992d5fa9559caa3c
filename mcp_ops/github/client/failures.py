"""What an answer that is no good means: one typed failure each, in a sentence that holds no secret."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from mcp_ops.github.api import FailureKind, GitHubError
from mcp_ops.github.client.answer import Answer
from mcp_ops.wire import retry_after

_UNTOLD_WAIT = timedelta(minutes=1)
"""What GitHub's rules say to wait when an answer about a limit says no time."""
_LONGEST_WAIT = timedelta(hours=1)
"""Limits are counted by the hour: a later time is not believed."""
_SECONDARY = ("secondary rate limit", "abuse detection")
_SSO_ORGANIZATION = re.compile(r"/orgs/([A-Za-z0-9-]{1,64})/sso", re.ASCII)
_EPOCH = re.compile(r"[0-9]{1,11}", re.ASCII)
_MAX_FIELDS = 5


@dataclass(frozen=True)
class Reader:
    """Reads failures of one client."""

    quote: Callable[[object], str]
    now: Callable[[], datetime]

    def failure(self, answer: Answer, what: str) -> GitHubError:
        """Return what an answer means.

        Args:
            answer: Its status is not the one that was hoped for.
            what: What was asked for, such as `pull request #17 of acme/web`.
        """
        said = _json_object(answer.body)
        limit = self._limit(answer, said)
        if limit is not None:
            return limit
        message = self.quote(said.get("message"))
        if answer.status in (403, 404) and _wants_sso(answer.headers, message):
            return GitHubError("sso_required", self._sso_sentence(answer.headers, what))
        kind, sentence = _sentence(answer.status, what)
        if answer.status == 404:
            return GitHubError(kind, sentence)
        details = "; ".join(filter(None, (message, *self._fields(said))))
        return GitHubError(kind, f"{sentence}: {details}" if details else sentence)

    def _limit(self, answer: Answer, said: Mapping[str, Any]) -> GitHubError | None:
        if answer.status not in (403, 429):
            return None
        message = str(said.get("message", "")) or answer.body[:4000].decode("utf-8", "replace")
        spent = answer.headers.get("x-ratelimit-remaining", "").strip() == "0"
        asked = retry_after(answer.headers.get("retry-after"), self.now())
        secondary = any(words in message.casefold() for words in _SECONDARY) or asked is not None
        if not spent and not secondary and answer.status != 429:
            return None
        reset = _reset(answer.headers.get("x-ratelimit-reset", "")) if spent else None
        until = self._until(asked, reset)
        when = until.astimezone(UTC).strftime("%H:%M:%S UTC")
        if spent and not secondary:
            return GitHubError(
                "rate_limited",
                f"the token's rate limit at GitHub is used up until {when}: ask again then",
                retry_at=until,
            )
        return GitHubError(
            "secondary_limit", f"GitHub wants fewer requests (secondary limit): ask again after {when}", retry_at=until
        )

    def _until(self, asked: float | None, reset: datetime | None) -> datetime:
        now = self.now()
        if asked is not None:
            until = now + timedelta(seconds=min(asked, _LONGEST_WAIT.total_seconds()))
        elif reset is not None and reset > now:
            until = reset
        else:
            until = now + _UNTOLD_WAIT
        return min(until, now + _LONGEST_WAIT)

    def _sso_sentence(self, headers: httpx.Headers, what: str) -> str:
        # The address in the header carries a request of its own that is good for an hour: only who it is about is said.
        found = _SSO_ORGANIZATION.search(headers.get("x-github-sso", ""))
        owner = self.quote(found[1]) if found else ""
        whose = f"organization {owner}" if owner else "the organization"
        return f"{what}: {whose} wants single sign-on: authorize the token for it on GitHub's page of tokens"

    def _fields(self, said: Mapping[str, Any]) -> Iterator[str]:
        errors = said.get("errors")
        for error in (errors if isinstance(errors, list) else [])[:_MAX_FIELDS]:
            if isinstance(error, str):
                yield self.quote(error)
            elif isinstance(error, dict):
                named = [error.get(key) for key in ("resource", "field")]
                place = ".".join(filter(None, map(self.quote, named)))
                why = self.quote(error.get("message")) or self.quote(error.get("code"))
                yield ": ".join(filter(None, (place, why)))


def _json_object(body: bytes) -> Mapping[str, Any]:
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _wants_sso(headers: httpx.Headers, message: str) -> bool:
    return headers.get("x-github-sso", "").strip().casefold().startswith("required") or "SAML enforcement" in message


def _reset(value: str) -> datetime | None:
    return datetime.fromtimestamp(int(value), UTC) if _EPOCH.fullmatch(value.strip()) else None


def _sentence(status: int, what: str) -> tuple[FailureKind, str]:
    known: Mapping[int, tuple[FailureKind, str]] = {
        401: ("unauthorized", f"{what}: GitHub does not accept the credentials (401)"),
        403: ("forbidden", f"{what}: GitHub does not allow it (403)"),
        404: ("not_found", f"{what}: not there, or the token may not see it (404)"),
        410: ("gone", f"{what}: GitHub says that it is gone or switched off (410)"),
        422: ("invalid", f"{what}: GitHub refuses the request (422)"),
        451: ("forbidden", f"{what}: not available for legal reasons (451)"),
    }
    if status in known:
        return known[status]
    if status >= 500:
        return "server", f"{what}: GitHub has a problem of its own ({status})"
    if 400 <= status < 500:
        return "invalid", f"{what}: GitHub refuses the request ({status})"
    if 300 <= status < 400 and status != 304:
        return "redirected", f"{what}: GitHub redirects ({status}), which is not followed here"
    return "unreadable", f"{what}: GitHub answers with status {status}, which is none of this request"
