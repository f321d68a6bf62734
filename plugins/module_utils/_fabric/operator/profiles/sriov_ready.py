# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Are VFs and their networks in force? Neither policies nor networks have a status; states of nodes have one that lies.

``syncStatus: Succeeded`` can be that of an older policy, or be shown with VFs missing, so the ports are compared. A
policy that cannot be applied never becomes ``Failed`` in the daemon's usual mode: it stays ``InProgress``, without an
error, and only the daemon's log has the reason. So what makes it impossible is looked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from ...._common.pci import NIC_VENDOR
from ...._common.reader import some
from ...intent import platforms
from ..attachments import RESOURCE_NAME
from ..network_ready import attached, ipam
from ..readiness import Finding, Readiness
from .profile import Object

_STATE = "sriovnetwork.openshift.io/{}-state"
# CNI plugin -> kind of network.
_KINDS = {"sriov": "SriovNetwork", "ib-sriov": "SriovIBNetwork"}
# Field of a network -> key of the plugin's configuration.
_KEYS = {"vlan": "vlan", "spoofChk": "spoofchk", "trust": "trust", "linkState": "link_state"}


def network_ready(network: Object, nad: Object | None, *, plugin: str = "sriov") -> Readiness:
    """Return whether a network of VFs is in force as its NetworkAttachmentDefinition ``nad`` (None: not there).

    ``plugin``: the CNI plugin that the operator makes of it.
    """
    spec, name = network["spec"], f"{_KINDS[plugin]} {network['metadata']['name']}"
    own = {"type": plugin, **{key: spec[field] for field, key in _KEYS.items() if field in spec}}
    try:
        plugins = [{**own, "ipam": ipam(spec)}, *json.loads(f"[{spec.get('metaPlugins') or ''}]")]
    except ValueError:
        return Readiness.of([Finding(f"{name}: its metaPlugins are not valid JSON", True)])
    own_namespace = str(network["metadata"].get("namespace"))
    namespace, domain = spec.get("networkNamespace") or own_namespace, platforms.of_sriov(own_namespace).sriov_domain
    return Readiness.of(
        [*attached(name, namespace, plugins, nad=nad), *_resource(name, domain + spec["resourceName"], nad)]
    )


def _resource(name: str, expected: str, nad: Object | None) -> Iterator[Finding]:
    if nad is None:
        return
    found = (nad["metadata"].get("annotations") or {}).get(RESOURCE_NAME)
    if found != expected:
        yield Finding(
            f"{name}: its NetworkAttachmentDefinition has the resource {found or 'none'}, expected {expected}; the"
            " operator's chart sets the prefix in sriov-network-operator.operator.resourcePrefix"
        )


def node_ready(policies: Sequence[Object], state: Object | None, node: str) -> Readiness:
    """Return whether a node has the VFs of the policies; ``state``: its SriovNetworkNodeState (None: not there)."""
    if state is None:
        reason = f"Node {node}: the SR-IOV operator has no state of it; check that its config daemon runs on the node"
        return Readiness.of([Finding(reason)])
    findings = [finding for policy in policies for finding in _ports(policy["spec"], state, node)]
    return Readiness.of([*_sync(state, node), *findings])


def lacks(state: Object | None, node: str) -> str:
    """Return why a policy would come too early for a node; empty text when it would not.

    The operator copies policies to nodes whose ports are known, and looks again after five minutes only.
    """
    if not ((state or {}).get("status") or {}).get("interfaces"):
        return f"Node {node}: no ports are reported"
    return ""


def works(state: Object | None) -> bool:
    """Return whether the daemon of a node is at work, or fails again and again, which looks the same."""
    return ((state or {}).get("status") or {}).get("syncStatus") == "InProgress"


def boots(state: Object | None) -> bool:
    """Return whether the operator wants to reboot a node."""
    notes = ((state or {}).get("metadata") or {}).get("annotations") or {}
    return notes.get(_STATE.format("desired")) == "Reboot_Required"


