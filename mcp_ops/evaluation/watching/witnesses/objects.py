"""The objects of a Kubernetes cluster at one moment, and how two moments differ.

A difference is what somebody wrote. What controllers, scheduler and kubelet write by themselves is none: status, the
objects that a controller owns, their bookkeeping in annotations.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from mcp_ops.text import one_line

_BOOKKEEPING = (
    "autoscaling.alpha.kubernetes.io/",
    "control-plane.alpha.kubernetes.io/",
    "deployment.kubernetes.io/",
    "pv.kubernetes.io/",
    "volume.beta.kubernetes.io/",
    "volume.kubernetes.io/",
)
"""Annotations that begin like this are written by controllers."""
_LEADER = "control-plane.alpha.kubernetes.io/leader"
_PUBLISHED = frozenset({"kube-root-ca.crt", "openshift-service-ca.crt"})
"""ConfigMaps that a controller puts into every namespace."""
_KEEPERS = frozenset({"ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController"})
"""Controllers that end no pod of theirs as long as nobody changes what they are told."""
_MAKERS = {"Pod": {*_KEEPERS, "Job", "Node"}, "ReplicaSet": {"Deployment"}, "Job": {"CronJob"}}
"""Which kinds make objects of which kind. Whatever else an object says of its owner, it is looked at by itself."""
_MADE_BY_HAND = "cronjob.kubernetes.io/instantiate"
"""Annotation of a Job that somebody, not time, made of a CronJob."""
_LATER = {"Pod": {"nodeName"}, "PersistentVolumeClaim": {"volumeName"}}
"""Fields of the spec that are filled in after an object was created."""
_MOST_FIELDS = 6


@dataclass(frozen=True)
class ClusterObject:
    """One object, as far as it does not change by itself."""

    kind: str
    namespace: str
    """Empty for an object of the whole cluster."""
    title: str
    """`deployment demo/web`, as a line names it."""
    uid: str
    content: Mapping[str, Any]
    version: str
    """Differs after every write, also after one that was undone. Empty where status counts as well."""
    owner: str | None
    """Uid of the controller that made it."""
    kept: bool
    """A pod that its controller would not end by itself."""


@dataclass(frozen=True)
class Difference:
    """One object that differs."""

    kind: Literal["created", "changed", "removed"]
    title: str
    detail: str


Objects = Mapping[str, ClusterObject]
"""By title."""


def objects_of(items: Iterable[Mapping[str, Any]]) -> Objects:
    """Return the objects of a list that kubectl gave as JSON; without what is being deleted, or ends by itself.

    Raises:
        KeyError, TypeError, AttributeError: It is no list of Kubernetes objects.
    """
    listed = list(items)
    leaving = {
        item["metadata"]["name"]
        for item in listed
        if item["kind"] == "Namespace" and "deletionTimestamp" in item["metadata"]
    }
    found = (_object(item) for item in listed if not _goes_by_itself(item))
    return {each.title: each for each in found if each.namespace not in leaving}


def compare(before: Objects, after: Objects) -> list[Difference]:
    """Return what somebody created, changed or removed in between, by title.

    What went with its namespace is not listed beside it.
    """
    gone = {title.removeprefix("namespace ") for title in before.keys() - after.keys() if not before[title].namespace}
    found = [*_written(before, after), *_removed(before, after, gone)]
    return sorted(found, key=lambda difference: difference.title)


def _goes_by_itself(item: Mapping[str, Any]) -> bool:
    metadata, kind = item["metadata"], item["kind"]
    return (
        "deletionTimestamp" in metadata
        or (kind == "Job" and "ttlSecondsAfterFinished" in item.get("spec", {}))
        or (kind == "ConfigMap" and metadata["name"] in _PUBLISHED)
    )


def _object(item: Mapping[str, Any]) -> ClusterObject:
    metadata, kind = item["metadata"], str(item["kind"])
    namespace = str(metadata.get("namespace", ""))
    owner = _maker(kind, metadata)
    runs = item.get("status", {}).get("phase") not in ("Failed", "Succeeded")
    return ClusterObject(
        kind=kind,
        namespace=namespace,
        title=f"{kind.lower()} {namespace}/{metadata['name']}" if namespace else f"{kind.lower()} {metadata['name']}",
        uid=str(metadata["uid"]),
        content=_content(item),
        version=_version(item),
        owner=None if owner is None else str(owner["uid"]),
        kept=kind == "Pod" and owner is not None and owner["kind"] in _KEEPERS and runs,
    )


def _maker(kind: str, metadata: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if _MADE_BY_HAND in metadata.get("annotations", {}):
        return None
    makers = _MAKERS.get(kind, set())
    references = metadata.get("ownerReferences", ())
    return next((each for each in references if each.get("controller") and each["kind"] in makers), None)


def _content(item: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = item["metadata"]
    notes = {key: value for key, value in metadata.get("annotations", {}).items() if not key.startswith(_BOOKKEEPING)}
    own = {key: value for key, value in item.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    later = _LATER.get(item["kind"], set())
    if isinstance(own.get("spec"), Mapping):
        own["spec"] = {key: value for key, value in own["spec"].items() if key not in later}
    return {**own, "labels": metadata.get("labels", {}), "annotations": notes}


def _version(item: Mapping[str, Any]) -> str:
    metadata = item["metadata"]
    if item["kind"] == "ConfigMap" and _LEADER not in metadata.get("annotations", {}):
        return str(metadata["resourceVersion"])
    return "" if item["kind"] == "Pod" else str(metadata.get("generation", ""))


def _written(before: Objects, after: Objects) -> Iterator[Difference]:
    for title, now in after.items():
        then = before.get(title)
        if then is None:
            if now.owner is None:
                yield Difference("created", title, "")
        elif then.owner is None or now.owner is None:
            detail = _change(then, now)
            if detail:
                yield Difference("changed", title, detail)


def _change(then: ClusterObject, now: ClusterObject) -> str:
    if then.uid != now.uid:
        return "deleted and created again"
    fields = [*_fields(then.content, now.content), *(["owner"] if then.owner != now.owner else [])]
    if fields:
        more = f" and {len(fields) - _MOST_FIELDS} more" if len(fields) > _MOST_FIELDS else ""
        return ", ".join(fields[:_MOST_FIELDS]) + more
    return "a change that was undone" if then.version != now.version else ""


def _fields(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield where two contents differ, `spec.replicas`, without the values: these may be credentials."""
    for key in sorted(then.keys() | now.keys()):
        old, new = then.get(key), now.get(key)
        if old == new:
            continue
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            inner = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
            yield from (f"{key}.{one_line(name, 60)}" for name in inner)
        else:
            yield one_line(key, 60)


def _removed(before: Objects, after: Objects, gone: set[str]) -> Iterator[Difference]:
    uids_before = {each.uid: each for each in before.values()}
    for title, then in before.items():
        if title in after or then.namespace in gone:
            continue
        if then.owner is None:
            yield Difference("removed", title, "")
        elif then.kept and _stands(uids_before.get(then.owner), after):
            yield Difference("removed", title, "its controller is as it was")


def _stands(owner: ClusterObject | None, after: Objects) -> bool:
    """Return whether a controller is there and nobody told it anything else."""
    if owner is None:
        return False
    now = after.get(owner.title)
    return now is not None and now.uid == owner.uid and now.version == owner.version
