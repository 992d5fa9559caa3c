"""Workloads in every state that a cluster knows."""

from typing import Any

LOCAL = {"imagePullPolicy": "Never"}


def pod(name: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Return a pod that ends at once when it is told to."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": spec.pop("annotations", {}), "labels": {"app": name}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "containers": list(containers),
            **spec,
        },
    }


def busybox(script: str, name: str = "app", **more: Any) -> dict[str, Any]:
    """Return a container that runs a shell script."""
    return {"name": name, "image": "localhost/busybox:1", "command": ["sh", "-c", script], **LOCAL, **more}


def deployment(name: str, *containers: dict[str, Any], replicas: int = 1) -> dict[str, Any]:
    """Return a Deployment."""
    made = pod(name, *containers)
    template = {"metadata": {"labels": made["metadata"]["labels"]}, "spec": made["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": made["metadata"]["labels"]}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def config_map(name: str, data: dict[str, str]) -> dict[str, Any]:
    """Return a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def secret(name: str, value: str) -> dict[str, Any]:
    """Return a Secret with one value."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"password": value}}


SLEEP = "while :; do sleep 60; done"
EVERY_STATE = (
    pod("running", busybox(f"echo ready; {SLEEP}")),
    pod("crashing", busybox("echo starting; echo 'FATAL: no route to redis' >&2; exit 3")),
    pod("hungry", busybox("echo eating; tail -c 300m /dev/zero", resources={"limits": {"memory": "20Mi"}})),
    pod("homeless", busybox(SLEEP), nodeSelector={"disk": "ssd"}),
    pod("imageless", {"name": "app", "image": "localhost/nowhere:9", **LOCAL}),
    pod(
        "crowded",
        busybox(f"echo from app; {SLEEP}"),
        *(busybox(f"echo from side-{n}; {SLEEP}", f"side-{n}") for n in range(4)),
    ),
)
