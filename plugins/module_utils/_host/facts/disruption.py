# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a port may be disturbed, and whether it may be restored: one rule for all modules. Pure.

* A port with users now (a mount, TCP connections, queue pairs, or something that cannot be read) is not disturbed
  without consent.
* A reboot ends what runs on all RDMA ports. What a drain ends is no reason against it.
* A port that this collection configured once is restored only while nothing else owns it now: no address or route that
  this collection did not set, nothing stacked on it. Consent does not change that.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from ..._common import host_facts
from ..._common.consent import CONSENT
from ..._common.errors import InUseError
from . import port_use
from .devices import Port
from .inventory import HostInventory
from .loaded_drivers import VENDOR_CARD
from .network import stacked_on

USERS = ("mount", "tcp", "queue_pairs", "unknown")
OWNERS = ("address", "route", "bridge", "vlan", "bond")
# Where something runs that a reboot ends. What the kernel keeps (mounts, block devices) may be a pod's or the host's.
HOST, POD, KERNEL, NODE = "host", "pod", "kernel", "node"
# What a holder is called that no program is.
KERNEL_SOCKET = "the kernel"
# What stands in the way of a reboot: of a host that is not drained, of one that is drained next, and of a drained one.
IN_THE_WAY = {"none": (HOST, POD, KERNEL), "next": (HOST,), "done": (HOST, KERNEL)}
# How every kubelet lays out the volumes of pods, below its own folder.
_POD_VOLUME = re.compile(r"/(pods/[0-9a-f-]{36}/volume|plugins/kubernetes\.io/)")


class Work(NamedTuple):
    """Something that a reboot ends, and where it runs."""

    text: str
    place: str


def users(inventory: HostInventory, port: Port) -> list[str]:
    """Return what a port is used for now; nobody is disturbed where there is nothing."""
    return [use.text for use in inventory.uses(port) if use.kind in USERS]


def owners(inventory: HostInventory, port: Port) -> list[str]:
    """Return what owns a port beside this collection; idle, but not to be changed."""
    return [use.text for use in inventory.uses(port) if use.kind in OWNERS]


def at_first(inventory: HostInventory, port: Port) -> list[str]:
    """Return the owners of a port to record: those now, and those that ``rail_links`` found and restores."""
    return list(dict.fromkeys([*owners(inventory, port), *inventory.first.get(port.pci, ())]))


