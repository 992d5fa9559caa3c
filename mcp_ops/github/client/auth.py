"""Credentials: a token, or an App's installation that gets itself one. None of them is ever said."""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, cast

from mcp_ops.text import Redactor, Secret, one_line

T = TypeVar("T")

_KINDS = re.compile(r"(?:github_pat|gh[a-z])_", re.ASCII)
_KEPT_SECRETS = 6
_MAX_QUOTED = 4000
"""Characters of what the other side said that are looked at; a sentence holds far fewer."""


class Minted(NamedTuple):
    """An installation token as GitHub gave it out."""

    token: Secret
    expires: datetime


Mint = Callable[[int, Secret], Awaitable[Minted]]
"""Asks GitHub for a token of an installation, with the App's own signed statement."""


class Credentials(ABC):
    """What a request is allowed by, and what must stand in no text."""

    def __init__(self, *always: Secret) -> None:
        """Begin with the secrets that are never forgotten."""
        self._always = always
        self._recent: tuple[Secret, ...] = ()

    @abstractmethod
    async def token(self, mint: Mint) -> Secret:
        """Return the token to send now."""

    @abstractmethod
    def refused(self, token: Secret) -> bool:
        """Take note that GitHub does not accept a token; say whether asking again gets another one."""

    def secrets(self) -> tuple[Secret, ...]:
        """Return every value that must stand in no text, as known now."""
        return (*self._always, *self._recent)

    def quote(self, text: object) -> str:
        """Return what the other side said, cleaned and on one line; nothing of it when it echoes a secret."""
        said = text[:_MAX_QUOTED] if isinstance(text, str) else ""
        return "" if any(secret.stands_in(said) for secret in self.secrets()) else one_line(said)

    def redacted(self, value: T) -> T:
        """Return a text, or a dataclass or tuple of them at any depth, with labels in place of secrets."""
        return cast("T", self._redacted(value))

    def _redacted(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._redactor.text(value)
        if isinstance(value, tuple):
            return tuple(self._redacted(item) for item in value)
        if is_dataclass(value) and not isinstance(value, type):
            changed = {each.name: self._redacted(getattr(value, each.name)) for each in fields(value)}
            return replace(value, **changed)
        return value

    def _keep(self, secret: Secret) -> Secret:
        """Take a further secret that must not be said; of many, the oldest is forgotten."""
        self._recent = (*self._recent, secret)[-_KEPT_SECRETS:]
        self.__dict__.pop("_redactor", None)
        return secret

    @cached_property
    def _redactor(self) -> Redactor:
        return Redactor({secret.reveal(): "github-token" for secret in self.secrets()})

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


class Token(Credentials):
    """A personal access token."""

    def __init__(self, token: str) -> None:
        """Take it; surrounding white space is not part of it.

        Raises:
            ValueError: It is empty, or no header can carry it.
        """
        self._token = token_secret(token)
        super().__init__(self._token)

    async def token(self, mint: Mint) -> Secret:
        """Return it."""
        return self._token

    def refused(self, token: Secret) -> bool:
        """Say no: there is only this one."""
        return False


class AppInstallation(Credentials):
    """An installation of a GitHub App. Its tokens last an hour; a new one is fetched five minutes before that."""

    EARLY = timedelta(minutes=5)
    STATEMENT = timedelta(minutes=9)
    """How long the App's statement about itself lasts: GitHub takes none that lasts longer than ten minutes."""
    CLOCK_DRIFT = timedelta(seconds=60)

    def __init__(
        self,
        app_id: str,
        installation_id: int,
        private_key: str,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        r"""Take what the App's settings page shows.

        Args:
            app_id: The App's id, or its client id.
            installation_id: From the address of the installation's settings page.
            private_key: RSA key in PEM form; `\n` written as two characters, as variables often have it, is a line end.
            now: Current time.

        Raises:
            ValueError: One of them cannot be used. The message does not repeat the key.
        """
        if not re.fullmatch(r"[A-Za-z0-9.]{1,64}", app_id, re.ASCII):
            raise ValueError(
                "the App's id is a number or a client id like Iv23liAbCdEf: copy it from its settings page"
            )
        if installation_id < 1:
            raise ValueError("the installation's id is a number: it ends the address of the installation's page")
        self._app_id, self._installation_id, self._now = app_id, installation_id, now
        pem = private_key.replace("\\n", "\n").strip()
        self._key = _private_key(pem)
        super().__init__(Secret(pem, telling=_own_part(pem)))
        self._minted: Minted | None = None
        self._one_at_a_time = asyncio.Lock()

    async def token(self, mint: Mint) -> Secret:
        """Return the present token, or fetch one. Who comes meanwhile waits for the same one."""
        async with self._one_at_a_time:
            if self._minted is None or self._now() >= self._minted.expires - self.EARLY:
                self._minted = await mint(self._installation_id, self._statement())
                self._keep(self._minted.token)
            return self._minted.token

    def refused(self, token: Secret) -> bool:
        """Forget the token if it is the present one; another one can be had."""
        if self._minted is not None and self._minted.token is token:
            self._minted = None
        return True

    def _statement(self) -> Secret:
        import jwt  # its cryptography takes long to load, and a plain token needs none

        at = self._now()
        claims = {
            "iat": int((at - self.CLOCK_DRIFT).timestamp()),
            "exp": int((at + self.STATEMENT).timestamp()),
            "iss": self._app_id,
        }
        statement = jwt.encode(claims, self._key, algorithm="RS256")
        return self._keep(Secret(statement, telling=statement.rpartition(".")[2]))


_COMMON_BEGINNING = 64
"""Characters of base64 with which keys of the same kind and size begin, and some more."""


def token_secret(token: str) -> Secret:
    """Return a token as a secret.

    Raises:
        ValueError: It is empty, or no header can carry it.
    """
    token = token.strip()
    if not token:
        raise ValueError("the GitHub token is empty")
    if not all("!" <= character <= "~" for character in token):
        raise ValueError("the GitHub token holds a space or a character outside ASCII: copy it again, on one line")
    kind = _KINDS.search(token)
    return Secret(token, public=kind[0] if kind and kind.start() == 0 else "")


def _own_part(pem: str) -> str:
    """Return what is of this key alone: every PEM file has its dashed lines, and keys of one size begin alike."""
    lines = [line.strip() for line in pem.splitlines() if not line.startswith("-----") and ":" not in line]
    return "".join(lines)[_COMMON_BEGINNING:]


def _private_key(pem: str) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, RSAPrivateKey):
        raise ValueError("the App's private key is no RSA key in PEM form without a password: download it again")
    return key
