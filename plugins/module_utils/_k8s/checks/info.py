# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that cluster_info returns: what the cluster has, and every problem with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..._common.errors import InputError
from ..._fabric.intent import platforms
from ..._fabric.intent.namespaces import refusal
from ..._fabric.operator.installation import Decision
from ..._fabric.operator.mark import Target
from ..._fabric.operator.olm import aim_of
from ..._fabric.operator.profiles import registry
from ..client.api import Api, ApiError
from ..client.kinds import collection
from ..client.nodes import nodes_of, nodes_of_hosts
from ..objects import olm, pools, release
from ..objects.preview import STEPS, preview, steps
from . import (
    access,
    chart,
    claims,
    driver_moves,
    networks,
    problems,
    pull_secrets,
    sriov_policies,
    survey,
    test_namespace,
    tester_cpus,
    ufm_secret,
)


def read(api: Api, params: Mapping[str, Any], run: chart.Run) -> dict[str, Any]:
    """Return the module's result: what is there, and every problem with it."""
    given, params = params, _selected(params)
    version, numbers = survey.version(api)
    denied = access.denied(api, _permissions(params))
    nodes = survey.listed(api, "v1", "nodes")
    deployments = survey.listed(api, "apps/v1", "deployments")
    daemonsets = survey.listed(api, "apps/v1", "daemonsets")
    operators, discoveries = survey.operators(deployments), survey.discoveries(deployments)
    # Without the permission to list nodes, every host would seem to have none.
    by_host, wrong = nodes_of_hosts(params["hosts"], nodes) if "list nodes" not in denied else ({}, {})
    running = survey.listed(api, "v1", "pods", fieldSelector="status.phase=Running") if params["workloads"] else []
    decision, told = _installation(api, params, denied, operators=operators, discoveries=discoveries)
    found = problems.Found(
        version=version,
        numbers=numbers,
        nodes=survey.summaries(nodes, params["labels"]),
        hosts=by_host,
        discoveries=discoveries,
        multuses=survey.multuses(daemonsets),
    )
    objects = survey.objects(api)
    labels = _labels(params, by_host)
    others = sriov_policies.read(api, params, nodes, by_host=by_host, objects=objects, nodes_labels=labels)
    said, overlaps = list(decision.problems), networks.Overlaps([], [])
    if params["operator_state"] == "present":
        policies = list(problems.policy(params["existing"] or "", objects["NicClusterPolicy"]))
        said = [*_denied(denied), *wrong.values(), *_aimed(params, found, decision), *policies, *said]
        said += [*_installing(params, decision, run), *_testers(api, params), *_platform(api, params)]
        said += [*_pools(api, params, labels), *_pull_secrets(api, params, decision), *claims.problems(params, numbers)]
        overlaps = networks.overlaps(api, params, nodes, by_host=by_host)
        said += [*overlaps.problems, *(own["problem"] for own in others if own["stops"])]
        said += ufm_secret.problems(api, params["namespace"], params["ufm_secret"])
        said += [text for text in _refusals(api, given, judged=bool(policies)) if not _told(text, said)]
    return {
        "version": version,
        "nodes": found.nodes,
        "nodes_by_host": by_host,
        "nfd": discoveries,
        "multus": found.multuses,
        "operator": operators,
        "gpu_operator": survey.gpu_operators(api, params["nic_drivers"] or ""),
        "sriov_policies": others,
        "release": told,
        "chart": chart.kind_of(params["chart_ref"]) if params["chart_ref"] else None,
        "objects": objects,
        "workloads": survey.workloads(running),
        "denied": denied,
        "problems": said,
        "doubts": [*overlaps.warnings, *(own["problem"] for own in others if own["problem"] and not own["stops"])],
        "requests": api.requests,
    }


def _told(text: str, said: Sequence[str]) -> bool:
    """Return whether a problem with the first sentence of a refusal is there already, maybe with more of the cause."""
    first = text.partition(". ")[0]
    return any(own.startswith(first) for own in said)