def _sync(state: Object, node: str) -> Iterator[Finding]:
    status = state.get("status") or {}
    sync, error = status.get("syncStatus"), status.get("lastSyncError")
    notes = state["metadata"].get("annotations") or {}
    current, desired = (notes.get(_STATE.format(which)) or "unknown" for which in ("current", "desired"))
    if sync == "Failed":
        yield Finding(f"Node {node}: the SR-IOV operator failed: {error or 'no reason given'}", True)
    elif sync != "Succeeded":
        yield Finding(
            f"Node {node}: the SR-IOV operator reports {sync or 'no status'} (current state {current}, desired state"
            f" {desired}{f', error: {error}' if error else ''}). If that stays, read the log of its config daemon"
        )
    elif (current, desired) not in (("Idle", "Idle"), ("unknown", "unknown")):
        yield Finding(f"Node {node}: the SR-IOV operator is not done (current state {current}, desired {desired})")


def _ports(spec: Object, state: Object, node: str) -> Iterator[Finding]:
    """Yield what keeps the ports of one policy from having its VFs."""
    status = state.get("status") or {}
    for name in spec["nicSelector"]["pfNames"]:
        port = _port(status, name)
        if port is None:
            yield _unknown(name, status, node)
            continue
        requested = _port(state.get("spec") or {}, str(port["name"]))
        yield from _port_ready(f"Node {node}: port {name}", spec, port=port, requested=requested)


def _unknown(name: str, status: Object, node: str) -> Finding:
    known = [str(port.get("name")) for port in status.get("interfaces") or ()]
    if not known:
        return Finding(f"Node {node}: the SR-IOV operator reports no port {name}")
    reason = (
        f"Node {node}: the SR-IOV operator reports no port {name}, but {some(known)}. Check the name of the port on the"
        " node, and whether ConfigMap supported-nic-ids lists its model"
    )
    # The daemon looks at the ports every 30 seconds.
    return Finding(reason, True, 90.0)


def _port(part: Object, name: str) -> Object | None:
    ports = part.get("interfaces") or ()
    return next((port for port in ports if name in (port.get("name"), *(port.get("altNames") or ()))), None)


def _port_ready(title: str, spec: Object, *, port: Object, requested: Object | None) -> Iterator[Finding]:
    desired, found, most = spec["numVfs"], port.get("numVfs", 0), port.get("totalvfs", 0)
    # The operator raises the number in the firmware of NVIDIA's ports, unless others make the VFs.
    if desired > most and (spec.get("externallyManaged") or port.get("vendor") != NIC_VENDOR):
        yield Finding(f"{title} supports {most} VFs, the policy asks for {desired}", True)
    elif requested is None or requested.get("numVfs") != desired:
        yield Finding(f"{title}: the SR-IOV operator has not taken over the policy yet, which can take 5 minutes")
    elif found < desired or (found > desired and not spec.get("externallyManaged")):
        yield Finding(f"{title} has {found} VFs, expected {desired}")


def node_released(policies: Sequence[Object], state: Object | None, node: str) -> Readiness:
    """Return whether a node has none of the VFs of removed policies; those of other policies and of hosts stay."""
    findings = [finding for policy in policies for finding in _kept(policy, state or {}, node)]
    return Readiness.of(findings)


def _kept(policy: Object, state: Object, node: str) -> Iterator[Finding]:
    spec, own = policy.get("spec") or {}, policy["metadata"]["name"]
    names = [] if spec.get("externallyManaged") else (spec.get("nicSelector") or {}).get("pfNames") or []
    for port in filter(None, (_port(state.get("status") or {}, name) for name in names)):
        requested = _port(state.get("spec") or {}, str(port["name"]))
        owners = {group.get("policyName") for group in (requested or {}).get("vfGroups") or ()}
        if own in owners:
            yield Finding(f"Node {node}: the SR-IOV operator has not taken over the removal of {own} yet")
        elif requested is None and port.get("numVfs"):
            yield Finding(f"Node {node}: port {port['name']} still has {port['numVfs']} VFs of {own}")
