"""Running the real kubectl: found once, started with a fixed argv, and its failures told apart."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mcp_ops.gate import TIME_LIMIT, TOOL_ERROR, Result, Rule, stopped
from mcp_ops.ops.context import ClusterAccess, OpsContext
from mcp_ops.ops.redaction import redact_text
from mcp_ops.ops.rules import (
    CLUSTER_CONTEXT_MISSING,
    CLUSTER_ERROR,
    CLUSTER_FORBIDDEN,
    CLUSTER_KUBECONFIG_MISSING,
    CLUSTER_KUBECTL_MISSING,
    CLUSTER_NOT_FOUND,
    CLUSTER_TLS,
    CLUSTER_UNAUTHORIZED,
    CLUSTER_UNAVAILABLE,
)
from mcp_ops.ops.tools.child import Command, Ended, Limits, run_child
from mcp_ops.text import clean, one_line

SECONDS = 9.5
"""Wall clock of one kubectl. Its own --request-timeout is no bound: discovery is tried five times."""
REQUEST_TIMEOUT = "5s"
READ_BYTES = 4 * 1024 * 1024
"""Most output of one kubectl; more than this ends it."""

_LIMITS = Limits(
    seconds=SECONDS,
    read_bytes=READ_BYTES,
    kept_bytes=READ_BYTES,
    memory_bytes=None,
    written_bytes=None,
    processes=None,
)
_CURRENT_CONTEXT = re.compile(r"""^[ \t{]*["']?current-context["']?[ \t]*:[ \t]*["']?([^\s"',}]+)""", re.MULTILINE)
_KLOG = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ .*")

_FAILURES: tuple[tuple[Rule, re.Pattern[str]], ...] = tuple(
    (rule, re.compile(pattern, re.IGNORECASE))
    for rule, pattern in (
        (CLUSTER_CONTEXT_MISSING, r"context was not found for specified context|context .{0,300} does not exist"),
        (CLUSTER_KUBECONFIG_MISSING, r"error loading config file|invalid configuration"),
        (CLUSTER_FORBIDDEN, r"^(error: )?error from server \(forbidden\)"),
        (CLUSTER_NOT_FOUND, r"^(error: )?error from server \(notfound\)|the server doesn't have a resource type"),
        (CLUSTER_UNAUTHORIZED, r"\(unauthorized\)|provide credentials|must be logged in|getting credentials"),
        (CLUSTER_ERROR, r"^(error: )?error from server(: | \(internalerror\))"),
        (CLUSTER_UNAVAILABLE, r"tls handshake timeout|currently unable to handle the request"),
        (CLUSTER_UNAVAILABLE, r"\((serviceunavailable|timeout|servertimeout|toomanyrequests)\)"),
        (CLUSTER_TLS, r"x509:|\btls: |certificate|http response to https client|http request to an https server"),
        (CLUSTER_UNAVAILABLE, r"connection to the server .{0,300} was refused|unable to connect to the server"),
        (CLUSTER_UNAVAILABLE, r"i/o timeout|deadline exceeded|client\.timeout|no route to host|\beof$"),
    )
)


def find_kubectl(workspace: Path, explicit: Path | None = None) -> Path | None:
    """Return the absolute path of kubectl: the one given, else the first on PATH that lies outside the workspace."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    on_path = [folder / "kubectl" for folder in folders if folder.is_absolute()]
    for candidate in on_path if explicit is None else [explicit.absolute()]:
        inside = any(path.is_relative_to(workspace) for path in (candidate, candidate.resolve()))
        # Not Path.is_file, which raises for a folder of PATH that this user may not enter.
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK) and not inside:  # noqa: PTH113
            return candidate
    return None


def environment() -> Mapping[str, str]:
    """Return the environment of kubectl: nothing but what a credential program of the kubeconfig needs to be found."""
    own = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**own, "KUBERC": "off"}


async def run_kubectl(
    context: OpsContext, arguments: Sequence[str], *, seconds: float = SECONDS, limits: Limits | None = None
) -> Ended | Result:
    """Run kubectl against the named cluster, or say why that cannot be.

    Args:
        context: Names the cluster.
        arguments: Verb, flags and, behind `--`, checked operands.
        seconds: How long it may take.
        limits: What it may use otherwise; by default what a tool's kubectl may.
    """
    access = context.cluster
    if access is None:
        return stopped(CLUSTER_UNAVAILABLE, context.cluster_reason)
    if access.kubectl is None:
        return stopped(CLUSTER_KUBECTL_MISSING, "there is no kubectl on the server's PATH")
    kube_context = _context_name(access)
    if isinstance(kube_context, Result):
        return kube_context
    command = Command(
        program=access.kubectl,
        arguments=(
            f"--kubeconfig={access.kubeconfig}",
            f"--context={kube_context}",
            f"--cache-dir={os.devnull}",
            f"--request-timeout={REQUEST_TIMEOUT}",
            *arguments,
        ),
        folder=Path("/"),
        environment=environment(),
        network=True,
        limits=replace(limits or _LIMITS, seconds=seconds),
    )
    try:
        ended = await run_child(command)
    except OSError as error:
        return stopped(
            CLUSTER_KUBECTL_MISSING, f"kubectl could not be started: {os.strerror(error.errno or 0).lower()}"
        )
    return failure_of(ended, access, seconds) or ended


def _context_name(access: ClusterAccess) -> str | Result:
    """Return the context to name. Without one kubectl would turn to localhost:8080, which nobody named."""
    try:
        text = access.kubeconfig.read_text("utf-8", "replace")
    except OSError as error:
        return stopped(
            CLUSTER_KUBECONFIG_MISSING, f"the kubeconfig cannot be read: {os.strerror(error.errno or 0).lower()}"
        )
    if access.context is not None:
        return access.context
    current = _CURRENT_CONTEXT.search(text)
    if current is None:
        return stopped(CLUSTER_CONTEXT_MISSING, "the kubeconfig names no current context and none was given")
    return current[1]


def failure_of(ended: Ended, access: ClusterAccess, seconds: float = SECONDS) -> Result | None:
    """Return the failure that kubectl's end stands for, or None when it did its work, whatever its exit code."""
    if ended.timed_out:
        if ended.stdout:
            return stopped(TIME_LIMIT, f"kubectl did not finish within {seconds:.3g} s")
        return stopped(CLUSTER_UNAVAILABLE, f"the API server did not answer within {seconds:.3g} s")
    if ended.exit_code == 0 or ended.flooded:
        return None
    if ended.signal is not None:
        return stopped(TOOL_ERROR, f"kubectl was ended by signal {ended.signal}")
    for rule, pattern in _FAILURES:
        said = next(filter(pattern.search, _said(ended)), None)
        if said is not None:
            return stopped(rule, _shown(said.replace(str(access.kubeconfig), "the kubeconfig")))
    return None


def error_message(ended: Ended) -> str:
    """Return what kubectl said on stderr on one line, with credentials hidden."""
    return _shown(" ".join(reversed(_said(ended))))


def _said(ended: Ended) -> list[str]:
    """Return the lines of stderr without kubectl's own log lines, the last, which sums up, first."""
    lines = clean(ended.stderr.decode("utf-8", "replace")).splitlines()
    return [line.strip() for line in reversed(lines) if line.strip() and not _KLOG.fullmatch(line)]


def _shown(said: str) -> str:
    return one_line(redact_text(said), 400)
