"""Models: one interface, a scripted model for CI, and any OpenAI-compatible endpoint.

Names are imported when they are first used: httpx is not paid for by a run that sends nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_ops.llm.base import Message, Model, ModelError, Reply
    from mcp_ops.llm.mock import MockLLM, PastCall, ScriptError
    from mcp_ops.llm.openai_compatible import OpenRouterLLM, RetryPolicy

__all__ = [
    "Message",
    "MockLLM",
    "Model",
    "ModelError",
    "OpenRouterLLM",
    "PastCall",
    "Reply",
    "RetryPolicy",
    "ScriptError",
]

_HOME = {
    **dict.fromkeys(("Message", "Model", "ModelError", "Reply"), "base"),
    **dict.fromkeys(("MockLLM", "PastCall", "ScriptError"), "mock"),
    **dict.fromkeys(("OpenRouterLLM", "RetryPolicy"), "openai_compatible"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
