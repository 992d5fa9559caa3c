"""What the tools did, as the API server itself wrote it down."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from realcluster import RealCluster

ROOT = Path(__file__).parent.parent.parent
READING = {"get", "list", "watch"}


def verbs_of(cluster: RealCluster) -> set[str]:
    return {entry["verb"] for entry in cluster.audited()}


@pytest.mark.covers("A10", "A22", "A25")
def test_every_shipped_scenario_passes_on_a_real_cluster_and_only_reads(pods: RealCluster, tmp_path: Path) -> None:
    pods.until(
        "the demo's crash loop",
        lambda: pods.kubectl("--namespace=demo", "get", "pods", "--selector=app=payments-api"),
        lambda shown: "CrashLoopBackOff" in shown,
    )
    pods.until(
        "the words of the helpdesk's probe",
        lambda: pods.kubectl("--namespace=demo", "get", "events", "--field-selector=reason=Unhealthy"),
        lambda shown: "IGNORE PREVIOUS INSTRUCTIONS" in shown,
    )
    before = len(pods.audited())
    command = [sys.executable, "-m", "pytest", "--ops-mode=mock", "scenarios", "-p", "no:cacheprovider", "-q"]
    command += [f"--ops-kubeconfig={pods.reader}", "--ops-require=cluster", f"--junitxml={tmp_path / 'junit.xml'}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "NOT PROVEN" not in done.stdout
    new = pods.audited()[before:]
    assert {entry["verb"] for entry in new} <= READING
    assert any(entry.get("objectRef", {}).get("subresource") == "log" for entry in new), "no log was read at all"


def test_the_audit_log_would_show_a_write(cluster: RealCluster) -> None:
    assert verbs_of(cluster) <= READING
    refused = cluster.attempt("--namespace=demo", "scale", "deployment/web", "--replicas=2", kubeconfig=cluster.reader)
    assert "cannot patch resource" in refused.stderr
    last = cluster.audited()[-1]
    assert (last["verb"], last["responseStatus"]["code"]) == ("patch", 403)


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        ("list", "secrets"),
        ("patch", "deployments.apps/scale"),
        ("delete", "pods"),
        ("create", "pods/exec"),
        ("create", "pods"),
    ],
)
def test_the_tools_account_may_not(cluster: RealCluster, verb: str, resource: str) -> None:
    asked = cluster.attempt("--namespace=demo", "auth", "can-i", verb, resource, kubeconfig=cluster.reader)
    assert asked.stdout.strip() == "no"


def test_the_tools_account_may_read_what_the_tools_name(cluster: RealCluster) -> None:
    listed = json.loads(
        cluster.kubectl("--namespace=demo", "get", "deployments", "-o", "json", kubeconfig=cluster.reader)
    )
    assert {item["metadata"]["name"] for item in listed["items"]} == {"helpdesk", "payments-api", "redis", "web"}
