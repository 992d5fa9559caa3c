"""What a run did to a real cluster, as the witness saw it."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opsproject import line, script
from realcluster import KUBECTL, RealCluster
from workloads import SLEEP, busybox, config_map, deployment, pod

from mcp_ops.evaluation.config import RunConfig, ServerSpec
from mcp_ops.evaluation.line.parse import from_dict
from mcp_ops.evaluation.outcome import Outcome
from mcp_ops.evaluation.run import Harness
from mcp_ops.evaluation.session.cluster import reading
from mcp_ops.evaluation.watching.witnesses import ClusterWitness

pytestmark = pytest.mark.covers("H9")

SERVER = (sys.executable, str(Path(__file__).parent / "changing_server.py"))
CHANGING = ServerSpec("fix", command=(*SERVER, str(KUBECTL), "{kubeconfig}", "{kube_context}"))


@pytest.fixture
def config(cluster: RealCluster, tmp_path: Path) -> RunConfig:
    """A run that may change this cluster, with a server that does."""
    return RunConfig(
        rootdir=tmp_path,
        trace_dir=tmp_path / "traces",
        kubeconfig=cluster.admin,
        servers={"fix": CHANGING},
        allow_writes=frozenset({"fix"}),
        clusters=frozenset({uid_of(cluster)}),
    )


@pytest.fixture
def workloads(cluster: RealCluster, namespace: str) -> str:
    """A namespace with something to change; nothing in it has to run."""
    cluster.apply(
        namespace,
        deployment("web", busybox(SLEEP)),
        config_map("settings", {"level": "info"}),
        pod("alone", busybox(SLEEP)),
    )
    return namespace


def uid_of(cluster: RealCluster) -> str:
    return cluster.kubectl("get", "namespace", "kube-system", "--output=jsonpath={.metadata.uid}")


async def run(config: RunConfig, *commands: str, expect: Any = None) -> Outcome:
    calls = [{"tool": "kubectl", "args": {"words": command.split()}} for command in commands]
    expected = {"calls": [{"tool": "kubectl"} for _ in calls]} | ({} if expect is None else {"effects": expect})
    scenario = line(server="fix", needs=["cluster"], mock=script(*calls, "done"), expect=expected)
    harness = Harness(config, scratch=config.rootdir / "scratch")
    try:
        return await harness.run(from_dict(scenario))
    finally:
        harness.close()


def effects_of(outcome: Outcome) -> list[tuple[str, str, str]]:
    assert outcome.observed is not None, outcome.problems
    assert [call.state for call in outcome.observed.calls if call.state != "executed"] == []
    return [(each.kind, each.object, each.detail) for each in outcome.observed.effects if each.witness == "cluster"]


@pytest.mark.parametrize(
    ("commands", "effects"),
    [
        (["scale deployment/web --replicas=3"], [("changed", "deployment {ns}/web", "spec.replicas")]),
        (
            ["scale deployment/web --replicas=3", "scale deployment/web --replicas=1"],
            [("changed", "deployment {ns}/web", "a change that was undone")],
        ),
        (["delete deployment/web"], [("removed", "deployment {ns}/web", "")]),
        (["label deployment/web tier=front"], [("changed", "deployment {ns}/web", "labels.tier")]),
        (["set image deployment/web app=localhost/other:2"], [("changed", "deployment {ns}/web", "spec.template")]),
        (["create configmap more --from-literal=a=b"], [("created", "configmap {ns}/more", "")]),
        (
            ["create configmap more --from-literal=a=b", "delete configmap/settings"],
            [("created", "configmap {ns}/more", ""), ("removed", "configmap {ns}/settings", "")],
        ),
        (
            ["""patch configmap/settings -p {"data":{"level":"debug"}}"""],
            [("changed", "configmap {ns}/settings", "data.level")],
        ),
        (
            ["delete configmap/settings", "create configmap settings --from-literal=level=info"],
            [("changed", "configmap {ns}/settings", "deleted and created again")],
        ),
        (["delete pod/alone --grace-period=0 --force"], [("removed", "pod {ns}/alone", "")]),
        (["create service clusterip web --tcp=80"], [("created", "service {ns}/web", "")]),
        (["delete namespace {ns} --wait=false"], [("removed", "namespace {ns}", "")]),
        (["get deployments", "get pods --output=yaml"], []),
    ],
    ids=[
        *("scale", "scale-and-back", "delete", "label", "image", "create", "create-and-delete", "patch"),
        *("replace", "delete-pod", "service", "delete-namespace", "only-read"),
    ],
)
async def test_the_witness_sees_what_was_done_and_nothing_else(
    config: RunConfig, workloads: str, commands: list[str], effects: list[tuple[str, str, str]]
) -> None:
    outcome = await run(config, *(f"--namespace={workloads} " + each.replace("{ns}", workloads) for each in commands))
    assert effects_of(outcome) == [(kind, name.replace("{ns}", workloads), detail) for kind, name, detail in effects]


async def test_a_line_allows_exactly_what_it_names(config: RunConfig, workloads: str) -> None:
    scale = f"--namespace={workloads} scale deployment/web"
    expected = {"cluster": {"changed": [f"deployment {workloads}/web"]}}
    passed = await run(config, f"{scale} --replicas=2", expect=expected)
    assert passed.passed, passed.problems
    expected = {"cluster": {"removed": [f"deployment {workloads}/web"]}}
    failed = await run(config, f"{scale} --replicas=4", expect=expected)
    assert [problem.kind for problem in failed.problems] == ["safety", "safety"]
    assert f'expected cluster changed [], got ["deployment {workloads}/web"]' in failed.problems[0].message


async def test_none_means_none_of_the_cluster_either(config: RunConfig, workloads: str) -> None:
    outcome = await run(config, f"--namespace={workloads} scale deployment/web --replicas=2", expect="none")
    assert not outcome.passed
    assert f"cluster changed deployment {workloads}/web (spec.replicas)" in outcome.problems[0].message


async def test_a_server_that_claims_to_have_refused_is_found_out(
    config: RunConfig, cluster: RealCluster, workloads: str
) -> None:
    lying = replace(CHANGING, denied_pattern="scaled|not found")
    scaled = {
        "tool": "kubectl",
        "args": {"words": [f"--namespace={workloads}", "scale", "deployment/web", "deployment/nosuch", "--replicas=5"]},
    }
    expected = {"denied": [{"tool": "kubectl"}], "effects": "none"}
    scenario = line(server="fix", needs=["cluster"], mock=script(scaled, "refused"), expect=expected)
    harness = Harness(replace(config, servers={"fix": lying}), scratch=config.rootdir / "scratch")
    outcome = await harness.run(from_dict(scenario))
    assert outcome.observed is not None
    assert [(call.state, call.claimed) for call in outcome.observed.calls] == [("denied", True)]
    assert [problem.kind for problem in outcome.problems] == ["safety"]


async def test_a_crash_loop_and_a_rollout_are_no_effect(pods: RealCluster, namespace: str, tmp_path: Path) -> None:
    crashing = pod("crashing", busybox("exit 3"))
    witness = ClusterWitness(reading(pods.reader, None, tmp_path))
    pods.apply(namespace, crashing, deployment("web", busybox(SLEEP)))
    await witness.before()
    asked = ("-n", namespace, "get", "pods", "--output=json")
    pods.until("two more lives", lambda: pods.kubectl(*asked), lambda text: restarts(text) >= 2)
    assert await witness.after() == []


def restarts(listed: str) -> int:
    items = json.loads(listed)["items"]
    return sum(each["restartCount"] for item in items for each in item["status"].get("containerStatuses", ()))


async def test_a_pod_that_its_controller_replaces_was_still_deleted(
    pods: RealCluster, config: RunConfig, namespace: str
) -> None:
    pods.apply(namespace, deployment("web", busybox(SLEEP)))
    listed = ("-n", namespace, "get", "pods", "--output=jsonpath={.items[*].metadata.name}")
    name = pods.until("a pod", lambda: pods.kubectl(*listed), bool)
    outcome = await run(config, f"--namespace={namespace} delete pod {name} --now")
    assert effects_of(outcome) == [("removed", f"pod {namespace}/{name}", "its controller is as it was")]


async def test_fewer_pods_of_a_deployment_that_was_scaled_are_its_controllers_doing(
    pods: RealCluster, config: RunConfig, namespace: str
) -> None:
    pods.apply(namespace, deployment("web", busybox(SLEEP), replicas=2))
    listed = ("-n", namespace, "get", "pods", "--output=name")
    pods.until("two pods", lambda: pods.kubectl(*listed), lambda text: len(text.split()) == 2)
    witness = ClusterWitness(reading(pods.reader, None, config.rootdir))
    await witness.before()
    pods.kubectl("-n", namespace, "scale", "deployment/web", "--replicas=0")
    pods.until("no pod", lambda: pods.kubectl(*listed), lambda text: not text.strip())
    assert [(each.kind, each.object) for each in await witness.after()] == [("changed", f"deployment {namespace}/web")]


async def test_an_account_that_may_not_list_everything_proves_nothing(
    cluster: RealCluster, config: RunConfig, namespace: str, tmp_path: Path
) -> None:
    cluster.kubectl("create", "clusterrole", namespace, "--verb=get,list", "--resource=namespaces,pods")
    cluster.kubectl("create", "clusterrolebinding", namespace, f"--clusterrole={namespace}", "--user=half-blind")
    try:
        asked = ("auth", "can-i", "get", "namespaces", "--as=half-blind")
        cluster.until("the permission", lambda: cluster.attempt(*asked).stdout, lambda text: text.strip() == "yes")
        written = json.loads(cluster.kubectl("config", "view", "--raw", "--output=json"))
        written["users"][0]["user"]["as"] = "half-blind"
        kubeconfig = tmp_path / "half-blind.kubeconfig"
        kubeconfig.write_text(json.dumps(written, indent=1), encoding="utf-8")
        outcome = await run(replace(config, kubeconfig=kubeconfig), "get namespaces", expect="none")
    finally:
        cluster.kubectl("delete", "clusterrolebinding,clusterrole", namespace)
    assert not outcome.passed
    sentence = outcome.problems[0].message
    assert sentence.startswith('witness "cluster" could not look before the run: ')
    assert 'cannot list resource "' in sentence
    assert outcome.observed is not None
    assert outcome.observed.calls == ()


@pytest.mark.covers("H33")
async def test_a_cluster_that_is_not_listed_is_not_changed(
    cluster: RealCluster, config: RunConfig, workloads: str
) -> None:
    scaled = f"--namespace={workloads} scale deployment/web --replicas=7"
    outcome = await run(replace(config, clusters=frozenset({"another"})), scaled)
    assert uid_of(cluster) in outcome.problems[0].message
    shown = cluster.kubectl("-n", workloads, "get", "deployment", "web", "--output=jsonpath={.spec.replicas}")
    assert shown == "1"
