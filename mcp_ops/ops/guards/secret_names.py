"""Names of files that hold secrets: data that is shown to users and can be extended."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property, lru_cache
from pathlib import PurePosixPath


@dataclass(frozen=True)
class SecretName:
    """One pattern of a file or folder name. Patterns are shell-style and compared casefolded."""

    pattern: str
    but_not: tuple[str, ...] = ()
    """Names that fit `pattern` and are no secrets all the same."""


_KEY_PAIRS = ("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*")
_DOCUMENTS = ("*.md", "*.rst", "*.adoc")

DEFAULT_NAMES = (
    SecretName(".env"),
    SecretName(".env.*", but_not=(".env.example", ".env.sample", ".env.template")),
    *(SecretName(pattern) for pattern in ("*.env", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks")),
    *(SecretName(pattern, but_not=("*.pub",)) for pattern in _KEY_PAIRS),
    *(SecretName(pattern) for pattern in (".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials")),
    *(SecretName(pattern) for pattern in (".kube", ".dockercfg", ".dockerconfigjson")),
    *(SecretName(pattern) for pattern in ("credentials", "credentials.*", "kubeconfig", "*.kubeconfig")),
    SecretName("*secret*", but_not=_DOCUMENTS),
)

COPY_SUFFIXES = (".bak", ".old", ".orig", "~")
"""A copy of a secret file is one too."""


@dataclass(frozen=True)
class SecretNames:
    """A list of secret names. Every component of a path is compared, so a folder's name covers what is in it."""

    names: tuple[SecretName, ...] = DEFAULT_NAMES
    copy_suffixes: tuple[str, ...] = COPY_SUFFIXES

    def extended(self, patterns: Iterable[str]) -> "SecretNames":
        """Return a list that also holds `patterns`."""
        return SecretNames((*self.names, *(SecretName(pattern) for pattern in patterns)), self.copy_suffixes)

    def pattern_for(self, path: PurePosixPath | str) -> str | None:
        """Return the pattern that makes a relative path secret, or None when it is not."""
        for component in str(path).split("/"):
            pattern = self.pattern_for_name(component)
            if pattern is not None:
                return pattern
        return None

    def pattern_for_name(self, name: str) -> str | None:
        """Return the pattern that one component of a path fits, or None."""
        return self._remembered(name)

    @cached_property
    def _remembered(self) -> Callable[[str], str | None]:
        """The same few names come up in every call and many times in a recursion."""
        return lru_cache(maxsize=4096)(self._compare)

    def _compare(self, name: str) -> str | None:
        plain = self._without_copy_suffix(name.casefold())
        if not self._any.fullmatch(plain):
            return None
        for secret, fits, spared in self._matchers:
            if fits.fullmatch(plain) and not any(pattern.fullmatch(plain) for pattern in spared):
                return secret.pattern
        return None

    def _without_copy_suffix(self, name: str) -> str:
        while suffix := next((end for end in self.copy_suffixes if name.endswith(end) and name != end), None):
            name = name.removesuffix(suffix)
        return name

    @cached_property
    def _any(self) -> re.Pattern[str]:
        return re.compile("|".join(translate(secret.pattern.casefold()) for secret in self.names))

    @cached_property
    def _matchers(self) -> tuple[tuple[SecretName, re.Pattern[str], tuple[re.Pattern[str], ...]], ...]:
        return tuple(
            (secret, _compile(secret.pattern), tuple(_compile(pattern) for pattern in secret.but_not))
            for secret in self.names
        )


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern.casefold()))


DEFAULT = SecretNames()
