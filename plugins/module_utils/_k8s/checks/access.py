# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What we may do: one access review for every permission that a run needs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Optional

from ..._common.errors import InputError
from ..._fabric.intent import platforms
from ..._fabric.operator import attachments, olm
from ..._fabric.operator.profiles import registry
from ..._fabric.operator.profiles.profile import Kind, NodeReport
from ..client.api import Api

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_PATCH = ("list", "get", "patch")
_WRITE = ("get", "create", "patch", "delete")
_AT_ONCE = 8
# The parts of a run that change the cluster, as the option steps of cluster_info names them.
STEPS = ("operator", "policy", "networks", "validate")


_Row = tuple[str, str, Optional[str], tuple[str, ...]]
# What reads the cluster before any step.
_ALWAYS: list[_Row] = [
    ("", "nodes", None, ("get", "list")),
    ("apps", "deployments", None, ("list",)),
    ("apps", "daemonsets", None, ("list",)),
]
# What finds the operator's installation, and what installs its chart and marks it.
_RELEASE: list[_Row] = [
    ("", "namespaces", None, _WRITE),
    ("", "nodes", None, ("patch",)),
    ("apiextensions.k8s.io", "customresourcedefinitions", None, ("get", "list")),
]
_RELEASE_IN = [("", "secrets", ("list",)), ("", "configmaps", ("get",)), ("apps", "deployments", ("get",))]
_CHART: list[_Row] = [
    ("apiextensions.k8s.io", "customresourcedefinitions", None, ("create", "delete")),
    ("rbac.authorization.k8s.io", "clusterroles", None, ("get", "create", "delete")),
    ("rbac.authorization.k8s.io", "clusterrolebindings", None, ("get", "create", "delete")),
]
_CHART_IN = [
    ("", "secrets", ("create", "update", "delete")),
    ("", "serviceaccounts", ("create", "delete")),
    ("", "configmaps", ("create", "patch", "delete")),
    ("apps", "deployments", ("create", "patch", "delete")),
]
# What installs the operator by OLM.
_OLM: list[_Row] = [(olm.GROUP, "subscriptions", None, ("list",))]
_OLM_IN = [
    (olm.GROUP, "operatorgroups", ("list", *_WRITE)),
    (olm.GROUP, "subscriptions", _WRITE),
    (olm.GROUP, "installplans", ("list", "patch")),
    (olm.GROUP, "clusterserviceversions", ("get", "list", "patch", "delete")),
]
_PACKAGES = ("packages.operators.coreos.com", "packagemanifests", ("get", "list"))
_TESTERS = [
    ("", "configmaps", ("list", *_WRITE)),
    ("batch", "jobs", ("list", *_WRITE)),
    ("", "pods", ("list", "watch", "delete")),
    ("", "pods/exec", ("get", "create")),
    ("", "pods/log", ("get",)),
    ("", "events", ("list",)),
    ("coordination.k8s.io", "leases", ("get", "create", "update", "delete")),
]
# They are removed with the ConfigMap that owns them.
_COLLECTIVES = [("", "services", ("get", "create", "patch"))]
_ACCOUNT = [
    ("", "serviceaccounts", ("get", "create", "patch")),
    ("rbac.authorization.k8s.io", "rolebindings", ("get", "create", "patch")),
]


class Permission(NamedTuple):
    """One verb on one resource (``pods/exec`` for a subresource), in a namespace or in all."""

    verb: str
    group: str
    resource: str
    namespace: str | None = None

    def __str__(self) -> str:
        """Return e.g. ``patch nodes`` or ``create ippools.nv-ipam.nvidia.com in nvidia-network-operator``."""
        name = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {name}" + (f" in {self.namespace}" if self.namespace else "")