def _refusals(api: Api, params: Mapping[str, Any], judged: bool) -> list[str]:
    """Return what the roles of the selected steps would refuse. ``judged``: the policy is a problem already."""
    if params["prune"] is None:
        return []
    chosen = [name for name in STEPS if name in params["steps"] and not (judged and name == "policy")]
    of_kind = {kind.kind: kind.step for kind in registry.kinds()}
    objects: dict[str, list[Mapping[str, Any]]] = {name: [] for name in STEPS}
    for item in params["objects"]:
        objects[of_kind.get(str(item.get("kind")), "policy")].append(item)
    try:
        moved = driver_moves.problems(api, params) if "policy" in chosen else []
        return [*moved, *preview(api, [step for step in steps(api, objects, params) if step.name in chosen]).refused]
    except ApiError as error:
        # Missing permissions are a problem of their own.
        if error.status != 403:
            raise
        return []


def _platform(api: Api, params: Mapping[str, Any]) -> list[str]:
    """Return that the cluster is of another kind, or has no SR-IOV operator where that is part of the platform."""
    if not params["platform"]:
        return []
    wrong = list(problems.platform(params["platform"], survey.platform(api)))
    return wrong or _sriov(api, params)


def _installation(
    api: Api,
    params: Mapping[str, Any],
    denied: list[str],
    *,
    operators: Sequence[Mapping[str, Any]],
    discoveries: Sequence[Mapping[str, Any]],
) -> tuple[Decision, dict[str, Any] | None]:
    """Return what is to be done with the operator, and what the module reports of it."""
    by_olm = _by_olm(api, params, operators) if params["operator_name"] else None
    if by_olm:
        return by_olm
    if not params["operator_name"] or _hidden(params, denied):
        return Decision("none", (), ()), None
    removing = params["operator_state"] == "absent"
    seen = release.seen(api, params["namespace"], operators, discoveries=discoveries, removing=removing)
    return release.judged(_target(params), seen, params["operator_state"])


def _by_olm(
    api: Api, params: Mapping[str, Any], operators: Sequence[Mapping[str, Any]]
) -> tuple[Decision, dict[str, Any]] | None:
    """Return what is to be done by OLM, where the platform has it and the cluster is of that platform."""
    own = platforms.get(params["platform"] or "")
    if own.catalog is None or survey.platform(api) != own.name:
        return None
    existing, others = params["existing"] or "refuse", params["olm_approve_others"]
    aim = aim_of(params["namespace"], params["release"] or "", own.catalog, existing=existing, others=others)
    return olm.judged(api, aim, operators)


def _sriov(api: Api, params: Mapping[str, Any]) -> list[str]:
    own = platforms.get(params["platform"])
    kinds = {kind.kind for kind in registry.kinds() if kind.by_sriov}
    if not own.sriov_namespace or kinds.isdisjoint(str(item.get("kind")) for item in params["objects"]):
        return []
    patched = [kind for kind in registry.kinds() if kind.patched]
    return [
        f"{kind.kind} {own.sriov_namespace}/default does not exist, and the plan needs the SR-IOV operator of"
        f" {own.title}. Install {own.operators['sriov']}, channel stable, in namespace {own.sriov_namespace}, and"
        " create this object as its documentation describes. This collection does not create it"
        for kind in patched
        if api.get(f"{collection(kind.api_version, kind.plural, own.sriov_namespace)}/default") is None
    ]


def _permissions(params: Mapping[str, Any]) -> list[access.Permission]:
    return access.needed(
        params["namespace"],
        params["network_namespace"],
        params["test_namespace"],
        installs=params["existing"] != "use",
        steps=params["steps"],
        profiles=[own["profile"]["name"] for own in params["classes"]] or [params["profile"]],
        platform=params["platform"] or "",
        objects=params["objects"],
        collectives=params["collectives"],
    )


