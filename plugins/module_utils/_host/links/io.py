# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Links of rails on a host: files of all network managers, sysctl values, routing; read and change."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..._common.errors import CommandError
from ..facts.inventory import HostInventory
from ..facts.io import read_inventory
from ..naming import systemd_files
from ..system import command, files, systemd
from ..system.files import Roots, read_text
from . import bonded, netplan, network_manager, network_managers, reload, routing, vlan
from . import ipv6 as ipv6_addresses
from . import plan as links_plan

# Between two looks at the links; network managers work beside us.
PAUSE = 0.5


def read_have(roots: Roots, lib: str, inventory: HostInventory, *, routes: bool, ipv6: bool) -> links_plan.Have:
    """Read the host's side; ``routes`` says whether rails shall have routing tables, ``ipv6`` whether also of IPv6."""
    return links_plan.Have(
        own=_own_files(roots.etc),
        networks=systemd.read_systemd(roots, lib, ".network"),
        connections=_connections(roots, lib),
        interfaces={
            **files.read_folder(f"{roots.etc}/network", "interfaces", "interfaces"),
            **files.read_folder(f"{roots.etc}/network/interfaces.d", ""),
        },
        netplan=read_netplan(roots, lib),
        sysctl=read_sysctls(roots, inventory),
        routing=tuple(read_routing(routes, ipv6)),
        active=_active() if network_managers.NETWORKMANAGER in network_managers.services(inventory) else (),
    )


def read_sysctls(roots: Roots, inventory: HostInventory) -> dict[str, dict[str, str]]:
    """Return netdev -> ARP rules of all ports and VLAN interfaces."""
    netdevs = [port.netdev.name for port in inventory.ports if port.netdev]
    netdevs += [one.name for one in inventory.interfaces if one.vlan is not None]
    netdevs += [one.name for one in inventory.bonds]
    return {
        netdev: {key: read_text(f"{roots.proc}/sys/net/ipv4/conf/{netdev}/{key}") or "" for key in links_plan.SYSCTLS}
        for netdev in netdevs
    }


def read_routing(routes: bool, ipv6: bool) -> list[str]:
    """Return the lines of our routing tables; those of IPv4 are read when there is a rule of ours, or on demand."""
    found: list[str] = []
    # A kernel without IPv6 has no rules of it to show.
    for version in ("-4", "-6") if ipv6 else ("-4",):
        own = ["-6"] if version == "-6" else []
        rules = command.run(["ip", "-N", "-j", *own, "rule", "show"]).stdout
        # Routes of IPv6 stay when their rule or their address is removed.
        if routes or version == "-6" or routing.parse(rules, ""):
            shown = command.run(["ip", "-N", "-j", version, "route", "show", "table", "all"]).stdout
            found += routing.parse(rules, shown)
    return sorted(found)


def apply(plan: links_plan.LinkPlan, roots: Roots, timeout: int) -> list[str]:
    """Write the files and bring the links there; CommandError says what is not as wanted.

    Returns warnings.
    """
    before, after = plan.change.before, plan.change.after
    files.write_files(before["files"], after["files"], reload.mode)
    warnings = _run_managers(plan, roots)
    end = time.monotonic() + timeout
    ours = ipv6_addresses.known(before["links"], after["links"])
    on_vlans = {name: {*state["addresses"]} for name, state in after["vlans"].items()}
    has_ipv6 = any(":" in text for text in (*before["routing"], *after["routing"], *_all(ours), *_all(on_vlans)))
    rails = {pci: after["links"][pci] for pci, entry in plan.record.items() if entry["rail"] and pci in after["links"]}
    known = Known({*before["vlans"], *after["vlans"]}, ours, has_ipv6, rails, plan.bonds)
    _forget_duplicates(known, after["vlans"], roots)
    problems, refused = _bring(after, roots, known)
    while problems:
        if time.monotonic() > end:
            raise CommandError("; ".join([*problems, *refused]))
        time.sleep(PAUSE)
        earlier = refused
        problems, refused = _bring(after, roots, known)
        if again := [text for text in refused if text in earlier]:
            raise CommandError("; ".join(again))
    return warnings


