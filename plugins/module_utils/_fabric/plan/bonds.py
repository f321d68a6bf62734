# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rails that are bonds of the hosts: found by the name of the bond, known by the PCI addresses of its members."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..._common.errors import InputError
from ..._common.fold import fold
from ..._common.reader import raise_problems
from ..intent.intent import Intent
from ..operator.profiles import registry
from .doubt import folded
from .hosts import Host

Port = Mapping[str, Any]


def _check(intent: Intent) -> None:
    """Raise one InputError with what rails that are bonds do not have."""
    bonds = intent.bonds
    profile = registry.get(intent.profile)
    problems = []
    if bonds and (not profile.shares_port or profile.takes_port or profile.link_layer != "ethernet"):
        problems.append(
            f"rdma_fabric.rails: profile {intent.profile} does not support bonds. Remove bond, or set profile: macvlan"
        )
    if bonds and intent.operator.platform.machines:
        problems.append(
            "rdma_fabric.rails: bonds are not supported on hosts that objects of the cluster configure. Remove bond"
        )
    for name, bond in bonds.items():
        if intent.vlan_of(name):
            problems.append(f"rdma_fabric.rails: {name} is a bond, and VLANs of bonds are not supported. Set vlan: 0")
        others = [other for other in bonds if bonds[other] == bond and other != name]
        others += [rail.name for rail in intent.rails if rail.name == bond and not rail.bond and intent.rename]
        if others:
            problems.append(f"rdma_fabric.rails: {name} and {', '.join(others)} have the same interface, {bond}")
    raise_problems(problems)


def seen(intent: Intent, hosts: Sequence[Host]) -> tuple[Host, ...]:
    """Return the hosts as their rails see them: the first member of a bond that is a rail stands for the bond.

    InputError for bonds that a host does not have, or that cannot be rails, for members with other names, and for what
    is not supported with bonds.
    """
    if not intent.bonds:
        return tuple(hosts)
    _check(intent)
    problems: dict[str, list[str]] = {}
    found = [_seen(intent, host, problems) for host in hosts]
    if problems:
        raise InputError(
            f"not every rail has its bond on every host. {folded(problems)}. Correct the bonds, or rdma_fabric.rails"
        )
    raise_problems([*_other_names(intent, found)])
    return tuple(found)


def _seen(intent: Intent, host: Host, problems: dict[str, list[str]]) -> Host:
    if not host.facts:
        return host
    bonds = {bond["name"]: bond for bond in host.facts["bonds"]}
    ports = {port["pci"]: port for port in host.ports}
    rails = dict(host.rails)
    for rail, name in intent.bonds.items():
        bond = bonds.get(name)
        if rail in host.rails:
            problems.setdefault(f"rdma_host.rails has {rail}, which is a bond and has no port", []).append(host.name)
        elif bond is None:
            told = ", ".join(bonds) or "none"
            problems.setdefault(f"{rail}: there is no bond {name} (bonds: {told})", []).append(host.name)
        elif why := _problem(bond):
            problems.setdefault(f"{rail}: {name} {why}", []).append(host.name)
        else:
            port = {**bond["port"], "members": bond["members"]}
            ports[port["pci"]], rails[rail] = port, port["pci"]
    return replace(host, facts={**host.facts, "ports": list(ports.values())}, rails=rails)


def _problem(bond: Mapping[str, Any]) -> str:
    """Return why a bond cannot be a rail, whatever a host says of it."""
    members = [member["pci"] for member in bond["members"]]
    is_port = bond["port"] and None not in members and bond["port"]["pci"] in members
    return str(bond["problem"]) or ("" if is_port else "has no members that are ports")


def _other_names(intent: Intent, hosts: Sequence[Host]) -> Iterator[str]:
    """Yield the bonds whose members have other names on other hosts: the device plugin knows ports by name only."""
    for rail, bond in intent.bonds.items():
        names: dict[str, list[str]] = {}
        for host in hosts:
            port = next((port for port in host.ports if port["pci"] == host.rails.get(rail)), None)
            if port:
                names.setdefault(", ".join(interfaces(port)), []).append(host.name)
        if len(names) > 1:
            told = "; ".join(f"{members} on {fold(own)}" for members, own in names.items())
            yield (
                f"the members of {bond} ({rail}) must have the same names on all hosts, since the RDMA shared device "
                f"plugin selects ports by name: found {told}. Rename them, or put these hosts into rdma_fabric.classes"
            )


def interfaces(port: Port) -> list[str]:
    """Return the names of the members of a bond."""
    return sorted(member["netdev"] for member in port.get("members", ()))


def of_host(port: Port) -> dict[str, Any]:
    """Return what a rail of a host has as a bond: the PCI addresses of the members."""
    return {"members": [member["pci"] for member in port["members"]]} if "members" in port else {}


def of_rail(ports: Collection[Port]) -> dict[str, Any]:
    """Return what a rail of the plan has as a bond: the names by which a device plugin finds it."""
    names = next((interfaces(port) for port in ports if "members" in port), None)
    return {"members": names} if names else {}


def side(port: Port) -> dict[str, int]:
    """Return the number of links that the flows of a bond can use."""
    return {"links": len(port["members"])} if "members" in port else {}


def warnings(rails: Sequence[str], ports: Mapping[str, Sequence[Port | None]]) -> Iterator[str]:
    """Yield what measurements of bonds do not show, and members without a link. ``ports``: host -> ports by rail."""
    for index, rail in enumerate(rails):
        own = {host: port for host, found in ports.items() if (port := found[index]) and "members" in port}
        if own:
            bond, *_same = (port["netdev"] for port in own.values())
            yield (
                f"{rail} is the bond {bond}: a queue pair uses one member, so {rail} is expected to reach the rate of "
                "one member, and a test can pass while another member has no link"
            )
        down: dict[str, list[str]] = {}
        for host, port in own.items():
            for member in port["members"]:
                if member["carrier"] is False:
                    down.setdefault(f"{member['netdev']} ({member['pci']})", []).append(host)
        for member, hosts in down.items():
            yield f"{rail} on {fold(hosts)}: the member {member} has no link. Check the cable and the switch port"
