# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MTU, address and ARP rules of rails, now and after a boot. Pure: the module only carries it out."""

from __future__ import annotations

import dataclasses
import ipaddress
import posixpath
from collections.abc import Iterable, Mapping
from typing import Any

from . import linkfile
from .change import Change
from .devices import Netdev, Port
from .errors import ConflictError, InputError
from .inventory import HostInventory
from .rail import Rail, find_links

TITLE = "Written by gpufabric.rdma.rail_links, which removes it with state: absent."
SUPPORTED = "systemd-networkd"
SYSCTL_FILE = "90-gpufabric-rails.conf"
# Several rails on one host: each answers ARP for its own addresses only, and answers may come
# back on another way than the kernel would choose.
SYSCTLS = {"arp_announce": "2", "arp_ignore": "1", "rp_filter": "2"}

# PCI address -> {mtu, up, addresses, sysctl}: of a port now, wanted, or recorded.
States = Mapping[str, Mapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class Have:
    """The host's side: own files, .network files of all others, sysctl values by netdev."""

    own: Mapping[str, str]
    networks: Mapping[str, str]
    sysctl: Mapping[str, Mapping[str, str]]


@dataclasses.dataclass(frozen=True)
class LinkPlan:
    """The change, and what is kept of the ports' state before us."""

    change: Change
    record: States


def plan_links(
    inventory: HostInventory,
    rails: Iterable[Rail],
    record: States,
    have: Have,
    folders: tuple[str, str],
) -> LinkPlan:
    """Work out files and link states; recorded ports that are no rail any more get theirs back.

    ``folders`` are those of .network files and of sysctl files. InputError and ConflictError
    list everything that stands in the way.
    """
    rails = tuple(rails)
    links = find_links(inventory, rails)
    ports = {port.pci: port for port in inventory.ports if port.netdev}
    restored = {pci: state for pci, state in record.items() if pci in ports and pci not in links}
    before = {pci: current_state(ports[pci], have.sysctl) for pci in (*links, *restored)}
    if rails:
        _refuse_manager(inventory)
    _refuse(rails, ports, have)
    after = {rail.pci: _wanted_state(rail, before[rail.pci]) for rail in rails}
    after.update({pci: {**before[pci], **state} for pci, state in restored.items()})
    change = Change(
        before={"files": dict(have.own), "links": before},
        after={"files": _files(rails, ports, have, folders), "links": after},
    )
    return LinkPlan(change, {pci: record.get(pci, before[pci]) for pci in links})


def current_state(port: Port, sysctl: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Return what of a port is managed: MTU, up, IPv4 addresses, ARP rules."""
    link = port.netdev
    if link is None:
        return {}
    return {
        "mtu": link.mtu,
        "up": link.up,
        "addresses": sorted(address for address in link.addresses if _is_ipv4(address)),
        "sysctl": dict(sysctl.get(link.name, {})),
    }


def link_commands(netdev: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[list[str]]:
    """Return the ``ip`` commands that lead from one state of a link to another."""
    commands = []
    if before["mtu"] != after["mtu"]:
        commands.append(["ip", "link", "set", "dev", netdev, "mtu", str(after["mtu"])])
    for address in before["addresses"]:
        if address not in after["addresses"]:
            commands.append(["ip", "address", "del", address, "dev", netdev])
    for address in after["addresses"]:
        if address not in before["addresses"]:
            commands.append(["ip", "address", "replace", address, "broadcast", "+", "dev", netdev])
    if before["up"] != after["up"]:
        commands.append(["ip", "link", "set", "dev", netdev, "up" if after["up"] else "down"])
    return commands


def differences(wanted: States, found: States, names: Mapping[str, str]) -> list[str]:
    """Say, port by port, what is not as wanted; ``names`` is PCI address -> netdev."""
    return [
        f"{pci} ({names.get(pci, '?')}): {key} is {found[pci].get(key)!r}, expected {state[key]!r}"
        for pci, state in wanted.items()
        for key in state
        if found[pci].get(key) != state[key]
    ]


def _refuse_manager(inventory: HostInventory) -> None:
    managers = inventory.managers
    if SUPPORTED in managers and "NetworkManager" not in managers:
        return
    raise InputError(
        f"the network of {inventory.hostname} is managed by {', '.join(managers) or 'no known manager'}; "
        f"supported is {SUPPORTED} alone: enable it for the rails, or leave the host out"
    )


def _refuse(rails: Iterable[Rail], ports: Mapping[str, Port], have: Have) -> None:
    problems = []
    for rail in rails:
        port = ports[rail.pci]
        problems += _mtu_problems(rail, port.netdev)
        foreign = linkfile.first_match(have.networks, port, ".network")
        first = foreign and posixpath.basename(foreign) < _file(rail)
        if rail.address and first:
            problems.append(f"rail {rail.name}: {foreign} configures {port.title} first; remove or narrow it")
        elif foreign and not rail.address and port.netdev and port.netdev.mtu != rail.mtu:
            problems.append(
                f"rail {rail.name}: {port.title} keeps its addresses and so its file {foreign}, "
                f"but has MTU {port.netdev.mtu}; set MTUBytes={rail.mtu} there"
            )
    if problems:
        raise ConflictError("; ".join(problems))


def _mtu_problems(rail: Rail, link: Netdev | None) -> list[str]:
    if link is None or not link.max_mtu or link.min_mtu <= rail.mtu <= link.max_mtu:
        return []
    return [
        f"rail {rail.name}: {rail.pci} ({link.name}) takes an MTU from {link.min_mtu} to {link.max_mtu}, "
        f"{rail.mtu} requested; change the MTU of the fabric"
    ]


def _wanted_state(rail: Rail, before: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "mtu": rail.mtu,
        "up": True,
        "addresses": [rail.address] if rail.address else before["addresses"],
        "sysctl": dict(SYSCTLS),
    }


def _files(rails: tuple[Rail, ...], ports: Mapping[str, Port], have: Have, folders: tuple[str, str]) -> dict[str, str]:
    network, sysctl = folders
    files = {}
    for rail in rails:
        port = ports[rail.pci]
        # A port that keeps its addresses keeps the file that gives them.
        if rail.address or not linkfile.first_match(have.networks, port, ".network"):
            files[f"{network}/{_file(rail)}"] = linkfile.format_network(TITLE, port, rail.mtu, rail.address)
    if rails:
        lines = [f"net.ipv4.conf.{rail.netdev}.{key} = {value}" for rail in rails for key, value in SYSCTLS.items()]
        files[f"{sysctl}/{SYSCTL_FILE}"] = "\n".join([f"# {TITLE}", *lines]) + "\n"
    return files


def _file(rail: Rail) -> str:
    return f"{linkfile.PREFIX}{rail.name}.network"


def _is_ipv4(address: str) -> bool:
    return ipaddress.ip_interface(address).version == 4