class Known(NamedTuple):
    """What a plan is about, before and after: names of VLAN interfaces, and IPv6 addresses by PCI address.

    ``rails``: the wanted states of ports that are rails, whose addresses must be their own; a port that is restored
    may have had one that is not. ``bonds``: PCI address -> bond through which the port is seen.
    """

    vlans: Collection[str]
    ipv6: Mapping[str, Collection[str]]
    has_ipv6: bool
    rails: links_plan.States
    bonds: Mapping[str, str]


def _all(addresses: Mapping[str, Collection[str]]) -> Iterator[str]:
    return (one for own in addresses.values() for one in own)


def _forget_duplicates(known: Known, vlans: links_plan.States, roots: Roots) -> None:
    """Remove addresses that another machine had: the kernel looks again when they are set again."""
    states = (*known.rails.values(), *vlans.values())
    if not any(ipv6_addresses.is_ipv6(address) for state in states for address in state["addresses"]):
        return
    for one in ipv6_addresses.to_check(read_inventory(roots).through_bonds(known.bonds), known.rails, vlans):
        for address in ipv6_addresses.duplicates(one):
            command.run(["ip", "address", "del", address, "dev", one.link.name], check=False)


def _bring(wanted: Mapping[str, Any], roots: Roots, known: Known) -> tuple[list[str], list[str]]:
    """Set what differs; return what differed and what was refused.

    A manager may be faster, and what it has done is refused to us: only what is refused twice is refused.
    """
    inventory = read_inventory(roots).through_bonds(known.bonds)
    sysctl = read_sysctls(roots, inventory)
    ports = {port.pci: port for port in inventory.ports if port.netdev}
    names = {pci: port.netdev.name for pci, port in ports.items() if port.netdev}
    checked = ipv6_addresses.to_check(inventory, known.rails, wanted["vlans"])
    own = {one.link.name: one.wanted for one in checked}
    found = {
        pci: links_plan.current_state(port, sysctl, known.ipv6.get(pci, ()), wanted=own.get(names[pci], ()))
        for pci, port in ports.items()
    }
    lines = read_routing(bool(wanted["routing"]), known.has_ipv6)
    vlans = vlan.current(inventory, known.vlans, sysctl, wanted=own)
    problems = links_plan.differences(wanted["links"], found, names)
    problems += vlan.differences(wanted["vlans"], vlans)
    there = {name: state for name, state in wanted["vlans"].items() if name in vlans}
    problems += links_plan.differences(there, vlans, dict.fromkeys(there, "VLAN"))
    problems += [text for one in checked for text in ipv6_addresses.unchecked(one)]
    desired = routing.settable(wanted["routing"], lines, ipv6_addresses.dark(inventory))
    if lines != desired:
        problems.append(f"routing is {lines}, expected {desired}")
    refused = [text for one in checked for text in ipv6_addresses.taken(one)]
    if problems:
        for pci, target in wanted["links"].items():
            refused += _set_link(roots, names[pci], found[pci], target=target)
        refused += _run_all(vlan.commands(wanted["vlans"], vlans, names))
        for name, target in there.items():
            refused += _set_link(roots, name, vlans[name], target=target)
        for argv in routing.commands(lines, desired):
            command.run(argv, check=False)
    return problems, refused


def _set_link(roots: Roots, netdev: str, found: Mapping[str, Any], *, target: Mapping[str, Any]) -> list[str]:
    refused = _run_all(links_plan.link_commands(netdev, found, target))
    for key, value in target["sysctl"].items():
        if found["sysctl"].get(key) != value:
            files.set_kernel(f"{roots.proc}/sys/net/ipv4/conf/{netdev}/{key}", value)
    return refused


