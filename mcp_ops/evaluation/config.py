"""What one run of the harness was told: by flags, by the ini file, or by a caller in Python."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Mode = Literal["mock", "live"]
Transport = Literal["memory", "stdio", "http"]

AgentName = Literal["ops", "command-line"]
"""The agents that ship here."""

DEFAULT_MODEL = "google/gemini-2.5-flash"
DEFAULT_BASE_URL = "https://openrouter.ai/api/v1"
OPS_SERVER = "ops"
"""Name of the guarded read-only server that ships with the harness."""
GITHUB_SERVER = "github"
"""Name of the guarded GitHub server that ships with the harness. In a scenario its GitHub is in memory."""
OWN_SERVERS = (OPS_SERVER, GITHUB_SERVER)
"""Every server that ships here. No server of a user's own has one of these names."""
GRANTS = ("roots",)
"""What a server of the user's own can be granted. Sampling and elicitation have nobody here who could answer them."""


@dataclass(frozen=True)
class ServerSpec:
    """A server of the user's own, from configuration, never from a line."""

    name: str
    command: tuple[str, ...] = ()
    """Argument list of a stdio server. `{workspace}` in it is the copy of the line's workspace, `{kubeconfig}` and
    `{kube_context}` are the cluster that was named for the run."""
    factory: str | None = None
    """`module:factory`: called with the workspace's path, returns an MCP server object."""
    denied_pattern: str | None = None
    """RE2 pattern: a reply with the error flag whose text it finds is a claimed denial."""
    grants: frozenset[str] = frozenset()
    """What it may ask of its client: `roots`, which are the copy of the line's workspace."""
    mutating: bool = True
    """Whether it has tools that change something. Then it starts only when writes are allowed for it."""


@dataclass(frozen=True)
class Limits:
    """The run's own limits: they stop an agent, whoever wrote it."""

    max_calls: int = 8
    seconds: float = 120.0
    """Wall clock of one attempt."""


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides how a scenario runs, apart from the scenario."""

    mode: Mode = "mock"
    rootdir: Path = field(default_factory=Path.cwd)
    """No workspace lies outside it."""
    model: str = DEFAULT_MODEL
    base_url: str = DEFAULT_BASE_URL
    api_key: str | None = field(default=None, repr=False)
    response_schema: bool = False
    """Ask the provider to hold replies to the protocol's JSON Schema."""
    transport: Transport = "memory"
    kubeconfig: Path | None = None
    kube_context: str | None = None
    allow_writes: frozenset[str] = frozenset()
    """Names of servers with mutating tools that may start."""
    clusters: frozenset[str] = frozenset()
    """Clusters that these may change, by the uid of their kube-system namespace."""
    servers: Mapping[str, ServerSpec] = field(default_factory=dict)
    guards: Path | None = None
    """The operator's file of additions to the guards' tables; no line can name one."""
    agent: str | None = None
    """`module:callable` of a user's agent, or None for ours."""
    trace_dir: Path | None = None
    """Where traces are written; None uses a temporary folder."""
    echo: bool = False
    """Print events to stderr as they happen."""
    limits: Limits = field(default_factory=Limits)

    @property
    def cluster_named(self) -> bool:
        """Whether this run may touch a cluster at all."""
        return self.kubeconfig is not None or self.kube_context is not None
