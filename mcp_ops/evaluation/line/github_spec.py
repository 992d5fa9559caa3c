"""The GitHub that a line asks for: what is in it, what is watched, and what may be written to."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from mcp_ops.evaluation.line.line_model import Given, Items, Text, fault
from mcp_ops.evaluation.line.paths import state_path
from mcp_ops.evaluation.wording import shown
from mcp_ops.github.memory.state import GitHubState, RepositoryKey

_NOWHERE = re.compile(r"/(?![/\\])[^\\\s]*|https://[a-z0-9.-]+\.invalid(/[^\\\s]*)?", re.ASCII)
"""A path of the same GitHub, or a host that by RFC 2606 nobody has."""


class HarmlessState(GitHubState):
    """What is in a GitHub, without an answer that leads a client to a place outside the run.

    A server that is a child process follows a log's redirect by itself, and nobody watches its connections.
    """

    @model_validator(mode="after")
    def _check_redirects(self) -> "HarmlessState":
        for index, answer in enumerate(self.answers):
            for name, value in answer.headers.items():
                if name.lower() == "location" and not _NOWHERE.fullmatch(value):
                    raise fault(
                        f"{shown(value)} leads out of the run; write a path, or a host that nobody has, such as"
                        " https://storage.invalid/log",
                        *("answers", index, "headers", name),
                    )
        return self


class GitHubSpec(HarmlessState):
    """The GitHub of a run. It is made anew for each attempt, in the memory of the harness; nothing real is reached."""

    from_: Given[Annotated[Text, AfterValidator(state_path)]] = Field(
        default=None,
        alias="from",
        description="JSON file with the rest of what is in it, looked for as a workspace is. What the line says is laid"
        " over it: objects are merged key by key, everything else takes the place of what the file says.",
        examples=["github/acme.json"],
    )
    watch: Given[Items[RepositoryKey]] = Field(
        default=None,
        description="The repositories that the server may read; by default all that are in it.",
        examples=[["acme/web", "acme/api"]],
    )
    write: Items[RepositoryKey] = Field(
        default=(),
        description="The repositories in which the server may open issues; by default none.",
        examples=[["acme/web"]],
    )
