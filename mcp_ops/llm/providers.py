"""Models with native tool calls, by their provider's name."""

from collections.abc import Callable, Mapping

from mcp_ops.llm.base import NativeModel
from mcp_ops.llm.sending import RetryPolicy

DEFAULT_MODELS: Mapping[str, str] = {"anthropic": "claude-sonnet-5-5", "openai": "gpt-5.4"}
"""The providers that are known, each with the model that is asked when none is named."""

PATIENT = RetryPolicy(request_seconds=240.0, total_seconds=300.0, silent_seconds=90.0)
"""A reply that reasons first comes in pieces over minutes: what tells that nothing comes any more is silence."""


def native_model(
    provider: str,
    model: str | None,
    key: str | None,
    base_url: str | None = None,
    *,
    on_progress: Callable[[str], object] | None = None,
) -> NativeModel:
    """Return a model; nothing is sent yet.

    Args:
        provider: `anthropic` or `openai`.
        model: Name of the model; None is the provider's default.
        key: The API key. It goes to the provider's own host, or to that of `base_url`, and to no other.
        base_url: Another address that speaks the provider's protocol: https, or http on this machine.
        on_progress: Takes pieces of each reply's text as they come, raw: clean them before they are shown. When a
            request is repeated, the text begins anew.

    Raises:
        ValueError: The provider is not known, or key or address cannot be used. The message is one sentence without
            the key.
    """
    if provider not in DEFAULT_MODELS:
        raise ValueError(f"the provider is none of {', '.join(DEFAULT_MODELS)}")
    if base_url is None and not (key or "").strip():
        raise ValueError(f"{provider} wants an API key and there is none")
    name = model or DEFAULT_MODELS[provider]
    if provider == "anthropic":
        from mcp_ops.llm import anthropic

        return anthropic.AnthropicLLM(
            name, key, base_url=base_url or anthropic.BASE_URL, retry=PATIENT, on_progress=on_progress
        )
    from mcp_ops.llm import openai

    return openai.OpenAILLM(name, key, base_url=base_url or openai.BASE_URL, retry=PATIENT, on_progress=on_progress)
