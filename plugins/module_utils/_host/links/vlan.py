# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VLAN interfaces of rails: the port carries them, and they have the rail's address. Pure.

Only those of the record were made by this collection. All others, also of the same name, are left alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..._common.errors import ConflictError
from ..facts.inventory import HostInventory
from ..facts.network import stacked_on
from ..facts.rail_ports import Rail
from . import ipv6, link_restore

# Name -> {port, id, mtu, up, addresses, sysctl}; ``port`` is a PCI address, "" for what no port carries.
States = Mapping[str, Mapping[str, Any]]
Record = Mapping[str, Mapping[str, Any]]


class Vlans(NamedTuple):
    """The VLAN interfaces of rails now and as desired."""

    before: dict[str, dict[str, Any]]
    after: dict[str, dict[str, Any]]


def ours(record: Record) -> dict[str, str]:
    """Return name -> PCI address of the VLAN interfaces of a record."""
    return {name: pci for pci, entry in record.items() for name in entry["set"].get("vlans", ())}


def current(
    inventory: HostInventory,
    names: Iterable[str],
    sysctl: Mapping[str, Mapping[str, str]],
    *,
    wanted: Mapping[str, Collection[str]],
) -> States:
    """Return the state of those of the named interfaces that exist; ``wanted`` is name -> addresses of the plan."""
    ports = {port.netdev.name: port.pci for port in inventory.ports if port.netdev}
    known = set(names)
    return {
        one.name: {
            "port": ports.get(one.lower or "", ""),
            "id": one.vlan,
            "mtu": one.mtu,
            "up": one.up,
            "addresses": ipv6.managed(one, {*one.addresses} - {*one.dynamic}, wanted.get(one.name, ())),
            "sysctl": dict(sysctl.get(one.name, {})),
        }
        for one in inventory.interfaces
        if one.name in known
    }


def plan(
    inventory: HostInventory,
    rails: Iterable[Rail],
    record: Record,
    *,
    sysctl: Mapping[str, Mapping[str, str]],
    rules: Mapping[str, str],
    owned: Iterable[str],
) -> Vlans:
    """Return the interfaces now and as desired; ``rules`` are the sysctl values of rails.

    Those of ports that have another owner now (``owned``) stay. ConflictError for a name that something else has.
    """
    own, kept, rails = ours(record), set(owned), tuple(rails)
    wanted = {rail.vlan_netdev: rail for rail in rails if rail.vlan}
    addresses = {name: rail.addresses for name, rail in wanted.items()}
    found = current(inventory, {*own, *wanted}, sysctl, wanted=addresses)
    before = {name: dict(state) for name, state in found.items()}
    problems = [
        *_unusable(inventory, wanted, record, before=before),
        *_unremovable(inventory, rails, record, before=before),
    ]
    if problems:
        raise ConflictError("; ".join(problems))
    after = {name: state for name, state in before.items() if own[name] in kept or not _is(state, own[name], name)}
    for name, rail in wanted.items():
        now = before.get(name, {})
        others = {*now.get("addresses", ())} - {*record.get(rail.pci, {}).get("set", {}).get("addresses", ())}
        after[name] = {
            "port": rail.pci,
            "id": rail.vlan,
            "mtu": rail.mtu,
            "up": True,
            "addresses": sorted({*rail.addresses, *others}),
            "sysctl": dict(rules),
        }
    return Vlans(before, after)


def _unusable(inventory: HostInventory, wanted: Mapping[str, Rail], record: Record, *, before: States) -> Iterator[str]:
    """Yield why interfaces that are wanted cannot be."""
    own = ours(record)
    for name, rail in wanted.items():
        if name in before and (name not in own or not _is(before[name], rail.pci, name)):
            yield (
                f"rail {rail.name}: {name} exists and was not created by this collection. Remove it, or change vlan of"
                " the rail"
            )
        if inventory.port(rail.pci).infiniband:
            yield (f"rail {rail.name}: {rail.pci} is an InfiniBand port, which has no VLANs. Remove vlan of the rail")


def _unremovable(inventory: HostInventory, rails: Iterable[Rail], record: Record, *, before: States) -> Iterator[str]:
    """Yield what users have on interfaces that are to be removed."""
    names = {rail.pci: rail.name for rail in rails}
    wanted = {rail.vlan_netdev for rail in rails}
    for name, pci in ours(record).items():
        if name not in before or name in wanted or not _is(before[name], pci, name):
            continue
        added = sorted({*before[name]["addresses"]} - {*record[pci]["set"]["addresses"]})
        for address in added if pci in names else ():
            yield (
                f"rail {names[pci]}: {name}, which is to be removed, has the address {address}, which this collection"
                " did not set. Remove the address, or keep vlan of the rail"
            )
        carried = ", ".join(one.name for one in stacked_on(inventory.interfaces, name))
        if carried:
            yield (
                f"{inventory.port(pci).title}: {name}, which is to be removed, carries {carried}, which this collection"
                f" did not create. Remove {carried}, or keep vlan of the rail"
            )


def disturbed(vlans: Vlans) -> set[str]:
    """Return the PCI addresses of ports whose VLAN interfaces change so that users notice it."""
    return {
        state["port"]
        for name, state in vlans.before.items()
        if name not in vlans.after or link_restore.disturbs(state, vlans.after[name])
    }


def noted(entry: Mapping[str, Any], rail: Rail) -> dict[str, Any]:
    """Return the record of a rail's port with its VLAN interface, whose address counts as that of the port."""
    if not rail.vlan:
        return dict(entry)
    addresses = sorted({*entry["set"]["addresses"], *rail.addresses})
    return {**entry, "set": {**entry["set"], "addresses": addresses, "vlans": [rail.vlan_netdev]}}


def commands(wanted: States, found: States, netdevs: Mapping[str, str]) -> list[list[str]]:
    """Return the ``ip`` commands that remove and create interfaces; ``netdevs`` is PCI address -> name of the port."""
    gone = [["ip", "link", "del", "dev", name] for name in found if name not in wanted]
    made = [
        ["ip", "link", "add", "link", netdevs[state["port"]], "name", name, "type", "vlan", "id", str(state["id"])]
        for name, state in wanted.items()
        if name not in found
    ]
    return [*gone, *made]


def differences(wanted: States, found: States) -> list[str]:
    """Say which interfaces are not there, or are there and should not be."""
    absent = [f"{name} does not exist" for name in wanted if name not in found]
    return [*absent, *(f"{name} exists, expected none" for name in found if name not in wanted)]


def _is(state: Mapping[str, Any], pci: str, name: str) -> bool:
    return bool(state["port"] == pci and name.endswith(f".{state['id']}"))
