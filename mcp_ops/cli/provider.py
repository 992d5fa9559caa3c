"""The model of `mcp-ops run`: a script, or a real one that the environment names."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_ops.cli.errors import CommandError, reason
from mcp_ops.evaluation.config import DEFAULT_BASE_URL, DEFAULT_MODEL, Mode
from mcp_ops.evaluation.endpoint import OTHER_KEY, PROVIDER_KEY, is_default_host, key_for
from mcp_ops.evaluation.line.parse import from_dict
from mcp_ops.evaluation.line.scenario import ScenarioError
from mcp_ops.evaluation.session.recording import RecordingSession
from mcp_ops.llm.base import Model
from mcp_ops.llm.mock import MockLLM
from mcp_ops.llm.openai_compatible import OpenRouterLLM


@dataclass(frozen=True)
class Provider:
    """Makes the model of a run."""

    mode: Mode
    script: Sequence[Mapping[str, Any]] = ()
    live: OpenRouterLLM | None = None
    api_key: str | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """How the trace names the model."""
        return self.live.name if self.live else MockLLM.name

    def model(self, session: RecordingSession) -> Model:
        """Return the model for one run."""
        return self.live or MockLLM(self.script, calls=session.past_calls)


def choose_provider(script: Path | None, environ: Mapping[str, str]) -> Provider:
    """Return the provider that `--script` and the environment ask for.

    Raises:
        CommandError: They do not fit together.
    """
    mode = environ.get("MCP_OPS_MODE") or "mock"
    if mode == "mock":
        if script is None:
            raise CommandError(
                'mock mode needs --script FILE, a JSON list of replies such as [{"finish": "done"}]; '
                "for a real model set MCP_OPS_MODE=live"
            )
        return Provider("mock", script=_read_script(script))
    if mode != "live":
        raise CommandError(f"MCP_OPS_MODE is {mode!r}; write mock or live")
    if script is not None:
        raise CommandError("--script is for mock mode, and MCP_OPS_MODE is live; leave one of them out")
    return _live(environ)


def _live(environ: Mapping[str, str]) -> Provider:
    base_url = environ.get("MCP_OPS_BASE_URL") or DEFAULT_BASE_URL
    key = key_for(base_url, environ)
    if key is None and is_default_host(base_url):
        raise CommandError(
            f"live mode needs {PROVIDER_KEY}, or MCP_OPS_BASE_URL of another endpoint, whose key is {OTHER_KEY}"
        )
    try:
        model = OpenRouterLLM(base_url, environ.get("MCP_OPS_MODEL") or DEFAULT_MODEL, key)
    except ValueError as error:
        raise CommandError(str(error)) from None
    return Provider("live", live=model, api_key=key)


def _read_script(path: Path) -> list[dict[str, Any]]:
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        spec = from_dict({"id": "script", "task": "x", "mock": entries, "expect": {}}).spec
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {reason(error)}") from None
    except ScenarioError as error:
        raise CommandError(f"{path} is no script: {error}") from None
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{path} is no JSON: {error}") from None
    return [entry.reply() for entry in spec.mock or ()]
