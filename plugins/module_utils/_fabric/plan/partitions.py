# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the administrator of an InfiniBand subnet manager sets for the rails: lines of OpenSM's partitions.conf.

With ib-kubernetes UFM does it, and only the range of GUIDs is compared with those of the hosts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..._common.errors import InputError
from ..._common.fold import fold
from ..._common.reader import some
from ..._common.vf_identity import vf_guid
from ..intent.intent import Intent
from ..intent.sriov import guid_number
from ..operator.profiles import registry
from ..operator.profiles.profile import INFINIBAND_MTU
from .host_classes import Part
from .hosts import Host
from .layout import Layout
from .rails import Port

FULL_MEMBER = 0x8000
# Codes of InfiniBand for 2048 and 4096 bytes.
_MTU_2048, _MTU_4096 = 4, 5
_NAME = "gpufabric"
_IPOIB_OCTETS, _GUID_OCTETS = 20, 8


def lines(layout: Layout) -> list[str]:
    """Return the lines; none where the rails are not InfiniBand, or UFM has the partitions."""
    intent = layout.intent
    profile = registry.get(intent.profile)
    if profile.link_layer != "infiniband" or intent.sriov.ib_kubernetes.ufm_secret:
        return []
    mtu = _MTU_4096 if registry.mtu_of(intent) > INFINIBAND_MTU.default else _MTU_2048
    found = [
        "# For the subnet manager of the rails. With OpenSM: lines of partitions.conf, beside those of other ports.",
        "# With the subnet manager of a switch: the same partition, members and MTU (4: 2048 bytes, 5: 4096 bytes).",
    ]
    if profile.host_vfs(intent) is not None or profile.operator_makes_vfs(intent):
        found.append(
            "# The ports have virtual functions: enable virtualization (virt_enabled 2 in opensm.conf of DOCA)."
        )
    key = intent.pkey or intent.sriov.pkey
    if not key:
        return [*found, f"Default=0x7fff, ipoib, mtu={mtu} : ALL=full ;"]
    # Without the bit of full members, which is that of each member. The first key of a port is that of its IPoIB.
    number = int(key, 16) & ~FULL_MEMBER
    head = f"{_NAME}=0x{number:04x}, indx0, ipoib, mtu={mtu}, defmember=full :"
    return [*found, *_members(layout, head)]


def of_rail(intent: Intent) -> dict[str, Any]:
    """Return the partition in which hosts and pods use each rail, as {"pkey": {place: key}}; {} for the first one.

    With VFs only those of pods are in it: the port of the host has its own.
    """
    places = {"host": intent.pkey, "pod": intent.pkey or intent.sriov.pkey}
    found = {place: key for place, key in places.items() if key}
    return {"pkey": found} if found else {}


def check_guids(parts: Sequence[Part], plans: Sequence[Mapping[str, Any]]) -> None:
    """InputError when a range of GUIDs for UFM is too small, or has one that a port or a VF has already.

    ``plans``: those of the parts. There is one ib-kubernetes in a cluster, so classes share its range.
    """
    needed: dict[tuple[str, str], int] = {}
    for part, plan in zip(parts, plans):
        own = part.intent.sriov
        if own.ib_kubernetes.first_guid and own.ib_kubernetes.last_guid:
            span = (own.ib_kubernetes.first_guid, own.ib_kubernetes.last_guid)
            needed[span] = needed.get(span, 0) + len(part.hosts) * len(plan["rails"]) * own.vfs
    for (low, high), count in needed.items():
        first, last = guid_number(low), guid_number(high)
        where = f"rdma_fabric.sriov.ib_kubernetes: the GUIDs from {low} to {high}"
        if last - first + 1 < count:
            raise InputError(f"{where} are {last - first + 1}, but the VFs of the hosts need {count}. Extend the range")
        taken = [text for part in parts for text, guid in _guids_of(part) if first <= guid_number(guid) <= last]
        if taken:
            raise InputError(
                f"{where} include those of ports: {some(taken)}. Set a range that no port and no other cluster of the"
                " fabric has"
            )


def _guids_of(part: Part) -> Iterator[tuple[str, str]]:
    """Yield the devices of all hosts with their GUIDs, and the VFs that this collection makes on them."""
    vfs = registry.get(part.intent.profile).host_vfs(part.intent) or 0
    for host in part.hosts:
        for device in (host.facts or {}).get("rdma_devices", ()):
            if device["node_guid"]:
                yield f"{host.name} {device['name']} ({device['node_guid']})", device["node_guid"]
                for index in range(vfs):
                    guid = vf_guid(device["node_guid"], index)
                    yield f"{host.name} {device['name']} VF {index} ({guid})", guid


def _members(layout: Layout, head: str) -> Iterator[str]:
    """Yield one line for each rail of each host, since OpenSM adds up lines with the same key."""
    profile = registry.get(layout.intent.profile)
    if profile.operator_makes_vfs(layout.intent):
        yield "# Members: the GUIDs in /etc/sriov-operator/infiniband/guids of each node, which you choose."
        yield f"# {head} GUID, GUID ;"
        return
    unknown = []
    for host in layout.hosts:
        for rail, port in layout.rails.of(host.name):
            found = _guids(host, port, profile.host_vfs(layout.intent))
            if found:
                yield f"# {host.name} {rail}"
                yield f"{head} {', '.join(f'0x{guid}' for guid in found)} ;"
            else:
                unknown.append(host.name)
        if not host.facts:
            unknown.append(host.name)
    if unknown:
        yield f"# Members of {fold(list(dict.fromkeys(unknown)))} are missing: the facts have no GUIDs of their ports."


def _guids(host: Host, port: Port, vfs: int | None) -> list[str]:
    """Return the GUIDs of a port's VFs, or that of the port where it has none (None); empty when they are unknown."""
    if vfs is None:
        # The address of an IPoIB interface ends in the GUID of its port.
        octets = port["mac"].lower().split(":")
        return ["".join(octets[-_GUID_OCTETS:])] if len(octets) == _IPOIB_OCTETS else []
    devices = (host.facts or {}).get("rdma_devices", ())
    own = next((device["node_guid"] for device in devices if device["pci"] == port["pci"]), None)
    return [vf_guid(own, index).replace(":", "") for index in range(vfs)] if own else []
