# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Is the cluster really ready? Pure predicates over what the API server returned, true to recordings of the operator.

A policy's own ``state: ready`` is not enough: it is shown for a second after an edit, for as long as the controller
manager lags, and it flaps. So everything that the policy owns is looked at, and ``Stable`` asks that it holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._common.reader import some
from ..intent.releases import LINES, Line, line_of
from .common import image_reference
from .deployments import is_operator
from .nodes import NIC_LABEL, NIC_LABEL_NAME
from .pod_failures import pod_findings
from .sections import resource_key

Object = Mapping[str, Any]

# What a section of the policy becomes: label of its DaemonSet, path of the section in the spec.
_DRIVER = "state-OFED"
_STATES = {
    "state-multus-cni": ("secondaryNetwork", "multus"),
    "state-container-networking-plugins": ("secondaryNetwork", "cniPlugins"),
    "state-ipoib-cni": ("secondaryNetwork", "ipoib"),
    "state-RDMA-device-plugin": ("rdmaSharedDevicePlugin",),
    "state-SRIOV-device-plugin": ("sriovDevicePlugin",),
    "state-nv-ipam-cni": ("nvIpam",),
    "state-nic-feature-discovery": ("nicFeatureDiscovery",),
    "state-doca-telemetry-service": ("docaTelemetryService",),
    "state-nic-configuration-operator": ("nicConfigurationOperator", "configurationDaemon"),
    _DRIVER: ("ofedDriver",),
}
_DEVICE_PLUGINS = ("state-RDMA-device-plugin", "state-SRIOV-device-plugin")
# These run on nodes with a NIC only; the others run on every node of the cluster that takes pods.
_ON_NIC_NODES = (*_DEVICE_PLUGINS, _DRIVER)
_STATE_LABEL = "nvidia.network-operator.state"
_UPGRADE_LABEL = "nvidia.com/ofed-driver-upgrade-state"


@dataclass(frozen=True)
class Finding:
    """One reason why something is not ready; ``terminal`` when waiting alone will not help.

    ``seconds``: for how long that must be so, since its source may be late, or flap.
    """

    reason: str
    terminal: bool = False
    seconds: float = 10.0


@dataclass(frozen=True)
class Readiness:
    """The answer: ``ready``, or ``reasons`` why not; ``failed`` when waiting will not help.

    ``after``: for how many seconds each kind of its terminal findings must be seen.
    """

    ready: bool
    failed: bool
    reasons: tuple[str, ...]
    after: tuple[float, ...] = ()

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> Readiness:
        """Join findings; those that are terminal come first."""
        found = sorted(findings, key=lambda finding: not finding.terminal)
        after = tuple(sorted({f.seconds for f in found if f.terminal}))
        return cls(not found, bool(after), tuple(f.reason for f in found), after)

    @classmethod
    def joined(cls, parts: Iterable[Readiness]) -> Readiness:
        """Join the answers on several objects into one."""
        every = sorted(parts, key=lambda part: not part.failed)
        reasons = tuple(reason for part in every for reason in part.reasons)
        after = tuple(sorted({seconds for part in every for seconds in part.after}))
        return cls(all(part.ready for part in every), any(part.failed for part in every), reasons, after)


class Stable:
    """Says when readiness has held for ``seconds``; the caller brings the clock."""

    def __init__(self, seconds: float) -> None:
        """Start with nothing seen."""
        self.seconds = seconds
        self._since: float | None = None

    def update(self, now: float, readiness: Readiness) -> bool:
        """Note what was seen at ``now`` (seconds, any origin); return whether it has been ready long enough."""
        if not readiness.ready:
            self._since = None
            return False
        if self._since is None:
            self._since = now
        return now - self._since >= self.seconds


