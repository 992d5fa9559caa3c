"""From the names in a line to servers that can be connected to. Only the configuration says what a name means."""

import difflib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp.server.lowlevel import Server

from mcp_ops.evaluation.config import OPS_SERVER, RunConfig, ServerSpec
from mcp_ops.evaluation.matching.patterns import BadPattern, compiled
from mcp_ops.evaluation.session.cluster import Cluster
from mcp_ops.evaluation.session.connection import ServerTarget
from mcp_ops.evaluation.session.loading import SetupError, called, described, load
from mcp_ops.evaluation.session.stdio import StdioServer
from mcp_ops.gate import AuditRecord
from mcp_ops.servers import ops


class UnknownServer(SetupError):
    """A line names a server that is not configured."""


async def server_targets(
    names: Sequence[str],
    config: RunConfig,
    workspace: Path,
    *,
    cluster: Cluster | None,
    end_group: Callable[[int], None],
) -> list[ServerTarget]:
    """Prepare the servers of a line for one run; nothing is started yet, but factories are called.

    Args:
        names: The names, in the line's order.
        config: What each name means, and what may write.
        workspace: The copy that the servers work in.
        cluster: The cluster that this run may touch.
        end_group: What to do with the process group of a server once the server itself has ended.

    Raises:
        UnknownServer: A name is not configured.
        SetupError: A server may not start, or cannot be made.
    """
    return [
        _ops(config, workspace, cluster, end_group)
        if name == OPS_SERVER
        else await _foreign(_spec(name, config), config, workspace, end_group)
        for name in names
    ]


def _spec(name: str, config: RunConfig) -> ServerSpec:
    spec = config.servers.get(name)
    known = (OPS_SERVER, *config.servers)
    if spec is None:
        near = difflib.get_close_matches(name, known, n=1)
        guess = f'did you mean "{near[0]}"?' if near else f"configured are {', '.join(known)}"
        raise UnknownServer(f'server "{name}" is not configured; {guess}')
    if spec.mutating and name not in config.allow_writes:
        raise SetupError(
            f'server "{name}" can change things, so it starts only with --ops-allow-writes={name}; '
            f"if all its tools only read, say `{name}.mutating = false` in ops_servers"
        )
    return spec


def _ops(config: RunConfig, workspace: Path, cluster: Cluster | None, end_group: Callable[[int], None]) -> ServerTarget:
    kubeconfig, context = (cluster.kubeconfig, cluster.context) if cluster is not None else (None, None)
    if config.transport == "stdio":
        command = [sys.executable, "-m", "mcp_ops.cli", "serve", OPS_SERVER, "--workspace", str(workspace)]
        command += ["--kubeconfig", str(kubeconfig)] if kubeconfig is not None else []
        command += ["--kube-context", context] if context is not None else []
        server = StdioServer(command, env=_environment(), cwd=workspace, end_group=end_group)
        return ServerTarget(OPS_SERVER, server, own=True, read_only=True)
    audit: list[AuditRecord] = []
    return ServerTarget(
        OPS_SERVER,
        ops.create_server(workspace, kubeconfig=kubeconfig, kube_context=context, audit=audit.append),
        own=True,
        audit=audit,
        tools=tuple(tool.definition for tool in ops.TOOLS),
        read_only=True,
    )


async def _foreign(
    spec: ServerSpec, config: RunConfig, workspace: Path, end_group: Callable[[int], None]
) -> ServerTarget:
    pattern = _denied_pattern(spec)
    if spec.factory is not None:
        server = await _made(spec.name, spec.factory, config.rootdir, workspace)
        return ServerTarget(spec.name, server, denied_pattern=pattern, read_only=not spec.mutating)
    if not spec.command:
        raise SetupError(f'server "{spec.name}" has neither a command nor a factory')
    command = [word.replace("{workspace}", str(workspace)) for word in spec.command]
    started = StdioServer(command, env=_environment(), cwd=config.rootdir, end_group=end_group)
    watched = any("{workspace}" in word for word in spec.command)
    return ServerTarget(spec.name, started, denied_pattern=pattern, read_only=not spec.mutating, watched=watched)


async def _made(name: str, named: str, rootdir: Path, workspace: Path) -> Server[Any] | MCPServer:
    factory = load(f'server "{name}"', named, rootdir)
    try:
        server = await called(factory, workspace)
    except (Exception, SystemExit) as error:
        raise SetupError(f'server "{name}": {named} failed: {described(error)}') from error
    if not isinstance(server, Server | MCPServer):
        raise SetupError(f'server "{name}": {named} returned {type(server).__name__}, which is no MCP server')
    return server


def _denied_pattern(spec: ServerSpec) -> Any:
    try:
        return None if spec.denied_pattern is None else compiled(spec.denied_pattern)
    except BadPattern as error:
        raise SetupError(f'server "{spec.name}": its denied pattern is no RE2 pattern: {error}') from None


def _environment() -> dict[str, str]:
    """The whole environment of a server that is started: no key and no token of ours reaches it."""
    return {"PATH": os.environ.get("PATH", os.defpath)}
