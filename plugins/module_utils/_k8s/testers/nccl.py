# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run collectives in pods, one round of units after another; output by host, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..._common.errors import ClusterError, FabricError, InputError
from ..._fabric.intent.host_classes import of_plan
from ..._fabric.measure.nccl import environment
from ..._fabric.measure.nccl.output import DONE
from ..._fabric.measure.nccl.units import Unit, collectives, rounds, seconds
from ..client.api import Api
from ..client.kinds import collection, path_of
from ..client.pods import State, state_of
from ..client.poll import Clock
from ..client.watch import watched
from ..objects.apply import Options, apply_object
from . import jobs
from . import namespace as testers_namespace
from .lease import Lease, renewed
from .logs import Evidence, read_log, reason_without_log
from .manifests import Testers, account, pod_rails
from .nccl_objects import MEMORY_PER_GPU, Part, service, settings, unit_job
from .resources import needs, refusals
from .steps import check_namespace, endpoints_of, hostname_of, lease_of, read_script, testers_of

# Seconds to read a log, and that of a pod that is still waiting for others.
_LOG_TIMEOUT, _UNFINISHED = 60.0, 5.0
Nodes = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Ran:
    """A unit that ran: host -> output, and host -> why it has none. ``gpus``: those of each host."""

    unit: Unit
    gpus: int
    output: Mapping[str, str]
    problems: Mapping[str, str]


@dataclass(frozen=True)
class _Class:
    """The hosts of a class that can run, their pods without a name, and the GPUs of each host."""

    nodes: Nodes
    testers: Testers
    gpus: int


def measured(api: Api, params: Mapping[str, Any], *, clock: Clock) -> tuple[list[Ran], dict[str, str]]:
    """Run every unit of the plan; return them, and host -> why it runs nothing."""
    plan = params["plan"]
    check_namespace(params)
    if not params["gpu_resource"] or not params["run"]:
        raise InputError("gpu_resource and run are required: all GPUs of a node are requested, and run identifies pods")
    scripts = {"nccl.sh": read_script(params["script"]), "tester.sh": read_script(params["tester_script"])}
    endpoints, problems, nodes = endpoints_of(api, params)
    classes = list(_classes(params, {name: nodes[node] for name, node in endpoints.items()}, problems))
    lease = lease_of(api, testers_of(params, ""), len(endpoints), clock=clock)
    if lease is None or not classes:
        return [], problems
    first = classes[0].testers
    lease.take(lambda: testers_namespace.prepare(api, first, clock), params["wait"])
    found = []
    try:
        with renewed(lease):
            jobs.remove(api, replace(first, run=""), Options(), clock=clock)
            for own in classes:
                for units in rounds(plan, list(own.nodes)):
                    parts = [(unit, _part(params, own, unit, at=at, scripts=scripts)) for at, unit in enumerate(units)]
                    found += _round(api, parts, endpoints, params=params, clock=clock)
    finally:
        _remove(api, first, lease, clock=clock)
    return found, problems


def _remove(api: Api, testers: Testers, lease: Lease, *, clock: Clock) -> None:
    """Remove the namespace if it was created for testers, else the Lease in it; nothing that another run took over."""
    if lease.holder() != testers.run:
        return
    if not testers_namespace.remove(api, testers, Options(), clock=clock):
        lease.release()


def _classes(params: Mapping[str, Any], nodes: Nodes, problems: dict[str, str]) -> Iterator[_Class]:
    """Yield the classes of hosts that have some; adds to ``problems`` why hosts cannot run."""
    plan, resource = params["plan"], params["gpu_resource"]
    wanting = {**plan, "tests": {**(plan.get("tests") or {}), "memory": "cuda:dmabuf", "hugepages": False}}
    rails = pod_rails(plan)
    for own in of_plan(plan):
        theirs = {name: node for name, node in nodes.items() if len(rails) == 1 or name in own["hosts"]}
        wanted = needs(wanting, resource, theirs.values())
        problems.update(refusals(wanted, theirs, must_request=True))
        lacking = {name: (plan["hosts"].get(name) or {}).get("missing", ()) for name in theirs}
        problems.update({name: f"it has no port for {', '.join(gone)}" for name, gone in lacking.items() if gone})
        theirs = {name: node for name, node in theirs.items() if name not in problems}
        if len(theirs) == 1:
            problems.update(
                dict.fromkeys(theirs, "a collective needs two hosts with the same rails, and no other can run")
            )
        elif theirs:
            gpus = wanted.amounts[resource]
            testers = replace(testers_of(params, ""), rails=rails[own["name"]], needs=wanted)
            yield _Class(theirs, replace(testers, memory=gpus * MEMORY_PER_GPU), gpus)