def _run_all(commands: Iterable[list[str]]) -> list[str]:
    """Run commands; return what was refused."""
    refused = []
    for argv in commands:
        try:
            command.run(argv)
        except CommandError as error:
            refused.append(str(error))
    return refused


def _run_managers(plan: links_plan.LinkPlan, roots: Roots) -> list[str]:
    folder = f"{roots.run}/systemd/network"
    vlans = {*plan.change.before["vlans"], *plan.change.after["vlans"]}
    before = _others(folder, vlans) if reload.GENERATE in plan.commands else {}
    waiting: list[str] = []
    for argv in plan.commands:
        # What others left in /etc/netplan without applying it is not ours to apply.
        if waiting and argv == reload.RELOAD:
            continue
        command.run(argv)
        if argv == reload.GENERATE:
            after = _others(folder, vlans)
            waiting = sorted(path for path in {**before, **after} if before.get(path) != after.get(path))
    if not waiting:
        return []
    return [
        f"netplan generate also changed {', '.join(waiting)}: /etc/netplan has changes that were not applied. "
        "systemd-networkd was not reloaded, and the rails were configured with ip. Run 'netplan apply' when these "
        "changes may take effect"
    ]


def _others(folder: str, vlans: Collection[str]) -> dict[str, str]:
    own = (systemd_files.NETPLAN_PREFIX, *(f"10-netplan-{name}." for name in vlans))
    return {path: text for path, text in files.read_folder(folder, "").items() if not _base(path).startswith(own)}


def _active() -> tuple[str, ...]:
    argv = ["nmcli", "-t", "-f", "NAME", "connection", "show", "--active"]
    return network_manager.parse_active(command.run(argv).stdout)


def _own_files(etc: str) -> dict[str, str]:
    return {
        **files.read_folder(f"{etc}/systemd/network", ".network", systemd_files.PREFIX),
        **files.read_folder(f"{etc}/systemd/network", ".netdev", systemd_files.PREFIX),
        **_drop_ins(f"{etc}/systemd/network"),
        **files.read_folder(f"{etc}/sysctl.d", links_plan.SYSCTL_FILE),
        **files.read_folder(network_manager.folder(etc), network_manager.SUFFIX, network_managers.PREFIX),
        **files.read_folder(f"{etc}/NetworkManager/conf.d", network_manager.CONF_FILE),
        **files.read_folder(f"{etc}/netplan", netplan.FILE),
    }


def _drop_ins(folder: str) -> dict[str, str]:
    """Return the drop-ins of this collection for files of others."""
    places = [f"{folder}/{name}" for name in files.names(folder) if name.endswith(bonded.FOLDER)]
    return {path: text for place in places for path, text in files.read_folder(place, ".conf", bonded.DROP_IN).items()}


def _connections(roots: Roots, lib: str) -> dict[str, str]:
    found = {
        **files.read_folder(network_manager.folder(roots.etc), ""),
        **files.read_folder(network_manager.folder(roots.run), ""),
        **files.read_folder(network_manager.folder(lib), ""),
        **files.read_folder(f"{roots.etc}/sysconfig/network-scripts", "", "ifcfg-"),
    }
    ours = (network_managers.PREFIX, f"netplan-{network_managers.PREFIX}")
    return {path: text for path, text in found.items() if not _base(path).startswith(ours)}


def read_netplan(roots: Roots, lib: str) -> dict[str, str] | None:
    """Return path -> text of the netplan files that count and are not ours; None where the program is missing."""
    if not command.find("netplan"):
        return None
    found: dict[str, str] = {}
    # Of two files of one name the one in a later folder counts.
    for folder in (f"{lib}/netplan", f"{roots.etc}/netplan", f"{roots.run}/netplan"):
        found.update({_base(path): path for path in files.read_folder(folder, ".yaml")})
    paths = [path for base, path in sorted(found.items()) if base != netplan.FILE]
    return {path: files.read(path) or "" for path in paths}


def _base(path: str) -> str:
    return os.path.basename(path)
