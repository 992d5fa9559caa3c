"""What counts as a change of a cluster's objects, and what its controllers write by themselves."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from apidouble import ClusterDouble, serving, write_kubeconfig

from mcp_ops.evaluation.session.cluster import reading
from mcp_ops.evaluation.watching.witnesses import ClusterWitness, cluster
from mcp_ops.evaluation.watching.witnesses.objects import Difference, compare, objects_of

pytestmark = pytest.mark.covers("H9")


def item(kind: str, name: str, *, namespace: str | None = "demo", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "uid": f"{kind}-{name}", "resourceVersion": "1", **more.pop("metadata", {})}
    place = {} if namespace is None else {"namespace": namespace}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata | place, **more}


def owned(kind: str, name: str, by: str) -> dict[str, Any]:
    reference = {"kind": by, "name": "web", "uid": f"{by}-web", "controller": True}
    return item(kind, name, metadata={"ownerReferences": [reference]})


def differences(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[Difference]:
    return compare(objects_of(before), objects_of(after))


def changed(kind: str, before: dict[str, Any], after: dict[str, Any]) -> list[Difference]:
    return differences([item(kind, "web", **before)], [item(kind, "web", **after)])


LEADER = {"control-plane.alpha.kubernetes.io/leader": "b"}


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("Deployment", {"status": {"replicas": 1}}, {"status": {"replicas": 0}}),
        ("Pod", {"spec": {"containers": []}}, {"spec": {"containers": [], "nodeName": "n1"}}),
        ("PersistentVolumeClaim", {"spec": {}}, {"spec": {"volumeName": "pv-1"}}),
        ("Service", {}, {"metadata": {"resourceVersion": "9"}}),
        ("Deployment", {}, {"metadata": {"annotations": {"deployment.kubernetes.io/revision": "2"}}}),
        (
            "ConfigMap",
            {"metadata": {"annotations": LEADER}},
            {"metadata": {"annotations": dict.fromkeys(LEADER, "c"), "resourceVersion": "2"}},
        ),
    ],
    ids=["status", "node", "volume", "version", "revision", "leader"],
)
def test_what_controllers_write_is_no_change(kind: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    assert changed(kind, before, after) == []
    labelled = {**after, "metadata": {**after.get("metadata", {}), "labels": {"tier": "front"}}}
    assert [found.detail for found in changed(kind, before, labelled)] == ["labels.tier"]


def test_a_change_is_told_by_its_fields_and_never_by_its_values() -> None:
    before, after = {"data": {"password": "old-value", "level": "info"}}, {"data": {"password": "new-value"}}
    found = changed("ConfigMap", before, after)
    assert found == [Difference("changed", "configmap demo/web", "data.level, data.password")]


def test_of_many_fields_the_first_are_told() -> None:
    after = {"data": {f"key-{number}": "v" for number in range(9)}}
    assert changed("ConfigMap", {"data": {}}, after)[0].detail.endswith("data.key-5 and 3 more")


@pytest.mark.parametrize(("kind", "field"), [("Deployment", "generation"), ("ConfigMap", "resourceVersion")])
def test_a_change_that_was_undone_left_its_mark(kind: str, field: str) -> None:
    found = changed(kind, {"metadata": {field: "4"}}, {"metadata": {field: "6"}})
    assert [each.detail for each in found] == ["a change that was undone"]


def test_an_object_of_the_same_name_is_not_the_same_object() -> None:
    found = changed("Service", {}, {"metadata": {"uid": "another"}})
    assert found == [Difference("changed", "service demo/web", "deleted and created again")]


def test_what_is_being_deleted_is_gone() -> None:
    leaving = item("Service", "web", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert differences([item("Service", "web")], [leaving]) == [Difference("removed", "service demo/web", "")]
    assert differences([leaving], []) == []


def test_what_goes_with_its_namespace_is_not_listed_beside_it() -> None:
    demo, web = item("Namespace", "demo", namespace=None), item("Service", "web")
    leaving = item("Namespace", "demo", namespace=None, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    gone = [Difference("removed", "namespace demo", "")]
    assert differences([demo, web], [leaving, web]) == gone
    assert differences([demo, web], []) == gone
    assert differences([leaving, web], [leaving]) == []


def test_what_a_controller_publishes_or_cleans_up_is_not_looked_at() -> None:
    short = item("Job", "short", spec={"ttlSecondsAfterFinished": 5})
    assert differences([short], [item("ConfigMap", "kube-root-ca.crt")]) == []
    assert len(differences([item("Job", "long", spec={})], [item("ConfigMap", "mine")])) == 2


def test_what_a_controller_owns_comes_and_goes() -> None:
    assert differences([owned("ReplicaSet", "web-1", "Deployment")], [owned("ReplicaSet", "web-2", "Deployment")]) == []


@pytest.mark.parametrize(("kind", "by"), [("Pod", "Deployment"), ("Deployment", "App"), ("ConfigMap", "ReplicaSet")])
def test_who_names_an_owner_that_makes_no_such_thing_hides_nothing(kind: str, by: str) -> None:
    assert [each.kind for each in differences([], [owned(kind, "mine", by)])] == ["created"]


def test_a_job_that_somebody_made_of_a_cron_job_is_seen() -> None:
    job = owned("Job", "now", "CronJob")
    assert differences([], [job]) == []
    job["metadata"]["annotations"] = {"cronjob.kubernetes.io/instantiate": "manual"}
    assert differences([], [job]) == [Difference("created", "job demo/now", "")]


def test_a_pod_is_missed_while_its_controller_is_as_it_was() -> None:
    pod, keeper = owned("Pod", "web-1", "ReplicaSet"), item("ReplicaSet", "web")
    missed = [Difference("removed", "pod demo/web-1", "its controller is as it was")]
    assert differences([pod, keeper], [owned("Pod", "web-2", "ReplicaSet"), keeper]) == missed
    scaled = item("ReplicaSet", "web", metadata={"generation": 2}, spec={"replicas": 0})
    assert [each.title for each in differences([pod, keeper], [scaled])] == ["replicaset demo/web"]
    assert [each.title for each in differences([pod, keeper], [])] == ["replicaset demo/web"]
    assert differences([{**pod, "status": {"phase": "Failed"}}, keeper], [keeper]) == []
    of_a_job = owned("Pod", "job-1", "Job")
    assert differences([of_a_job, item("Job", "web")], [item("Job", "web")]) == []


def test_a_pod_that_its_controller_lost_was_changed() -> None:
    pod = owned("Pod", "web", "ReplicaSet")
    assert [each.detail for each in differences([pod], [item("Pod", "web")])] == ["owner"]


@pytest.mark.parametrize("broken", [{}, {"kind": "Pod"}, {"kind": "Pod", "metadata": {"name": "web"}}])
def test_what_is_no_object_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(KeyError):
        objects_of([broken])


async def test_a_cluster_with_too_much_in_it_is_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(ClusterDouble()) as double:
        witness = ClusterWitness(reading(write_kubeconfig(tmp_path, double.url), None, tmp_path))
        await witness.before()
        assert await witness.after() == []
        monkeypatch.setattr(cluster, "_LIMITS", replace(cluster._LIMITS, read_bytes=20, kept_bytes=20))
        with pytest.raises(cluster.CannotLook, match="its objects are more than 67,108,864 bytes"):
            await witness.after()