def needed(
    operator: str,
    networks: str,
    tests: str,
    *,
    installs: bool = True,
    steps: Collection[str] = STEPS,
    profiles: Sequence[str] = ("",),
    platform: str = "",
    objects: Sequence[Mapping[str, Any]] = (),
    collectives: bool = False,
) -> list[Permission]:
    """Return what the ``steps`` of a run need: ``operator``, ``networks`` and ``tests`` are namespaces.

    ``installs``: whether the run installs the operator's chart, or uses an operator that is there.
    ``profiles``, ``platform``: names of the network models and of the kind of cluster. ``objects``: those that the run
    applies; only they tell whether those of optional kinds are among them. ``collectives``: whether NCCL is run too.
    """
    own = platforms.get(platform)
    sriov = own.sriov_in(operator)
    used = {item.get("kind") for item in objects}
    every = dict.fromkeys([*registry.FURTHER, *(kind for name in profiles for kind in registry.get(name).kinds)])
    kinds = [kind for kind in every if not kind.optional or kind.kind in used]
    table: dict[str, list[_Row]] = {
        "operator": _operator(operator, own, installs),
        "policy": [
            ("", "nodes", None, ("patch",)),
            ("mellanox.com", "nicclusterpolicies", None, ("list", *_WRITE)),
            ("", "pods", operator, ("list",)),
            *_of(kinds, "policy", None),
            *_of(kinds, "policy", operator),
            *_of(kinds, "policy", sriov, by_sriov=True),
        ],
        "networks": [
            *_of(kinds, "networks", None),
            (attachments.GROUP, attachments.PLURAL, networks, ("list",)),
            *_of(kinds, "networks", operator),
            *_of(kinds, "networks", sriov, by_sriov=True),
            *_of(kinds, "networks", networks, for_pods=True),
        ],
        "validate": [
            ("", "namespaces", None, _WRITE),
            *_in(tests, _TESTERS),
            *_in(tests, _ACCOUNT if own.tester_role else []),
            *_in(tests, _COLLECTIVES if collectives else []),
        ],
    }
    rows = [*_ALWAYS, *(row for step in STEPS if step in steps for row in table[step])]
    found = [Permission(verb, group, name, space) for group, name, space, verbs in rows for verb in verbs]
    return list(dict.fromkeys(found))


def _operator(namespace: str, own: platforms.Platform, installs: bool) -> list[_Row]:
    """Return what finding the operator's installation needs, and its installation by the chart or by OLM."""
    if own.catalog and installs:
        return [*_RELEASE[:2], *_OLM, *_in(namespace, _OLM_IN), *_in(own.catalog.namespace, [_PACKAGES])]
    found = [*_RELEASE, *_in(namespace, _RELEASE_IN)]
    return [*found, *_CHART, *_in(namespace, _CHART_IN)] if installs else found


def _of(
    kinds: Sequence[Kind], step: str, namespace: str | None, *, for_pods: bool = False, by_sriov: bool = False
) -> list[_Row]:
    """Return what a step needs on those kinds of a network model that live in a namespace, or in none."""
    place = (step, bool(namespace), for_pods, by_sriov)
    found = [kind for kind in kinds if (kind.step, kind.namespaced, kind.for_pods, kind.by_sriov) == place]
    reports = [row for own in found if own.report for row in _agents(own, own.report, namespace)]
    rows = [(own.group, own.plural, namespace, _PATCH if own.patched else ("list", *_WRITE)) for own in found]
    return [*rows, *reports]


def _agents(kind: Kind, report: NodeReport, namespace: str | None) -> list[_Row]:
    """Return what reading the reports of nodes needs, and why an agent does not report."""
    return [
        (kind.group, report.plural, namespace, ("list",)),
        ("apps", "daemonsets", namespace, ("get",)),
        ("", "pods", namespace, ("list",)),
    ]


def _in(namespace: str, rows: Sequence[tuple[str, str, tuple[str, ...]]]) -> list[_Row]:
    return [(group, name, namespace, verbs) for group, name, verbs in rows]


def refuse_impersonation(params: Mapping[str, Any]) -> None:
    """InputError when commands are to run in pods by an impersonated account: their stream does not carry that."""
    if params.get("impersonate_user") or params.get("impersonate_groups"):
        raise InputError(
            "impersonation (K8S_AUTH_IMPERSONATE_USER, K8S_AUTH_IMPERSONATE_GROUPS) cannot be used to measure in pods:"
            " the stream on which commands run in a pod does not carry it, so they would run with the permissions of"
            " the real account. Use a kubeconfig of the account itself, or set rdma_validate_where: [host]"
        )


def denied(api: Api, permissions: list[Permission]) -> list[str]:
    """Return the permissions that we do not have."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        allowed = list(pool.map(lambda permission: _allowed(api, permission), permissions))
    return [str(permission) for permission, yes in zip(permissions, allowed) if not yes]


def grouped(missing: list[str]) -> str:
    """Return the permissions with the verbs of one resource together: ``get/list nodes, create namespaces``."""
    verbs: dict[str, list[str]] = {}
    for text in missing:
        verb, _space, resource = text.partition(" ")
        verbs.setdefault(resource, []).append(verb)
    return ", ".join(f"{'/'.join(found)} {resource}" for resource, found in verbs.items())


def _allowed(api: Api, permission: Permission) -> bool:
    resource, _slash, subresource = permission.resource.partition("/")
    attributes = {"verb": permission.verb, "group": permission.group, "resource": resource}
    attributes.update({"subresource": subresource} if subresource else {})
    attributes.update({"namespace": permission.namespace} if permission.namespace else {})
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = api.call("POST", _REVIEWS, {}, body=body)
    status = answer.get("status")
    return isinstance(status, dict) and status.get("allowed") is True
