# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start the testers' Job, see its pods run or say why not, and take everything away again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..._common.errors import ClusterError
from ..client.api import Api
from ..client.kinds import collection, path_of
from ..client.pods import State, ready_nodes, state_of
from ..client.poll import Clock
from ..client.watch import WINDOW, watched
from ..objects.apply import Options, apply_object
from .logs import pod_path
from .manifests import ENDPOINTS, Testers, account, config_map, job

# How long a pod may be unschedulable, or without its image, before we give it up.
PATIENCE = 20.0
# A healthy kubelet ends a tester within its grace period; before that nothing needs force.
KIND = 8.0


def start(
    api: Api, parts: Sequence[tuple[Testers, Sequence[str]]], endpoints: Mapping[str, str], *, clock: Clock
) -> None:
    """Remove what earlier runs left, then make ConfigMap, account and a Job for each part.

    The caller holds the namespace. ``parts``: the testers of each class of hosts, and the hostnames of their nodes.
    """
    testers = parts[0][0]
    remove(api, replace(testers, run=""), Options(), clock=clock)
    own = config_map([part for part, _hostnames in parts], endpoints)
    apply_object(api, own, Options(), clock=clock)
    owner = api.get(path_of(api, own)) if testers.role else None
    made = [job(part, hostnames) for part, hostnames in parts]
    for item in (*(account(testers, owner) if owner else ()), *made):
        apply_object(api, item, Options(), clock=clock)


def started_on(api: Api, testers: Testers, wanted: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return endpoint -> node as the testers were started, and why for those that were not; no nodes are listed."""
    path = f"{collection('v1', 'configmaps', testers.namespace)}/{testers.name}"
    data = (api.get(path) or {}).get("data") or {}
    started = json.loads(data.get(ENDPOINTS) or "{}")
    found = {name: started[name] for name in wanted if name in started}
    return found, {name: "no tester was started for it" for name in wanted if name not in found}


def pod_states(api: Api, testers: Testers) -> list[State]:
    """Return what the pods of the run are doing; the pods themselves name every node and are not kept."""
    pods = collection("v1", "pods", testers.namespace)
    return [state_of(pod) for pod in api.items(pods, labelSelector=testers.selector)]


def wait_running(
    api: Api, testers: Testers, endpoints: Mapping[str, str], *, timeout: float, clock: Clock
) -> tuple[dict[str, State], dict[str, str]]:
    """Return endpoint -> its running pod, and endpoint -> why it has none.

    ``endpoints``: name -> node. Ends when every pod runs, is over, or was stuck for a while.
    """
    first_stuck: dict[str, float] = {}
    states: list[State] = []
    pods = collection("v1", "pods", testers.namespace)
    for elapsed, found in watched(api, pods, testers.selector, see=state_of, timeout=timeout, clock=clock):
        states = list(found.values())
        for state in states:
            if state.problem:
                first_stuck.setdefault(state.name, elapsed)
            else:
                first_stuck.pop(state.name, None)
        if len(states) == len(endpoints) and all(_settled(s, first_stuck, elapsed) for s in states):
            break
    return _by_endpoint(endpoints, states, lambda: why_no_pod(api, testers, timeout))


def _settled(state: State, first_stuck: Mapping[str, float], elapsed: float) -> bool:
    return state.running or state.over or elapsed - first_stuck.get(state.name, elapsed) >= PATIENCE


def _by_endpoint(
    endpoints: Mapping[str, str], states: Sequence[State], why: Any
) -> tuple[dict[str, State], dict[str, str]]:
    on_node = {state.node: state for state in states if state.node}
    waiting = [state.problem for state in states if not state.node and state.problem]
    running: dict[str, State] = {}
    problems: dict[str, str] = {}
    reason = ""
    for endpoint, node in endpoints.items():
        state = on_node.get(node)
        if state is None:
            reason = reason or (waiting[0] if waiting else why())
            problems[endpoint] = f"no tester on node {node}: {reason}"
        elif state.running:
            running[endpoint] = state
        else:
            late = f"pod {state.name} did not start in time"
            problems[endpoint] = f"no tester on node {node}: {state.problem or late}"
    return running, problems


def why_no_pod(api: Api, testers: Testers, timeout: float) -> str:
    """Return why the Job made no pod: quota and admission speak in its events only."""
    path = collection("v1", "events", testers.namespace)
    said = [
        event.get("message") or ""
        for name in testers.job_names
        for event in api.items(path, fieldSelector=f"involvedObject.name={name},type=Warning")
    ]
    return said[-1] if said else f"no pod was scheduled in {timeout:.0f} s"


def present(api: Api, testers: Testers) -> list[str]:
    """Return the Jobs, ConfigMaps and pods of the run that are there; of all runs when it has no ID."""
    found = []
    for version, plural in (("batch/v1", "jobs"), ("v1", "configmaps"), ("v1", "pods")):
        for item in api.items(collection(version, plural, testers.namespace), labelSelector=testers.selector):
            found.append(f"{plural}/{item['metadata']['name']}")
    return found


def remove(api: Api, testers: Testers, options: Options, *, clock: Clock) -> list[str]:
    """Delete testers, also those that an earlier run left, wait until they are gone; return what was there.

    Pods on a node that is not ready are force-deleted: no kubelet will ever confirm their end.
    """
    found = present(api, testers)
    if options.check:
        return found
    for name in found:
        plural, _slash, item = name.partition("/")
        if plural != "pods":
            version = "batch/v1" if plural == "jobs" else "v1"
            api.delete(f"{collection(version, plural, testers.namespace)}/{item}")
    if found:
        _wait_no_pods(api, testers, options, clock=clock)
    return found


def _wait_no_pods(api: Api, testers: Testers, options: Options, *, clock: Clock) -> None:
    forced: set[str] = set()
    look = KIND
    left: Mapping[str, State] = {}
    pods = collection("v1", "pods", testers.namespace)
    for elapsed, left in watched(api, pods, testers.selector, see=state_of, timeout=options.timeout, clock=clock):
        if not left:
            return
        if elapsed >= look:
            _force(api, testers.namespace, left, forced=forced)
            look = elapsed + WINDOW
    names = ", ".join(left)
    raise ClusterError(
        f"tester pods still exist {options.timeout:.0f} s after their deletion: {names}."
        f" Check them in namespace {testers.namespace}"
    )


def _force(api: Api, namespace: str, left: Mapping[str, State], *, forced: set[str]) -> None:
    waiting = {name: state.node for name, state in left.items() if name not in forced}
    if not waiting:
        return
    ready = ready_nodes(api.items(collection("v1", "nodes")))
    for name, node in waiting.items():
        if node not in ready:
            api.delete(pod_path(namespace, name), {"gracePeriodSeconds": 0})
            forced.add(name)
