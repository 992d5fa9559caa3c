"""The guard of the cluster tools: a model fills slots, and every slot is an allow-list or a full match.

Kinds are compared exactly, casefolded, against plurals, singulars and short names; there is no group, no slash and no
comma. Names follow DNS-1123 (https://kubernetes.io/docs/concepts/overview/working-with-objects/names/).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from mcp_ops.gate import Refuse
from mcp_ops.ops.rules import KUBECTL_KIND, KUBECTL_NAME, KUBECTL_NAMESPACE, KUBECTL_OUTPUT, KUBECTL_SECRET
from mcp_ops.text import one_line

Output = Literal["default", "wide", "name", "json", "yaml"]
"""How `kubectl_get` prints. `default` is the table."""

KINDS: dict[str, tuple[str, ...]] = {
    "configmaps": ("configmap", "cm"),
    "cronjobs": ("cronjob", "cj"),
    "daemonsets": ("daemonset", "ds"),
    "deployments": ("deployment", "deploy"),
    "endpoints": ("endpoint", "ep"),
    "endpointslices": ("endpointslice",),
    "events": ("event", "ev"),
    "horizontalpodautoscalers": ("horizontalpodautoscaler", "hpa"),
    "ingresses": ("ingress", "ing"),
    "jobs": ("job",),
    "limitranges": ("limitrange", "limits"),
    "namespaces": ("namespace", "ns"),
    "networkpolicies": ("networkpolicy", "netpol"),
    "nodes": ("node", "no"),
    "persistentvolumeclaims": ("persistentvolumeclaim", "pvc"),
    "persistentvolumes": ("persistentvolume", "pv"),
    "poddisruptionbudgets": ("poddisruptionbudget", "pdb"),
    "pods": ("pod", "po"),
    "replicasets": ("replicaset", "rs"),
    "resourcequotas": ("resourcequota", "quota"),
    "serviceaccounts": ("serviceaccount", "sa"),
    "services": ("service", "svc"),
    "statefulsets": ("statefulset", "sts"),
    "storageclasses": ("storageclass", "sc"),
}
"""Kinds that can be read: kubectl's plural, then its singular and short names."""

_GROUPS = {
    "apps": ("daemonsets", "deployments", "replicasets", "statefulsets"),
    "autoscaling": ("horizontalpodautoscalers",),
    "batch": ("cronjobs", "jobs"),
    "discovery.k8s.io": ("endpointslices",),
    "networking.k8s.io": ("ingresses", "networkpolicies"),
    "policy": ("poddisruptionbudgets",),
    "storage.k8s.io": ("storageclasses",),
}
"""API groups of the kinds. `kubectl get -o name` writes `deployment.apps/web`, so models write the group too."""
_WITH_GROUP = {
    f"{spelling}.{group}": plural
    for group, plurals in _GROUPS.items()
    for plural in plurals
    for spelling in (plural, KINDS[plural][0])
}

SHIPPED_SPELLINGS = frozenset({*_WITH_GROUP, *(name for plural, others in KINDS.items() for name in (plural, *others))})
"""Every name of a kind that can be read."""

SECRET_KINDS = frozenset({"secret", "secrets"})

MAX_NAME = 253
MAX_LABEL = 63

_PARTS = re.compile(r"[\s/,.:]+")
_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_NAMESPACE = re.compile(_LABEL, re.ASCII)
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*", re.ASCII)


@dataclass(frozen=True)
class Target:
    """What one call may read, every part of it checked."""

    kind: str
    """A plural of the kinds that can be read, as kubectl gets it."""
    name: str | None
    namespace: str | None


def guard_target(
    resource: str,
    name: str | None,
    namespace: str | None,
    refuse: Refuse,
    kinds: Mapping[str, tuple[str, ...]] = KINDS,
) -> Target:
    """Check the three slots that every cluster tool shares.

    Args:
        resource: The kind, as the model wrote it.
        name: The name of one object.
        namespace: The name of one namespace.
        refuse: How rules say no.
        kinds: What can be read, in the form of `KINDS`.

    Raises:
        Denied: `kubectl.secret`, `kubectl.kind`, `kubectl.name`, `kubectl.namespace`.
    """
    return Target(_kind(resource, kinds, refuse), _name(name, refuse), _namespace(namespace, refuse))


def guard_output(output: str, refuse: Refuse) -> str:
    """Check the output format.

    Raises:
        Denied: `kubectl.output`.
    """
    if output not in get_args(Output):
        refuse(KUBECTL_OUTPUT, f"the output '{one_line(output, 60)}' is not one of {', '.join(get_args(Output))}")
    return output


def _kind(resource: str, kinds: Mapping[str, tuple[str, ...]], refuse: Refuse) -> str:
    spelling = resource.casefold()
    shown = f"'{one_line(resource, 60)}'"
    if SECRET_KINDS & set(_PARTS.split(spelling)):
        refuse(KUBECTL_SECRET, f"{shown} asks for Secrets, which cannot be read")
        return resource
    for plural, others in kinds.items():
        if spelling == plural or spelling in others:
            return plural
    if spelling in _WITH_GROUP:
        return _WITH_GROUP[spelling]
    if spelling == "all":
        reason = "'all' is not a kind"
        refuse(KUBECTL_KIND, reason, "Name one kind a call, such as pods, then deployments, then services.")
    elif "/" in resource:
        refuse(KUBECTL_KIND, f"{shown} is not one plain kind", "Put the kind into resource and the name into name.")
    elif "," in resource or " " in resource.strip():
        refuse(KUBECTL_KIND, f"{shown} is more than one kind", "Name one kind a call.")
    else:
        refuse(KUBECTL_KIND, f"{shown} is not a kind that can be read; the kinds are {', '.join(kinds)}")
    return resource


def _name(name: str | None, refuse: Refuse) -> str | None:
    if name is not None and (len(name) > MAX_NAME or not _NAME.fullmatch(name)):
        refuse(KUBECTL_NAME, f"'{one_line(name, 60)}' is not the name of one object")
    return name


def _namespace(namespace: str | None, refuse: Refuse) -> str | None:
    if namespace is not None and (len(namespace) > MAX_LABEL or not _NAMESPACE.fullmatch(namespace)):
        refuse(KUBECTL_NAMESPACE, f"'{one_line(namespace, 60)}' is not the name of one namespace")
    return namespace