def _part(params: Mapping[str, Any], own: _Class, unit: Unit, *, at: int, scripts: Mapping[str, str]) -> Part:
    plan = params["plan"]
    what = collectives(plan)
    longest = params["timeout"] + seconds(plan, len(unit.hosts)) * len(what)
    lines = [
        environment.line(plan, number, one, hosts=len(unit.hosts), gpus=own.gpus) for number, one in enumerate(what, 1)
    ]
    return Part(
        testers=replace(own.testers, name=f"gpufabric-nccl-{at}", lifetime=longest),
        hostnames=[hostname_of(own.nodes[host]) for host in unit.hosts],
        lines=lines,
        environment=environment.common(plan),
        scripts=scripts,
        gpus=own.gpus,
        patience=params["timeout"],
    )


def _round(
    api: Api,
    parts: Sequence[tuple[Unit, Part]],
    endpoints: Mapping[str, str],
    *,
    params: Mapping[str, Any],
    clock: Clock,
) -> list[Ran]:
    """Run units at the same time, keep their output, and remove them."""
    try:
        for _unit, part in parts:
            _start(api, part, clock=clock)
        states = _ended(api, parts, clock=clock)
        return [_ran(api, unit, part, endpoints=endpoints, params=params, states=states) for unit, part in parts]
    finally:
        jobs.remove(api, parts[0][1].testers, Options(timeout=params["timeout"]), clock=clock)


def _start(api: Api, part: Part, *, clock: Clock) -> None:
    own = settings(part)
    apply_object(api, own, Options(), clock=clock)
    owner = api.get(path_of(api, own))
    if owner is None:
        raise ClusterError(
            f"ConfigMap {part.testers.name} in namespace {part.testers.namespace} is missing, although it was just"
            " created. Find out what removes objects of this namespace, and run the collectives again"
        )
    for item in (service(part, owner), *account(part.testers, owner), unit_job(part)):
        apply_object(api, item, Options(), clock=clock)


def _ended(api: Api, parts: Sequence[tuple[Unit, Part]], *, clock: Clock) -> dict[str, State]:
    """Wait until each unit ended or cannot run; return node -> state of its pod, "" for a pod without a node."""
    testers = parts[0][1].testers
    timeout = max(part.testers.lifetime for _unit, part in parts)
    states: list[State] = []
    pods = collection("v1", "pods", testers.namespace)
    for elapsed, found in watched(api, pods, testers.selector, see=state_of, timeout=timeout, clock=clock):
        states = list(found.values())
        if all(_settled(part, states, elapsed) for _unit, part in parts):
            break
    return {state.node or "": state for state in states}


def _settled(part: Part, states: Sequence[State], elapsed: float) -> bool:
    """Whether a unit will not change: all pods ended, one failed, or one does not start."""
    own = [state for state in states if state.name.startswith(part.testers.job_name + "-")]
    if any(state.over and "(Succeeded)" not in state.problem for state in own):
        return True
    missing = len(own) < len(part.hostnames) or any(not state.over and not state.running for state in own)
    return elapsed >= part.patience if missing else all(state.over for state in own)


def _ran(
    api: Api,
    unit: Unit,
    part: Part,
    *,
    endpoints: Mapping[str, str],
    params: Mapping[str, Any],
    states: Mapping[str, State],
) -> Ran:
    evidence = Evidence(params["evidence"], f"nccl/{unit.scope}-{part.testers.name}-{unit.hosts[0]}")
    evidence.prepare()
    output, problems, absent = {}, {}, ""
    for host in unit.hosts:
        state = states.get(endpoints[host])
        if state is None or not (state.over or state.running):
            waiting = state or states.get("")
            reason = (waiting.problem or "its pod did not start in time") if waiting else ""
            absent = absent or ("" if reason else jobs.why_no_pod(api, part.testers, part.patience))
            problems[host] = reason or absent
            continue
        try:
            timeout = _LOG_TIMEOUT if state.over else _UNFINISHED
            output[host] = read_log(api, part.testers.namespace, state.name, until=DONE, timeout=timeout)
            evidence.log(host, output[host])
        except FabricError as error:
            problems[host] = reason_without_log(error, state.name, endpoints[host], ready=True)
    evidence.errors(problems)
    return Ran(unit, part.gpus, output, problems)
