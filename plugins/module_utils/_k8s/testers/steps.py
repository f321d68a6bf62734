# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The three steps of the transport in pods, from a module's parameters to its result."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..._common.errors import InputError
from ..._fabric.intent import platforms
from ..._fabric.intent.host_classes import of_plan
from ..._fabric.intent.namespaces import refusal
from ..._fabric.measure.judge.unmeasured import measurable
from ..._fabric.measure.schedule import mesh
from ..._fabric.measure.schedule.hugepages import memory_at_once
from ..._fabric.measure.schedule.lifetime import lifetime
from ..checks import tester_cpus
from ..client.api import Api
from ..client.kinds import collection
from ..client.nodes import machine_id, nodes_of_hosts
from ..client.poll import Clock
from ..objects.apply import Options
from . import jobs, passes
from . import namespace as testers_namespace
from .lease import Lease, renewed
from .logs import Evidence
from .manifests import Testers, pod_rails
from .resources import needs, refusals

_NODES = collection("v1", "nodes")


def started(api: Api, params: Mapping[str, Any], check: bool, *, clock: Clock) -> dict[str, Any]:
    """Start the testers and keep their descriptions; problems by endpoint."""
    script = read_script(params["script"])
    check_namespace(params)
    endpoints, problems, nodes = endpoints_of(api, params)
    silent: Mapping[str, str] = params["plan"].get("unanswered") or {}
    problems.update({name: why for name, why in silent.items() if name in endpoints})
    endpoints = {name: node for name, node in endpoints.items() if name not in silent}
    parts = _parts(params, script, {name: nodes[node] for name, node in endpoints.items()})
    for testers, own in parts:
        problems.update(refusals(testers.needs, own))
    endpoints = {name: node for name, node in endpoints.items() if name not in problems}
    if not check:
        evidence = Evidence(params["evidence"], "describe")
        evidence.prepare()
        left = [(testers, {name: node for name, node in own.items() if name in endpoints}) for testers, own in parts]
        left = [(testers, own) for testers, own in left if own]
        if left:
            problems.update(_start(api, left, endpoints, params=params, evidence=evidence, clock=clock))
        evidence.errors(problems)
    return {"endpoints": endpoints, "problems": problems}


# The testers of a class of hosts, and endpoint -> Node of each.
_Part = tuple[Testers, dict[str, Mapping[str, Any]]]


def _parts(params: Mapping[str, Any], script: str, nodes: Mapping[str, Mapping[str, Any]]) -> list[_Part]:
    """Return the testers of each class of hosts that has some, those of hosts with fewer rails apart.

    ``nodes``: endpoint -> Node.
    """
    plan = params["plan"]
    rails, testers = pod_rails(plan), testers_of(params, script)
    found = []
    for own in of_plan(plan):
        name, chosen = own["name"], own["hosts"] if len(rails) > 1 else nodes
        theirs = {endpoint: node for endpoint, node in nodes.items() if endpoint in chosen}
        alike = _alike(plan, theirs) or ({} if len(rails) > 1 else {(): {}})
        for number, (gone, same) in enumerate(alike.items()):
            kept = [rail for rail in rails[name] if rail["name"] not in gone]
            wanted = needs(plan, params["gpu_resource"] or "", same.values())
            part = "-".join([*([name] if len(rails) > 1 else []), *([f"fewer-{number}"] if gone else [])])
            found.append((replace(testers, rails=kept, needs=wanted, part=part), same))
    parts = tuple(one.part for one, _nodes in found)
    return [(replace(one, parts=parts if parts != ("",) else ()), own) for one, own in found]


def _alike(
    plan: Mapping[str, Any], nodes: Mapping[str, Mapping[str, Any]]
) -> dict[tuple[str, ...], dict[str, Mapping[str, Any]]]:
    """Return rails without a port -> the endpoints that lack just these, and their Nodes; complete ones come first."""
    found: dict[tuple[str, ...], dict[str, Mapping[str, Any]]] = {}
    for name, node in nodes.items():
        gone = tuple((plan["hosts"].get(name) or {}).get("missing", ()))
        found.setdefault(gone, {})[name] = node
    return dict(sorted(found.items()))


def _start(
    api: Api,
    parts: Sequence[_Part],
    endpoints: Mapping[str, str],
    *,
    params: Mapping[str, Any],
    evidence: Evidence,
    clock: Clock,
) -> dict[str, str]:
    testers = parts[0][0]
    needs_of = {name: own.needs for own, nodes in parts for name in nodes}
    made = [(own, [hostname_of(node) for node in nodes.values()]) for own, nodes in parts]
    lease = lease_of(api, testers, len(endpoints), clock=clock)
    if lease is None:
        testers_namespace.prepare(api, testers, clock)
    else:
        lease.take(lambda: testers_namespace.prepare(api, testers, clock), params["wait"])
    with renewed(lease):
        jobs.start(api, made, endpoints, clock=clock)
        running, problems = jobs.wait_running(api, testers, endpoints, timeout=params["timeout"], clock=clock)
        problems = {name: needs_of[name].explained(problem) for name, problem in problems.items()}
        return {**problems, **passes.describe(api, testers.namespace, running, evidence=evidence)}


