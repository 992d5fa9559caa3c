"""Fixtures of the tests that need a real Kubernetes."""

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from realcluster import NoCluster, RealCluster, running_cluster

from mcp_ops.ops.context import ClusterAccess, OpsContext
from mcp_ops.ops.tools.cluster import find_kubectl
from mcp_ops.ops.workspace import Workspace


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker("real_k8s")


@pytest.fixture(scope="session")
def cluster() -> Iterator[RealCluster]:
    """A real cluster. Where there is none the test is skipped, or fails with REQUIRE_REAL_K8S=1."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        pytest.skip("one real cluster serves one process: run `make test-k8s-real`")
    try:
        with running_cluster() as started:
            yield started
    except NoCluster as error:
        if os.environ.get("REQUIRE_REAL_K8S") == "1":
            pytest.fail(str(error))
        pytest.skip(str(error))


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