def _selected(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options without those of steps that are not part of the run: nothing is asked or judged for them."""
    left: dict[str, Any] = {}
    if "operator" not in params["steps"]:
        left = {"operator_name": None, "release": None, "chart_ref": None}
    if not {"operator", "policy"} & set(params["steps"]):
        left["existing"] = None
    if "policy" not in params["steps"]:
        left["ufm_secret"] = None
    return {**params, **left}


def _pull_secrets(api: Api, params: Mapping[str, Any], decision: Decision) -> list[str]:
    """Return the absent pull secrets of the selected steps; those of the chart only where it is installed."""
    of_chart = [] if params["operator_name"] and decision.action == "none" else params["pull_secrets"]
    named = {
        "operator": (params["namespace"], of_chart, "pull_secrets"),
        "validate": (params["test_namespace"], [params["test_pull_secret"]], "test_pull_secret"),
    }
    return [
        problem
        for step, (space, names, option) in named.items()
        if step in params["steps"]
        for problem in pull_secrets.problems(api, space, filter(None, names), option=option)
    ]


def _pools(api: Api, params: Mapping[str, Any], labels: Mapping[str, Mapping[str, Any]]) -> list[str]:
    if "networks" not in params["steps"] or params["disrupt_users"]:
        return []
    live = pools.existing(api, params["objects"])
    return pools.problems(api, params["objects"], live, labels=labels)


def _labels(params: Mapping[str, Any], by_host: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
    """Return Node -> the labels that the plan gives it."""
    labels = {node: params["node_labels"] for node in by_host.values()}
    for own in params["classes"]:
        labels.update(dict.fromkeys(nodes_of(own["hosts"], by_host), {**params["node_labels"], **own["labels"]}))
    return labels


def _testers(api: Api, params: Mapping[str, Any]) -> list[str]:
    """Return why testers would not start, where the run measures in pods."""
    if "validate" not in params["steps"]:
        return []
    found = test_namespace.problems(api, params["test_namespace"])
    for refuse in (lambda: access.refuse_impersonation(params), lambda: tester_cpus.whole(params["test_cpus"])):
        try:
            refuse()
        except InputError as error:
            found.append(str(error))
    return found


def _target(params: Mapping[str, Any]) -> Target:
    version, existing = params["release"] or "", params["existing"] or "refuse"
    return Target(params["namespace"], params["operator_name"], version, params["nfd"], existing)


def _hidden(params: Mapping[str, Any], denied: list[str]) -> bool:
    """Whether what decides on the release cannot be read: then the missing permissions are the problem."""
    needed = [f"{verb} in {params['namespace']}" for verb in ("list secrets", "get configmaps")]
    return params["operator_state"] == "present" and not {
        "get namespaces",
        "list customresourcedefinitions.apiextensions.k8s.io",
        "list deployments.apps",
        *needed,
    }.isdisjoint(denied)


def _denied(denied: list[str]) -> list[str]:
    if not denied:
        return []
    return [f"permissions are missing: {access.grouped(denied)}; use an account that has them"]


def _aimed(params: Mapping[str, Any], found: problems.Found, decision: Decision) -> list[str]:
    if not params["release"]:
        return []
    installs = decision.action != "none" or not params["operator_name"]
    aim = problems.Aim(
        params["release"],
        params["namespace"],
        params["nfd"],
        params["node_labels"],
        installs,
        params["multus"],
        platforms.get(params["platform"] or ""),
    )
    refused = refusal(
        "test_namespace",
        params["test_namespace"],
        operator=params["namespace"],
        networks=params["network_namespace"],
        platform=params["platform"] or "",
    )
    return [*problems.problems(aim, found), *([refused] if refused else [])]


def _installing(params: Mapping[str, Any], decision: Decision, run: chart.Run) -> list[str]:
    if params["operator_name"] and decision.action in ("none", "subscribe"):
        return []
    ref = params["chart_ref"] or ""
    found = list(chart.problems(ref, params["chart_checksum"] or ""))
    if found or not params["operator_name"]:
        return found
    binary, version = params["helm_binary"] or "", params["release"] or ""
    return list(chart.helm_problems(run, binary, ref, repo=params["chart_repo"], release=version))