def lease_of(api: Api, testers: Testers, endpoints: int, *, clock: Clock) -> Lease | None:
    """Return the Lease of a run; None for a run without an ID, which nobody can wait for."""
    return (
        Lease(api, testers.namespace, testers.name, run=testers.run, endpoints=endpoints, clock=clock)
        if testers.run
        else None
    )


def played(api: Api, params: Mapping[str, Any], check: bool, *, clock: Clock) -> dict[str, Any]:
    """Play one pass and keep the logs; problems by endpoint."""
    lines = params["lines"]
    start_in = params["start_in"]
    batch = passes.Batch(params["pass"], lines, params["slot"], params["seconds"], start_in)
    testers = testers_of(params, "")
    endpoints, problems = jobs.started_on(api, testers, list(batch.lines))
    if not check:
        evidence = Evidence(params["evidence"], f"pass-{batch.number}")
        evidence.prepare()
        if any(map(mesh.is_mesh, lines.values())):
            evidence.mark(mesh.MARK)
        with renewed(lease_of(api, testers, len(endpoints), clock=clock)):
            failed, start_in = passes.play(api, testers, endpoints, batch=batch, evidence=evidence, clock=clock)
        problems.update(failed)
        evidence.errors(problems)
    return {"endpoints": endpoints, "problems": problems, "start_in": start_in}


def absent(api: Api, params: Mapping[str, Any], check: bool, *, clock: Clock) -> dict[str, Any]:
    """Remove the testers of a run, or of all runs, and their namespace unless another run has it."""
    testers = testers_of(params, "")
    options = Options(check=check, timeout=params["timeout"])
    lease = Lease(api, testers.namespace, testers.name, run=testers.run, endpoints=0, clock=clock)
    found = jobs.remove(api, testers, options, clock=clock)
    if testers.run and (lease.holder() not in ("", testers.run) or _others(api, testers)):
        return {"removed": found}
    if testers_namespace.remove(api, testers, options, clock=clock):
        # The Lease goes with it: a run that waits begins with a namespace of its own.
        found.append(f"namespaces/{testers.namespace}")
    elif not check:
        lease.release()
    return {"removed": found}


def _others(api: Api, testers: Testers) -> list[str]:
    return [] if testers.run == "" else jobs.present(api, replace(testers, run=""))


def testers_of(params: Mapping[str, Any], script: str) -> Testers:
    """Return the testers that a module's parameters describe, without rails."""
    plan = params.get("plan") or {}
    return Testers(
        namespace=params["namespace"],
        name=params["name"],
        image=params["image"] or "",
        script=script,
        rails=(),
        host_network=params["host_network"],
        lifetime=params["lifetime"] or (lifetime(plan, _names(params), params["slot_margin"]) if plan else 0),
        idle=params["idle"],
        pull_policy=params["image_pull_policy"],
        pull_secrets=[params["image_pull_secret"]] if params["image_pull_secret"] else [],
        tolerations=params["tolerations"],
        runtime_class=params["runtime_class"],
        cpu=params["cpu"],
        cpus=tester_cpus.whole(params["cpus"]),
        run=_run(params["run"]),
        memory=memory_at_once(plan) if plan else 0,
        role=platforms.get((plan.get("operator") or {}).get("platform") or "").tester_role,
    )


def endpoints_of(
    api: Api, params: Mapping[str, Any]
) -> tuple[dict[str, str], dict[str, str], dict[str, Mapping[str, Any]]]:
    """Return endpoint -> node name, endpoint -> why it has none, and the nodes by name."""
    plan = params["plan"]
    wanted = _names(params)
    if not wanted:
        raise InputError("no endpoint to measure in pods: the plan has none, or limit excludes all of them")
    nodes: dict[str, Mapping[str, Any]] = {node["metadata"]["name"]: _slim(node) for node in api.items(_NODES)}
    found, wrong = nodes_of_hosts({name: plan["hosts"].get(name) or {} for name in wanted}, nodes.values())
    return found, wrong, nodes


def _run(text: str) -> str:
    if text and not re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", text):
        raise InputError(f"run: {text[:80]!r} is not a label value; expected at most 63 letters, digits, -, _ and .")
    return text


def _names(params: Mapping[str, Any]) -> list[str]:
    plan, limit = params["plan"], params["limit"]
    return [name for name in measurable(plan, plan["endpoints"]["pod"]) if not limit or name in limit]


def _slim(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return what matters of a node; with its images it is a hundred times as big."""
    meta = {"name": node["metadata"]["name"], "labels": node["metadata"].get("labels") or {}}
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    return {"metadata": meta, "status": {"nodeInfo": {"machineID": machine_id(node)}, "allocatable": allocatable}}


def check_namespace(params: Mapping[str, Any]) -> None:
    """Raise InputError when pods that measure cannot use the namespace."""
    operator = params["plan"].get("operator") or {}
    refused = refusal(
        "namespace",
        params["namespace"],
        operator=operator.get("namespace"),
        networks=operator.get("network_namespace"),
        platform=operator.get("platform") or "",
    )
    if refused:
        raise InputError(refused)


def hostname_of(node: Mapping[str, Any]) -> str:
    """Return the value of a node's hostname label."""
    labels = node["metadata"].get("labels") or {}
    return str(labels.get("kubernetes.io/hostname") or node["metadata"]["name"])


def read_script(path: str) -> str:
    """Return the text of a script on the controller."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"script {path} cannot be read: {error.strerror}. Set script to the tester script") from None