def with_owners(inventory: HostInventory, record: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return a record by PCI address in which each port that is there has the owners of when it was recorded."""
    ports = inventory.by_pci
    return {
        pci: one if "owners" in one or pci not in ports else {**one, "owners": at_first(inventory, ports[pci])}
        for pci, one in record.items()
    }


def check(inventory: HostInventory, changes: Mapping[str, str], consent: bool) -> None:
    """ConflictError when a change would disturb users; ``changes`` maps PCI addresses to what would change."""
    refuse(problems(inventory, changes), consent)


def problems(inventory: HostInventory, changes: Mapping[str, str]) -> list[str]:
    """Return a text for each change that would disturb users."""
    ports = inventory.by_pci
    return [
        f"{ports[pci].title}: {disturbs(what, found)}"
        for pci, what in changes.items()
        if pci in ports
        for found in [users(inventory, ports[pci])]
        if found
    ]


def disturbs(what: str, found: Iterable[str]) -> str:
    """Say whom a change would disturb."""
    return f"{what} would disturb its users: {', '.join(found)}"


def refuse(problems: Collection[str], consent: bool) -> None:
    """ConflictError with all problems, unless there is consent to disturb users."""
    if problems and not consent:
        raise InUseError(f"{'; '.join(problems)}. Stop these users and retry, or set {CONSENT}: true")


def left_alone(inventory: HostInventory, known: Mapping[str, Collection[str]], what: str) -> dict[str, str]:
    """Return the recorded ports that something else owns now, with the warning that they are not restored.

    ``known`` maps each recorded port to the owners that it had when it was recorded, which are no reason.
    """
    ports = inventory.by_pci
    found = {
        pci: [owner for owner in owners(inventory, ports[pci]) if owner not in before]
        for pci, before in known.items()
        if pci in ports
    }
    return {
        pci: (
            f"{ports[pci].title} is now used by another owner: {', '.join(others)}. {what} not "
            "restored; the record is kept, and a run without this owner restores them"
        )
        for pci, others in found.items()
        if others
    }


def place(holder: str, cgroup: str, node_programs: Collection[str]) -> str:
    """Return where a holder like ``python3[4711]`` runs; ``node_programs`` serve the node itself, as its kubelet."""
    name, bracket, _pid = holder.rpartition("[")
    if not bracket:
        return KERNEL
    if "kubepods" in cgroup:
        return POD
    return NODE if name in node_programs else HOST


def work_addresses(inventory: HostInventory) -> list[str]:
    """Return the addresses of RDMA ports whose TCP connections count as work at a reboot.

    Those of the device that has the default route or the ssh connection of this run do not: the management of the host
    uses them all the time, also when nothing else runs.
    """
    managed = (*inventory.default_route, inventory.ssh_netdev)
    names = _rdma_netdevs(inventory)
    interfaces = [one for one in inventory.interfaces if one.name in names and one.name not in managed]
    return [address.split("/")[0] for one in interfaces for address in one.addresses]


def work(
    inventory: HostInventory, connections: Mapping[str, Collection[str]] | None, places: Mapping[str, str]
) -> list[Work]:
    """Return what a reboot ends: mounts over RDMA ports, queue pairs, and TCP connections of ``work_addresses``.

    ``connections`` is address -> holders, None when it cannot be read. ``places`` is holder -> where it runs.
    """
    pairs = inventory.activity.queue_pairs
    found = [] if pairs is not None else [Work(host_facts.HIDDEN_QUEUE_PAIRS.text, HOST)]
    found += _parted("RDMA queue pairs of", {one for held in (pairs or {}).values() for one in held}, places)
    for address, held in (connections or {}).items():
        found += _parted(f"TCP connections on {address} of", held, places)
    if connections is None:
        found.append(Work(port_use.HIDDEN_CONNECTIONS.text, HOST))
    names = _rdma_netdevs(inventory)
    mounts = port_use.mount_uses(names, inventory.activity) if names else []
    return [*found, *(Work(text, _place_of_mount(text)) for text in dict.fromkeys(use.text for use in mounts))]


def in_the_way(found: Iterable[Work], drain: str) -> list[str]:
    """Return the work that stops a reboot; ``drain`` is ``none``, ``next`` or ``done``."""
    return [one.text for one in found if one.place in IN_THE_WAY[drain]]


def left_in_pods(found: Iterable[Work], drain: str) -> list[str]:
    """Return the work of pods that a drain leaves: those of DaemonSets and static pods."""
    return [one.text for one in found if one.place == POD] if drain == "done" else []


def _rdma_netdevs(inventory: HostInventory) -> set[str]:
    """Return the network devices of RDMA ports, and those on top of them."""
    ports = [port for port in inventory.ports if port.rdma or port.driver == VENDOR_CARD]
    names = {port.netdev.name for port in ports if port.netdev}
    return names | {upper.name for name in names for upper in stacked_on(inventory.interfaces, name)}


def _parted(title: str, holders: Collection[str], places: Mapping[str, str]) -> list[Work]:
    """Return one entry for each place where holders run."""
    parts: dict[str, list[str]] = {}
    for holder in sorted(set(holders)):
        parts.setdefault(places.get(holder, HOST), []).append(holder)
    return [Work(f"{title} {port_use.listed(part)}", where) for where, part in parts.items()]


def _place_of_mount(text: str) -> str:
    if _POD_VOLUME.search(text):
        return POD
    return KERNEL if text.startswith(port_use.NVME) else HOST
