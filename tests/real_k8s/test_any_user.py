"""The control plane as a user without any right, beside the session's cluster."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from calls import ask
from leftovers import alive
from realcluster import CACHE, KUBECTL, SCRIPTS, RealCluster

from mcp_ops.ops.context import ClusterAccess, OpsContext
from mcp_ops.ops.tools.kubectl import KUBECTL_GET
from mcp_ops.ops.workspace import Workspace

NOBODY = 65534
PYTHON = Path("/usr/bin/python3")
"""One that every user may run."""
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")


@pytest.fixture
def home(cluster: RealCluster) -> Iterator[Path]:
    """A folder of nobody's with a copy of the build, of the scripts and of kubectl in it."""
    if os.geteuid() != 0:
        pytest.skip("the session's own cluster is that of a user without rights")
    if not PYTHON.exists():
        pytest.skip(f"this machine has no {PYTHON}, and others may not run the Python of the tests")
    folder = Path(tempfile.mkdtemp(prefix="ops-any-user-"))
    try:
        for name in (*(f"bin/{program}" for program in PROGRAMS), "debian/usr/bin/etcd", "images/pause.tar"):
            (folder / "build" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CACHE / name, folder / "build" / name)
        (folder / "bin").mkdir()
        shutil.copy2(KUBECTL, folder / "bin" / "kubectl")
        shutil.copytree(SCRIPTS.parent, folder / "k3d", ignore=shutil.ignore_patterns("__pycache__"))
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
            os.chown(path, NOBODY, NOBODY)
        yield folder
    finally:
        shutil.rmtree(folder)


def script(home: Path, what: str) -> subprocess.CompletedProcess[str]:
    """Run the cluster's script as nobody, with nothing of this process' environment."""
    environment = {
        "PATH": f"{home / 'bin'}:/usr/bin:/bin",
        "HOME": str(home),
        "OPS_K8S_HOME": str(home / "build"),
        "OPS_K8S_RUN": str(home / "run"),
    }
    return subprocess.run(
        [str(PYTHON), str(home / "k3d" / "no-docker" / "cluster.py"), what],
        cwd=home,
        env=environment,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )


def owner(pid: int) -> int:
    return Path(f"/proc/{pid}").stat().st_uid


async def test_an_api_server_needs_no_root_and_says_that_no_pod_runs(home: Path, tmp_path: Path) -> None:
    started = script(home, "up")
    try:
        assert started.returncode == 0, started.stderr
        assert "node: does not run" in started.stdout
        pids = {file.name: int(file.read_text("utf-8").split()[0]) for file in (home / "run" / "pids").iterdir()}
        assert set(pids) == {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
        assert {owner(pid) for pid in pids.values()} == {NOBODY}

        access = ClusterAccess(home / "run" / "reader.kubeconfig", None, KUBECTL)
        context = OpsContext(Workspace(tmp_path), access, "", "")
        reply = await ask(KUBECTL_GET, context, {"resource": "deployments", "namespace": "demo"})
        assert reply.verdict == "executed"
        assert "payments-api" in reply.text
        denied = await ask(KUBECTL_GET, context, {"resource": "secrets"}, off=["kubectl.secret"])
        assert denied.verdict == "cluster.forbidden"
    finally:
        stopped = script(home, "down")
    assert stopped.returncode == 0, stopped.stderr
    assert not [name for name, pid in pids.items() if alive(pid)]
    assert not (home / "run").exists()
