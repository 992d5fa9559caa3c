"""With what a run was made: versions, machine and commit, as short texts."""

import json
import os
import platform
import subprocess
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from mcp_ops.ops.tools.cluster import find_kubectl
from mcp_ops.servers.ops import children_network, describe_second_wall
from mcp_ops.text import one_line

PACKAGES = ("pytest-opsagent", "pytest", "mcp", "langgraph", "pydantic", "google-re2")
"""The distributions whose versions decide what a run means."""
SECONDS = 10
"""Wall clock of a question to kubectl."""


def versions(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Return the version of Python and of each distribution that is installed."""
    found = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def machine() -> dict[str, str]:
    """Return the kernel, and what it adds to the guards."""
    return {
        "kernel": one_line(f"{platform.system()} {platform.release()} {platform.machine()}"),
        "second_wall": one_line(describe_second_wall()),
        "children_network": one_line(children_network()),
    }


def kubectl_version(workspace: Path) -> str:
    """Ask the kubectl that runs use for its version. It is told of no cluster.

    Args:
        workspace: No kubectl inside it is started.
    """
    program = find_kubectl(workspace)
    if program is None:
        return "not installed"
    command = [str(program), "version", "--client", "--output=json"]
    alone = {"PATH": os.environ.get("PATH", ""), "KUBECONFIG": os.devnull, "KUBERC": "off"}
    try:
        answer = subprocess.run(
            command, env=alone, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=True
        )
        return one_line(str(json.loads(answer.stdout)["clientVersion"]["gitVersion"]), 60)
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return "unknown"
