"""Fixtures of the tests that need a real Kubernetes."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from realcluster import NoCluster, RealCluster, need_build, running_cluster

from mcp_ops.ops.context import ClusterAccess, OpsContext
from mcp_ops.ops.tools.cluster import find_kubectl
from mcp_ops.ops.workspace import Workspace

BEFORE_THE_CLUSTER = "before_the_cluster"
_RUNS: list[RealCluster] = []
"""The session's cluster, while it runs."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker("real_k8s")
    # A machine has room for one cluster with pods, and the session's stays to the end.
    items.sort(key=lambda item: BEFORE_THE_CLUSTER not in getattr(item, "fixturenames", ()))


@contextmanager
def or_no_test() -> Iterator[None]:
    """Where there is no real cluster the test is skipped, or fails with REQUIRE_REAL_K8S=1."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        pytest.skip("one real cluster serves one process: run `make test-k8s-real`")
    try:
        yield
    except NoCluster as error:
        if os.environ.get("REQUIRE_REAL_K8S") == "1":
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def cluster() -> Iterator[RealCluster]:
    """A real cluster."""
    with or_no_test(), running_cluster() as started:
        _RUNS.append(started)
        yield started
        _RUNS.remove(started)


@pytest.fixture
def before_the_cluster() -> None:
    """What a test asks for that starts clusters itself. It runs before the others."""
    with or_no_test():
        need_build()
    assert _RUNS == [], "the session's cluster runs already, and one machine has room for one"


@pytest.fixture
def pods(cluster: RealCluster) -> RealCluster:
    """A real cluster whose pods run."""
    if not cluster.has_node:
        pytest.skip("pods need root; only the API server runs here")
    return cluster


@pytest.fixture
def namespace(cluster: RealCluster) -> Iterator[str]:
    """A namespace of the test's own."""
    name = f"t-{secrets.token_hex(4)}"
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def context(cluster: RealCluster, tmp_path: Path) -> OpsContext:
    """What the tools of the ops server get: an empty workspace, and the cluster by the tools' account."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return OpsContext(Workspace(workspace), ClusterAccess(cluster.reader, None, find_kubectl(workspace, None)), "", "")
