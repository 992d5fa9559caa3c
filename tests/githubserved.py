"""An in-memory GitHub on loopback, and the environment in which `mcp-ops serve github` finds it."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mcp_ops.evaluation.world.loopback import loopback_socket, served
from mcp_ops.github.memory.service import MemoryGitHub
from mcp_ops.github.memory.state import GitHubState

DEMO = Path(__file__).parent.parent / "scenarios/github/acme.json"
TOKEN = "ghp_TokenOfATestThatOpensNothing0001"


@asynccontextmanager
async def github_on_loopback() -> AsyncIterator[dict[str, str]]:
    state = GitHubState.model_validate(json.loads(DEMO.read_text("utf-8")))
    memory = MemoryGitHub(state, token=TOKEN)
    listener = loopback_socket()
    async with served(memory.asgi, listener):
        yield {
            "PATH": os.environ["PATH"],
            "GITHUB_API_URL": f"http://127.0.0.1:{listener.getsockname()[1]}",
            "GITHUB_TOKEN": TOKEN,
            "GITHUB_REPOS": "acme/web,acme/api",
        }
