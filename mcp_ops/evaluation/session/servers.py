"""From the names in a line to servers that can be connected to. Only the configuration says what a name means."""

import difflib
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp.server import MCPServer
from mcp.server.lowlevel import Server

from mcp_ops.evaluation.config import GITHUB_SERVER, OPS_SERVER, OWN_SERVERS, RunConfig, ServerSpec, Transport
from mcp_ops.evaluation.matching.patterns import BadPattern, compiled
from mcp_ops.evaluation.session.cluster import Cluster
from mcp_ops.evaluation.session.connection import ServerTarget
from mcp_ops.evaluation.session.extending import extension_of
from mcp_ops.evaluation.session.http import HttpServer
from mcp_ops.evaluation.session.loading import SetupError, called, described, load
from mcp_ops.evaluation.session.stdio import StdioServer
from mcp_ops.gate import AuditRecord, Refuse, Rule
from mcp_ops.servers import ops
from mcp_ops.servers.rules import OWN_RULES

if TYPE_CHECKING:
    from mcp_ops.evaluation.world.github import GitHubWorld


def own_rules(names: Iterable[str]) -> dict[str, Rule]:
    """Return the rules of those servers among `names` that ship here, by name."""
    return {rule.name: rule for name in names for rule in OWN_RULES.get(name, ())}


class UnknownServer(SetupError):
    """A line names a server that is not configured."""


async def server_targets(
    names: Sequence[str],
    config: RunConfig,
    workspace: Path,
    *,
    cluster: Cluster | None,
    end_group: Callable[[int], None],
    refuse: Refuse | None = None,
    github: "GitHubWorld | None" = None,
) -> list[ServerTarget]:
    """Prepare the servers of a line for one run; nothing is started yet, but factories are called.

    Args:
        names: The names, in the line's order.
        config: What each name means, and what may write.
        workspace: The copy that the servers work in.
        cluster: The cluster that this run may touch.
        end_group: What to do with the process group of a server once the server itself has ended.
        refuse: How the rules of our own servers in this process say no; by default every rule is on.
        github: What the server github looks at. Whoever names that server has one.

    Raises:
        UnknownServer: A name is not configured.
        SetupError: A server may not start, or cannot be made.
    """
    targets = []
    for name in names:
        if name == OPS_SERVER:
            targets.append(_ops(config, workspace, cluster, end_group, refuse))
        elif name == GITHUB_SERVER and github is not None:
            targets.append(_github(config, workspace, github, end_group, refuse))
        else:
            spec = _spec(name, config, cluster)
            targets.append(await _foreign(spec, config, workspace, cluster, end_group))
    return targets


def _spec(name: str, config: RunConfig, cluster: Cluster | None) -> ServerSpec:
    spec = config.servers.get(name)
    known = (*OWN_SERVERS, *config.servers)
    if spec is None:
        near = difflib.get_close_matches(name, known, n=1)
        guess = f'did you mean "{near[0]}"?' if near else f"configured are {', '.join(known)}"
        raise UnknownServer(f'server "{name}" is not configured; {guess}')
    if "." in name:
        raise SetupError(f'server "{name}": write a name without a dot; a tool of two servers is called server.tool')
    if spec.mutating and name not in config.allow_writes:
        raise SetupError(
            f'server "{name}" can change things, so it starts only with --ops-allow-writes={name}; '
            f"if all its tools only read, say `{name}.mutating = false` in ops_servers"
        )
    if spec.mutating and cluster is not None:
        _check_writes(name, cluster, config.clusters)
    return spec


def _check_writes(name: str, cluster: Cluster, allowed: frozenset[str]) -> None:
    """Refuse a server that can change things in a run that may touch a cluster which is not listed for that.

    Raises:
        SetupError: It is not listed, or did not say which one it is.
    """
    if cluster.uid is None:
        plain = f'server "{name}" can change things, and {cluster.name} did not say which cluster it is'
        raise SetupError(f"{plain}: {cluster.reason}", plain=plain)
    if cluster.uid not in allowed:
        raise SetupError(
            f'server "{name}" can change things, and the cluster {cluster.name} is none of those that may be changed; '
            f"if it is one for tests, add the line {cluster.uid} to ops_clusters in the ini file"
        )


def _ops(
    config: RunConfig,
    workspace: Path,
    cluster: Cluster | None,
    end_group: Callable[[int], None],
    refuse: Refuse | None,
) -> ServerTarget:
    extension = extension_of(config)
    kubeconfig, context = (cluster.kubeconfig, cluster.context) if cluster is not None else (None, None)
    if config.transport != "memory":
        words = ["--workspace", str(workspace)]
        words += ["--kubeconfig", str(kubeconfig)] if kubeconfig is not None else []
        words += ["--kube-context", context] if context is not None else []
        words += ["--guards", str(config.guards.absolute())] if config.guards is not None else []
        child = _child(OPS_SERVER, words, config.transport, _environment(), workspace, end_group)
        return ServerTarget(OPS_SERVER, child, own=True, read_only=True)
    audit: list[AuditRecord] = []
    return ServerTarget(
        OPS_SERVER,
        ops.create_server(
            workspace,
            kubeconfig=kubeconfig,
            kube_context=context,
            audit=audit.append,
            refuse=refuse,
            extension=extension,
        ),
        own=True,
        audit=audit,
        tools=tuple(tool.definition for tool in ops.tools_with(extension)),
        read_only=True,
    )


