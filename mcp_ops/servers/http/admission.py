"""Who may speak to a server on loopback: a pure decision over the headers of one request.

A page of the internet can make a browser send requests here, under a host name of its own that it lets point to
127.0.0.1 (DNS rebinding). It cannot forge `Host` and `Origin`, so these tell it from a program of this machine.
"""

import hmac
from collections.abc import Iterable
from dataclasses import dataclass

MIN_TOKEN = 16
"""Fewest characters of a bearer token."""

_NAMES = ("localhost", "127.0.0.1", "[::1]")
_DEFAULT_PORT = 80

Headers = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Refusal:
    """Why a request is not answered."""

    status: int
    sentence: str


@dataclass(frozen=True)
class Admission:
    """What a request has to say to be let in.

    The SDK's own check (`TransportSecuritySettings`) lets any port pass, compares letter case, and covers its own path
    only.
    """

    port: int
    """The port that the server listens on; `Host` has to name it too."""
    host: str = "127.0.0.1"
    """The address that the server listens on."""
    token: str | None = None
    """What callers have to send as a bearer token; None lets every program of this machine in."""

    def __post_init__(self) -> None:
        if self.token is not None and not is_token(self.token):
            raise ValueError(
                f"a bearer token has at least {MIN_TOKEN} characters, all of them letters, digits or one of -._~+/="
            )

    def refuse(self, headers: Headers, *, needs_token: bool = True) -> Refusal | None:
        """Return why a request with these headers is refused, or None.

        Args:
            headers: Raw headers, names in lower case.
            needs_token: Whether the token is asked for, if there is one.
        """
        sent = list(headers)
        if (refusal := self._refuse_host(_values(sent, b"host"))) is not None:
            return refusal
        if (refusal := self._refuse_origin(_values(sent, b"origin"))) is not None:
            return refusal
        return self._refuse_token(_values(sent, b"authorization")) if needs_token else None

    def _hosts(self) -> list[str]:
        own = f"[{self.host}]" if ":" in self.host else self.host
        names = dict.fromkeys((own, *_NAMES))
        bare = list(names) if self.port == _DEFAULT_PORT else []
        return [*(f"{name}:{self.port}" for name in names), *bare]

    def _refuse_host(self, values: list[str]) -> Refusal | None:
        hosts = self._hosts()
        if len(values) == 1 and values[0].lower() in hosts:
            return None
        said = "names another" if values else "is missing"
        return Refusal(421, f"the header Host {said}: this server answers to {', '.join(hosts)} only")

    def _refuse_origin(self, values: list[str]) -> Refusal | None:
        own = {f"http://{host}" for host in self._hosts()}
        if all(value.lower() in own for value in values):
            return None
        return Refusal(403, "the header Origin names another site: web pages may not call this server")

    def _refuse_token(self, values: list[str]) -> Refusal | None:
        if self.token is None:
            return None
        scheme, _, sent = values[0].partition(" ") if len(values) == 1 else ("", "", "")
        if scheme.lower() == "bearer" and hmac.compare_digest(sent.encode("latin-1"), self.token.encode("ascii")):
            return None
        return Refusal(401, "this server asks its callers for a token: send Authorization: Bearer and the token")


def is_token(text: str) -> bool:
    """Return whether a text can be a bearer token (RFC 6750) and is long enough not to be guessed."""
    return (
        len(text) >= MIN_TOKEN
        and text.isascii()
        and all(character.isalnum() or character in "-._~+/=" for character in text)
    )


def _values(headers: Headers, name: bytes) -> list[str]:
    return [value.decode("latin-1").strip() for key, value in headers if key == name]
