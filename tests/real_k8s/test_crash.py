"""A test run that is killed leaves a cluster behind, and the next run takes it away."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from leftovers import alive, processes_with
from realcluster import TEST_RUN, RealCluster, running_cluster

TESTS = Path(__file__).parent.parent
BRIDGE = Path("/sys/class/net/opsk8s0")
HANGING = textwrap.dedent("""
    import signal

    def test_that_never_ends(cluster):
        cluster.kubectl("create", "namespace", "left-behind")
        print("\\nup", flush=True)
        signal.pause()
""")


@pytest.fixture
def killed(before_the_cluster: None, tmp_path: Path) -> dict[int, str]:
    """The processes that a pytest left behind which was killed, by SIGKILL, while a test used its cluster."""
    suite = tmp_path / "test_hanging.py"
    suite.write_text(HANGING, encoding="utf-8")
    (tmp_path / "conftest.py").write_text("from real_k8s.conftest import cluster\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", str(suite)]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    child = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        said = []
        while (line := child.stdout.readline()) not in ("up\n", ""):
            said.append(line)
        assert line, "".join(said)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
    return processes_of_a_cluster()


def processes_of_a_cluster() -> dict[int, str]:
    """What was started for the tests' cluster."""
    return processes_with(str(TEST_RUN))


def numbers() -> set[int]:
    """What the pid files of the tests' cluster name."""
    return {int(file.read_text(encoding="utf-8").split()[0]) for file in (TEST_RUN / "pids").iterdir()}


def test_the_next_run_stops_what_a_killed_one_left_and_starts_anew(killed: dict[int, str]) -> None:
    before = numbers()
    assert len(before) == (5 if os.geteuid() == 0 else 4)
    assert all(alive(number) for number in before), "nothing outlived the run that was killed"
    assert any("kube-apiserver" in words for words in killed.values())

    with running_cluster() as cluster:
        assert not [number for number in before if alive(number)]
        assert not killed.keys() & processes_of_a_cluster().keys()
        assert_new(cluster)

    assert processes_of_a_cluster() == {}
    assert not TEST_RUN.exists()
    assert not BRIDGE.exists()


def assert_new(cluster: RealCluster) -> None:
    """The cluster is not the one that was left behind: it knows nothing of what was made there."""
    assert cluster.attempt("get", "namespace", "left-behind").stderr.startswith("Error from server (NotFound)")
    assert cluster.kubectl("get", "namespace", "demo", "--output=name") == "namespace/demo\n"
