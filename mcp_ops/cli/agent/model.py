"""The model of `mcp-ops agent`, which the environment names."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mcp_ops.cli.errors import CommandError
from mcp_ops.llm import DEFAULT_MODELS, native_model
from mcp_ops.llm.base import NativeModel

KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
"""Each provider with the variable of its key."""
BASE_URLS = {"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_BASE_URL"}


@dataclass(frozen=True)
class Chosen:
    """A model, and what must not be written down."""

    model: NativeModel
    key: str | None = field(repr=False)


def choose_model(environ: Mapping[str, str]) -> Chosen:
    """Return the model that `LLM_PROVIDER`, `LLM_MODEL` and the keys ask for. A file such as `.env` is never read.

    Raises:
        CommandError: They do not fit together.
    """
    provider = _provider(environ)
    key, base_url = (environ.get(KEYS[provider]) or "").strip() or None, environ.get(BASE_URLS[provider]) or None
    if key is None and base_url is None:
        raise CommandError(f"LLM_PROVIDER is {provider}, and {KEYS[provider]} is not set")
    name = environ.get("LLM_MODEL") or DEFAULT_MODELS[provider]
    try:
        return Chosen(native_model(provider, name, key, base_url), key)
    except ValueError as error:
        raise CommandError(str(error)) from None


def _provider(environ: Mapping[str, str]) -> str:
    said = environ.get("LLM_PROVIDER")
    if said:
        if said not in KEYS:
            raise CommandError(f"LLM_PROVIDER is {said!r}; write {' or '.join(KEYS)}")
        return said
    having = [provider for provider, key in KEYS.items() if environ.get(key)]
    if len(having) == 1:
        return having[0]
    if having:
        raise CommandError(f"{' and '.join(KEYS.values())} are both set; say which with LLM_PROVIDER={having[0]}")
    raise CommandError(f"no model: set {' or '.join(KEYS.values())}; a file .env is not read")
