"""Models: one interface, a scripted model for CI, any OpenAI-compatible endpoint, and providers with tool calls.

Names are imported when they are first used: httpx is not paid for by a run that sends nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_ops.llm.base import (
        CallResult,
        ConversationTurn,
        Message,
        Model,
        ModelError,
        ModelTurn,
        NativeCall,
        NativeModel,
        NativeReply,
        Reply,
        ResultsTurn,
        ToolSpec,
        UserTurn,
    )
    from mcp_ops.llm.mock import MockLLM, NativeMockLLM, PastCall, ScriptError
    from mcp_ops.llm.openai_compatible import OpenRouterLLM, RetryPolicy
    from mcp_ops.llm.providers import DEFAULT_MODELS, native_model

__all__ = [
    "DEFAULT_MODELS",
    "CallResult",
    "ConversationTurn",
    "Message",
    "MockLLM",
    "Model",
    "ModelError",
    "ModelTurn",
    "NativeCall",
    "NativeMockLLM",
    "NativeModel",
    "NativeReply",
    "OpenRouterLLM",
    "PastCall",
    "Reply",
    "ResultsTurn",
    "RetryPolicy",
    "ScriptError",
    "ToolSpec",
    "UserTurn",
    "native_model",
]

_HOME = {
    **dict.fromkeys(("Message", "Model", "ModelError", "Reply"), "base"),
    **dict.fromkeys(("NativeModel", "NativeReply", "NativeCall", "ToolSpec", "CallResult"), "base"),
    **dict.fromkeys(("ConversationTurn", "UserTurn", "ModelTurn", "ResultsTurn"), "base"),
    **dict.fromkeys(("MockLLM", "NativeMockLLM", "PastCall", "ScriptError"), "mock"),
    **dict.fromkeys(("OpenRouterLLM", "RetryPolicy"), "openai_compatible"),
    **dict.fromkeys(("DEFAULT_MODELS", "native_model"), "providers"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
