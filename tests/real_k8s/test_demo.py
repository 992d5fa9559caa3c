"""The demo, on a real cluster that nobody named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from realcluster import RealCluster

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.covers("A22", "A24")
def test_the_demo_finds_the_demo_cluster_and_says_which_it_is(pods: RealCluster, tmp_path: Path) -> None:
    pods.until(
        "the demo's crash loop",
        lambda: pods.kubectl("--namespace=demo", "get", "pods", "--selector=app=payments-api"),
        lambda shown: "CrashLoopBackOff" in shown,
    )
    command = [sys.executable, "-m", "mcp_ops.cli", "demo", "--runs", str(tmp_path / "runs")]
    command += ["-o", str(tmp_path / "demo.html")]
    environment = {**os.environ, "OPS_DEMO_STATE": str(tmp_path / "none"), "OPS_K8S_RUN": str(pods.run)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "what comes from a cluster is real: context no-docker-ops-demo, Kubernetes v1.20.2, uid " in done.stderr
    page = (tmp_path / "demo.html").read_text(encoding="utf-8")
    assert "FATAL payments-api cannot start" in page
    assert "cluster_unavailable" not in page