def _github(
    config: RunConfig,
    workspace: Path,
    github: "GitHubWorld",
    end_group: Callable[[int], None],
    refuse: Refuse | None,
) -> ServerTarget:
    if config.transport != "memory":
        environment = _environment() | github.environment
        child = _child(GITHUB_SERVER, (), config.transport, environment, workspace, end_group)
        return ServerTarget(GITHUB_SERVER, child, own=True, seen=True)
    from mcp_ops.github.watchlist import Watchlist
    from mcp_ops.servers.github import TOOLS, create_server

    audit: list[AuditRecord] = []
    return ServerTarget(
        GITHUB_SERVER,
        create_server(
            github.client,
            Watchlist.of(github.watch),
            write_repos=Watchlist.of(github.write),
            audit=audit.append,
            refuse=refuse,
        ),
        own=True,
        audit=audit,
        tools=tuple(tool.definition for tool in TOOLS),
        seen=True,
    )


def _child(
    name: str,
    words: Sequence[str],
    transport: Transport,
    environment: Mapping[str, str],
    workspace: Path,
    end_group: Callable[[int], None],
) -> StdioServer | HttpServer:
    """Return one of our servers as a child process, which is reached over stdio or HTTP."""
    command = [sys.executable, "-P", "-m", "mcp_ops.cli", "serve", name, *words]
    if transport == "stdio":
        return StdioServer(command, env=environment, cwd=workspace, end_group=end_group)
    return HttpServer([*command, "--http", "--port", "0"], env=environment, cwd=workspace, end_group=end_group)


async def _foreign(
    spec: ServerSpec,
    config: RunConfig,
    workspace: Path,
    cluster: Cluster | None,
    end_group: Callable[[int], None],
) -> ServerTarget:
    pattern = _denied_pattern(spec)
    roots = workspace if "roots" in spec.grants else None
    if spec.factory is not None:
        server = await _made(spec.name, spec.factory, config.rootdir, workspace)
        return ServerTarget(spec.name, server, denied_pattern=pattern, read_only=not spec.mutating, roots=roots)
    if not spec.command:
        raise SetupError(f'server "{spec.name}" has neither a command nor a factory')
    names_cluster = any("{kubeconfig}" in word for word in spec.command)
    command = _filled(spec, {"{workspace}": str(workspace), **_cluster_words(spec, cluster)})
    started = StdioServer(command, env=_environment(), cwd=config.rootdir, end_group=end_group)
    return ServerTarget(
        spec.name,
        started,
        denied_pattern=pattern,
        read_only=not spec.mutating,
        watched=roots is not None or names_cluster or any("{workspace}" in word for word in spec.command),
        roots=roots,
    )


def _filled(spec: ServerSpec, words: Mapping[str, str]) -> list[str]:
    """Return the command with its placeholders filled in, each of them once: what is put in is not read again."""
    pattern = re.compile("|".join(map(re.escape, words)))
    return [pattern.sub(lambda found: words[found[0]], word) for word in spec.command]


def _cluster_words(spec: ServerSpec, cluster: Cluster | None) -> dict[str, str]:
    """Return what stands for the named cluster in a command.

    Raises:
        SetupError: The command wants a cluster and the run has none, or it would not get the context that was named.
    """
    asked = {word for word in ("{kubeconfig}", "{kube_context}") if any(word in each for each in spec.command)}
    if not asked:
        return {}
    if cluster is None:
        raise SetupError(
            f'server "{spec.name}": its command says {min(asked)}, and this run uses no cluster; '
            'give the line "needs": ["cluster"], and name the cluster with --ops-kubeconfig'
        )
    if cluster.context is not None and "{kube_context}" not in asked:
        raise SetupError(
            f'server "{spec.name}": its command says {{kubeconfig}} only, so it would use another context than '
            f"{cluster.name}, which was named; write {{kube_context}} into it too"
        )
    return {"{kubeconfig}": str(cluster.kubeconfig), "{kube_context}": cluster.name}


async def _made(name: str, named: str, rootdir: Path, workspace: Path) -> Server[Any] | MCPServer:
    factory = load(f'server "{name}"', named, rootdir)
    try:
        server = await called(factory, workspace)
    except (Exception, SystemExit) as error:
        plain = f'server "{name}": {named} failed'
        raise SetupError(f"{plain}: {described(error)}", plain=plain) from error
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