class Hopeless:
    """Says when what waiting cannot help was seen for long enough; the caller brings the clock."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self._since: dict[float, float] = {}

    def update(self, now: float, readiness: Readiness) -> bool:
        """Note what was seen at ``now`` (seconds, any origin); return whether to give up."""
        self._since = {seconds: self._since.get(seconds, now) for seconds in readiness.after}
        return any(now - since >= seconds for seconds, since in self._since.items())


def policy_ready(
    policy: Object | None,
    daemonsets: Sequence[Object],
    deployments: Sequence[Object],
    *,
    nodes: Sequence[Object],
    pods: Sequence[Object],
    expected_nodes: Collection[str],
    release: str,
    resources: Mapping[str, int] | None = None,
) -> Readiness:
    """Return whether the NicClusterPolicy is in force on all ``expected_nodes``.

    All objects are dicts as the API returns them; those of other owners may be among them. ``deployments`` holds
    the operator's own too. ``resources``: device plugin resource (as in the plan) -> count that every node must offer.
    """
    if policy is None:
        return Readiness.of([Finding("NicClusterPolicy is absent")])
    line = line_of(release)
    if line is None:
        # What its policy says cannot be judged.
        return Readiness.of([Finding(f"release {release} is not supported. Supported: {', '.join(LINES)}", True)])
    own = [item for item in daemonsets if is_owned(item, policy)]
    wanted = sorted(expected_nodes)
    findings = [
        *policy_status(policy, line, "NicClusterPolicy"),
        *rollouts(policy, own, len(wanted)),
        *_deployments(policy, deployments),
        *_nodes(policy, nodes, wanted, resources=resources or {}, hint=restart_hint(line, own)),
        *(Finding(reason, terminal) for reason, terminal in pod_findings(pods, own)),
    ]
    return Readiness.of(findings)


def is_owned(item: Object, owner: Object) -> bool:
    """Return whether ``owner`` is among the owners of ``item`` (by uid, or by kind and name without one)."""
    meta = owner["metadata"]
    for reference in item["metadata"].get("ownerReferences") or ():
        if reference.get("uid") and meta.get("uid"):
            if reference["uid"] == meta["uid"]:
                return True
        elif (reference["kind"], reference["name"]) == (owner["kind"], meta["name"]):
            return True
    return False


def policy_status(policy: Object, line: Line, title: str) -> Iterator[Finding]:
    """Yield what the status of a policy says against it."""
    status = policy.get("status") or {}
    if not status.get("state"):
        yield Finding(f"{title}: the operator has not reported a status yet")
        return
    if status["state"] == "ignore":
        yield Finding(f"NicClusterPolicy is ignored by the operator: {status.get('reason', 'no reason given')}", True)
    elif status["state"] == "error":
        # Only a NicNodePolicy has this state, such as when another one selects the same nodes.
        yield Finding(f"{title}: {status.get('reason') or 'the operator reports an error without a reason'}", True)
    elif status["state"] != "ready":
        yield Finding(f"{title}: state is {status['state']}")
    yield from _generation(policy, status, line, title=title)
    for part in status.get("appliedStates", ()):
        if part["state"] not in ("ready", "ignore"):
            # The first status of a new policy has no messages; they follow within a second.
            message = f": {part['message']}" if part.get("message") else ""
            yield Finding(f"{part['name']} is {part['state']}{message}", part["state"] == "error" and bool(message))


def _generation(policy: Object, status: Object, line: Line, *, title: str) -> Iterator[Finding]:
    """Yield a finding while the status belongs to an older spec (only newer lines tell)."""
    if not line.has("NicClusterPolicy", "status.conditions"):
        return
    seen = [c.get("observedGeneration") for c in status.get("conditions", ()) if c["type"] == "Ready"]
    generation = policy["metadata"].get("generation")
    if seen != [generation]:
        yield Finding(f"{title}: the operator has not observed generation {generation} yet")


def rollouts(policy: Object, own: Sequence[Object], nodes: int) -> Iterator[Finding]:
    """Yield what keeps the DaemonSets of a policy from running as it says on so many nodes."""
    states = {_state(item) for item in own}
    for state, path in _STATES.items():
        if _section(policy, path) and state not in states:
            yield Finding(f"{state}: no DaemonSet yet")
    # The operator makes one for each operating system and kernel of the nodes.
    drivers = [item for item in own if _state(item) == _DRIVER]
    elsewhere = sum((item.get("status") or {}).get("desiredNumberScheduled", 0) for item in drivers)
    for item in own:
        others = elsewhere - (item.get("status") or {}).get("desiredNumberScheduled", 0) if item in drivers else 0
        by_hand = item in drivers and not _upgrades(policy)
        yield from _rollout(item, nodes - others, by_hand)
        yield from _image(policy, item)


def _upgrades(policy: Object) -> bool:
    """Return whether the operator replaces drivers, and labels the nodes with how far it is."""
    return bool(_section(policy, (*_STATES[_DRIVER], "upgradePolicy")).get("autoUpgrade"))


def _state(item: Object) -> str:
    """Return which state of the operator made an object; the name that ``appliedStates`` uses."""
    return (item["metadata"].get("labels") or {}).get(_STATE_LABEL, "")


def _section(policy: Object, path: Sequence[str]) -> Object:
    part: Any = policy.get("spec") or {}
    for key in path:
        part = part.get(key) or {}
    return part


def _rollout(item: Object, nodes: int, by_hand: bool) -> Iterator[Finding]:
    """Yield what keeps a DaemonSet from running its newest pods on all ``nodes`` nodes of the fabric.

    ``by_hand``: pods stay as they are until somebody deletes them.
    """
    name = f"DaemonSet {item['metadata']['name']}"
    status = item.get("status") or {}
    desired = status.get("desiredNumberScheduled", 0)
    updated = status.get("updatedNumberScheduled", 0)
    available = status.get("numberAvailable", 0)
    if status.get("observedGeneration") != item["metadata"].get("generation"):
        yield Finding(f"{name}: the controller has not observed the latest change yet")
    elif desired < nodes:
        yield Finding(f"{name}: scheduled on {desired} nodes, expected {nodes}: check the labels of the nodes")
    elif desired > nodes and _state(item) in _ON_NIC_NODES:
        yield Finding(f"{name}: scheduled on {desired} nodes, expected {nodes}: narrow rdma_fabric.node_selector")
    elif by_hand and updated < desired == available:
        yield Finding(
            f"{name}: {desired - updated} of {desired} pods run the driver of before, and nothing replaces them:"
            " rdma_fabric.operator.driver.upgrade.auto is false. Set it, or delete these pods when nothing uses them",
            True,
        )
    elif (updated, available) != (desired, desired):
        yield Finding(f"{name}: {updated} of {desired} pods updated, {available} available")


def _image(policy: Object, item: Object) -> Iterator[Finding]:
    """Yield a finding while a DaemonSet does not run the image that the policy names."""
    path = _STATES.get(_state(item))
    section = _section(policy, path) if path else {}
    version = section.get("version") or _section(policy, ("global",)).get("version")
    containers = (((item.get("spec") or {}).get("template") or {}).get("spec") or {}).get("containers") or []
    if not section or not version or not containers:
        return
    # The tag of a driver goes on with the operating system and architecture.
    wanted = image_reference(section["image"], version)
    if not any(container["image"].rsplit("/", 1)[-1].startswith(wanted) for container in containers):
        name = item["metadata"]["name"]
        yield Finding(f"DaemonSet {name}: runs image {containers[0]['image']}, expected {wanted}")


def _deployments(policy: Object, deployments: Sequence[Object]) -> Iterator[Finding]:
    operators = [item for item in deployments if is_operator(item)]
    if not operators:
        yield Finding("the operator's Deployment is absent")
    for item in [*operators, *(item for item in deployments if is_owned(item, policy))]:
        name = f"Deployment {item['metadata']['name']}"
        status = item.get("status") or {}
        wanted = (item.get("spec") or {}).get("replicas", 1)
        counts = [status.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas")]
        if status.get("observedGeneration") != item["metadata"].get("generation"):
            yield Finding(f"{name}: the controller has not observed the latest change yet")
        elif counts != [wanted] * 3:
            yield Finding(f"{name}: {counts[1]} of {wanted} pods updated, {counts[2]} available, {counts[0]} in total")


def has_labels(item: Object, labels: Mapping[str, str]) -> bool:
    """Return whether an object has all the labels."""
    return labels.items() <= (item["metadata"].get("labels") or {}).items()


def _nodes(
    policy: Object, nodes: Sequence[Object], wanted: Sequence[str], *, resources: Mapping[str, int], hint: str
) -> Iterator[Finding]:
    """Yield what nodes lack; ``hint``: what else to say of resources that they do not offer."""
    by_name = {node["metadata"]["name"]: node for node in nodes}
    missing = [name for name in wanted if name not in by_name]
    if missing:
        yield Finding(f"missing Nodes: {some(missing)}")
    known = [by_name[name] for name in wanted if name in by_name]
    unlabelled = [node["metadata"]["name"] for node in known if not has_labels(node, NIC_LABEL)]
    if unlabelled:
        yield Finding(f"Nodes without the label {NIC_LABEL_NAME}: {some(unlabelled)}. Set it with NFD or node_labels")
    if _upgrades(policy):
        for node in known:
            yield from _driver(node)
    for resource, count in resources.items():
        yield from allocatable(known, resource_key(resource), count, hint=hint)


def restart_hint(line: Line, own: Sequence[Object]) -> str:
    """Return how to restart the device plugins where the operator may not do it; empty where it does."""
    found = [] if line.restarts_device_plugin else [item["metadata"] for item in own if _state(item) in _DEVICE_PLUGINS]
    commands = [f"kubectl --namespace {m.get('namespace')} rollout restart daemonset/{m['name']}" for m in found]
    if not commands:
        return ""
    return (
        f". Release line {line.name} of the network operator may not restart a device plugin after a change of its"
        f" configuration. If the resource is still missing after a minute, run: {' && '.join(commands)}"
    )


def _driver(node: Object) -> Iterator[Finding]:
    state = (node["metadata"].get("labels") or {}).get(_UPGRADE_LABEL)
    if state != "upgrade-done":
        reason = f"Node {node['metadata']['name']}: driver upgrade is {state or 'not started'}"
        yield Finding(reason, state == "upgrade-failed")


def allocatable(nodes: Sequence[Object], resource: str, count: int, *, hint: str) -> Iterator[Finding]:
    """Yield which nodes do not offer so many of a resource; ``hint``: what else to say of it."""
    short = []
    for node in nodes:
        offered = ((node.get("status") or {}).get("allocatable") or {}).get(resource)
        if str(offered) != str(count):
            short.append(f"{node['metadata']['name']} ({offered or 0})")
    if short:
        yield Finding(f"{resource}: expected {count} on each node, found {some(short)}{hint}")
