# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MTU, address, ARP rules and source routing of rails, now and after a boot. Pure: the module only carries it out."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..._common.change import Change
from ..._common.errors import ConflictError, InputError
from ..facts import disruption
from ..facts.devices import Port
from ..facts.inventory import HostInventory
from ..facts.rail_ports import Rail, find_links, without_bonds
from . import bonded, link_restore, netplan, network_manager, network_managers, networkd, reload, routing, vlan
from . import ipv6 as ipv6_addresses
from .network_managers import TITLE, Claim, LinkFile, Manager, Vlan

SYSCTL_FILE = "90-gpufabric-rails.conf"
# Several rails on one host: each answers ARP for its own addresses only, and answers may come
# back on another way than the kernel would choose.
SYSCTLS = {"arp_announce": "2", "arp_ignore": "1", "rp_filter": "2"}

# PCI address -> {mtu, up, addresses, sysctl}: of a port now, wanted, or recorded.
States = Mapping[str, Mapping[str, Any]]
# PCI address -> the ``rail`` ("" when the port is none any more), the state ``before`` us and the ``owners`` then, and
# what was ``set``.
Record = Mapping[str, Mapping[str, Any]]
# Path -> text.
Texts = Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Have:
    """The host's side: own files, files of all others by kind, sysctl values by netdev, own routing lines.

    ``active`` are our connections that NetworkManager has up;
    ``networks`` are those of systemd-networkd in its order, ``connections`` those of
    NetworkManager, ``interfaces`` those of ifupdown, ``netplan`` is None without that program.
    """

    own: Texts
    networks: Texts
    connections: Texts
    interfaces: Texts
    netplan: Texts | None
    sysctl: Mapping[str, Mapping[str, str]]
    routing: tuple[str, ...]
    active: tuple[str, ...]

    @property
    def by_manager(self) -> tuple[Texts, Texts]:
        """The files of systemd-networkd, and those of the other network managers."""
        return self.networks, {**self.interfaces, **self.connections}


@dataclasses.dataclass(frozen=True)
class Wish:
    """What is asked beside the rails: who manages them, source routing, the folder of configuration, consent."""

    manager: str
    source_routing: str
    etc: str
    disrupt_users: bool = False


@dataclasses.dataclass(frozen=True)
class LinkPlan:
    """The change, the commands of the network managers for it, the record, and warnings.

    The record maps each port to its state and owners before the first change, and to the state that was ``set``.
    ``bonds``: PCI address -> bond through which the port is seen.
    """

    change: Change
    commands: tuple[tuple[str, ...], ...]
    record: Record
    warnings: tuple[str, ...]
    reasons: tuple[str, ...] = ()
    bonds: Mapping[str, str] = dataclasses.field(default_factory=dict)


def plan_links(inventory: HostInventory, rails: Iterable[Rail], record: Record, *, have: Have, wish: Wish) -> LinkPlan:
    """Work out files and link states; recorded ports that are not rails any more are restored.

    InputError and ConflictError list everything that stands in the way, users of the ports among it.
    """
    rails = tuple(rails)
    inventory, bonds, lost = bonded.seen(inventory, rails, record)
    links = find_links(inventory, rails)
    ports = {port.pci: port for port in inventory.ports if port.netdev}
    restored = {pci: entry for pci, entry in record.items() if pci in ports and pci not in {*links, *lost.warnings}}
    before = _states_now([ports[pci] for pci in (*links, *restored)], rails, record, sysctl=have.sysctl)
    manager = network_managers.choose(inventory, wish.manager, have.netplan) if rails else None
    table_of = routing.tables(rails, wish.source_routing)
    alone = without_bonds(rails)
    link_files = _link_files(alone, ports, have, manager=manager, table_of=table_of) if manager else ()
    drop_ins = bonded.files(rails, ports, have.by_manager, manager=manager, table_of=table_of, etc=wish.etc)
    files = _files(rails, link_files, manager, etc=wish.etc, machine=inventory.machine_id)
    files.update({**lost.files(have.own), **drop_ins})
    after = {rail.pci: _wanted_state(rail, before[rail.pci], record.get(rail.pci)) for rail in rails}
    known = {pci: inventory.first.get(pci, ()) for pci in restored}
    owned = disruption.left_alone(inventory, known, "MTU, state and addresses of its link are")
    # Where connections cannot be read, restored ports have users and are refused unless there is consent.
    after.update(link_restore.states(restored, before, owned, in_use=inventory.activity.connections or {}))
    vlans = vlan.plan(inventory, rails, record, sysctl=have.sysctl, rules=SYSCTLS, owned=owned)
    now: dict[str, Any] = {"files": dict(have.own), "links": before, "vlans": vlans.before}
    now.update(routing=[*have.routing], connections=sorted(have.active))
    lines = routing.wanted(rails, table_of, {one.pci: one.vlan_netdev or links[one.pci].name for one in rails})
    then = {
        "files": files,
        "links": after,
        "vlans": vlans.after,
        "routing": routing.settable(lines, have.routing, ipv6_addresses.dark(inventory)),
        "connections": sorted(reload.connections(link_files, manager)),
    }
    running = network_managers.services(inventory)
    names = {port.netdev.mac: port.netdev.name for port in ports.values() if port.netdev}
    commands = reload.of_managers(
        have.own, files, link_files, running=running, manager=manager, active=have.active, netdevs=names
    )
    touched = reload.touched(have.own, files, rails) | vlan.disturbed(vlans)
    touched |= {pci for pci in before if link_restore.disturbs(before[pci], after[pci])}
    changes = dict.fromkeys((pci for pci in before if pci in touched and pci not in owned), "a change of its link")
    disruption.check(inventory, changes, wish.disrupt_users)
    kept = {**lost.kept, **{pci: {**restored[pci], "rail": ""} for pci in owned}}
    for rail in rails:
        pci, owners = rail.pci, disruption.owners(inventory, ports[rail.pci])
        entry = link_restore.entry(rail, owners, record.get(pci), now=before[pci], after=after[pci])
        kept[pci] = bonded.noted(vlan.noted(entry, rail), rail)
    here = {ports[pci]: record.get(pci) for pci in before if pci not in owned}
    warnings = (*owned.values(), *lost.warnings.values(), *link_restore.warnings(rails, here, before))
    return LinkPlan(Change(now, then), commands, kept, warnings, bonds=bonds)


def _states_now(
    ports: Iterable[Port], rails: Iterable[Rail], record: Record, *, sysctl: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, Any]]:
    ours = ipv6_addresses.planned(rails, record)
    # With a VLAN the addresses are those of its interface, and the port is to have none of them.
    wanted = {rail.pci: () if rail.vlan else rail.addresses for rail in rails}
    return {
        port.pci: current_state(port, sysctl, ours.get(port.pci, ()), wanted=wanted.get(port.pci, ())) for port in ports
    }


def current_state(
    port: Port, sysctl: Mapping[str, Mapping[str, str]], ipv6: Collection[str] = (), *, wanted: Collection[str] = ()
) -> dict[str, Any]:
    """Return what of a port is managed: MTU, up, addresses as in ``ipv6.managed``, ARP rules."""
    link = port.netdev
    if link is None:
        return {}
    return {
        "mtu": link.mtu,
        "up": link.up,
        "addresses": ipv6_addresses.managed(link, ipv6, wanted),
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
            broadcast = [] if ipv6_addresses.is_ipv6(address) else ["broadcast", "+"]
            commands.append(["ip", "address", "replace", address, *broadcast, "dev", netdev])
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


def _claims(
    rails: tuple[Rail, ...], ports: Mapping[str, Port], have: Have, *, manager: Manager
) -> dict[str, Claim | None]:
    """Return rail -> the file of somebody else that configures its port; one that comes first wins."""
    found = {}
    for rail in rails:
        port = ports[rail.pci]
        claims = [network_managers.ifupdown_claim(have.interfaces, port)]
        if network_managers.NETWORKMANAGER in manager.running:
            # A connection that netplan makes has no priority.
            priority = network_manager.PRIORITY if manager.name != network_managers.NETPLAN else 0
            claims.append(network_manager.claim(have.connections, port, priority))
        if network_managers.NETWORKD in manager.running:
            claims.append(_networkd_claim(rail, port, have, manager=manager))
        known = sorted((claim for claim in claims if claim), key=lambda claim: not claim.first)
        found[rail.name] = netplan.named(known[0], have.netplan or {}) if known else None
    return found


def _networkd_claim(rail: Rail, port: Port, have: Have, *, manager: Manager) -> Claim | None:
    own = networkd.base_name(rail.name, manager.name == network_managers.NETPLAN)
    claim = networkd.claim(have.networks, port, own)
    # Beside another manager every file of networkd is one too many.
    return claim._replace(first=True) if claim and manager.backend != network_managers.NETWORKD else claim


def _refuse(
    rails: Iterable[Rail], ports: Mapping[str, Port], claims: Mapping[str, Claim | None], *, manager: Manager
) -> None:
    problems = []
    for rail in rails:
        port, claim = ports[rail.pci], claims[rail.name]
        problems += [*rail.doubts(port.netdev), *rail.mtu_problems(port.netdev)]
        if claim and rail.addresses and claim.first:
            problems.append(
                f"rail {rail.name}: {claim.path} also matches {port.title} and takes precedence. Remove the file, or "
                "narrow its match"
            )
        elif claim and not rail.addresses and port.netdev and port.netdev.mtu != rail.mtu:
            problems.append(
                f"rail {rail.name}: {port.title} keeps its addresses, and therefore its file {claim.path}, but has "
                f"MTU {port.netdev.mtu}. Set {claim.setting}{rail.mtu} in that file"
            )
        elif not claim and not rail.addresses and manager.name != network_managers.NETWORKD:
            problems += _unwritten_addresses(rail, port)
    if problems:
        raise ConflictError("; ".join(problems))


def _unwritten_addresses(rail: Rail, port: Port) -> list[str]:
    """Addresses of a rail that no file names: only systemd-networkd can be told to keep them as they are."""
    found = [address for address in port.netdev.addresses if not ipv6_addresses.is_ipv6(address)] if port.netdev else []
    if not found:
        return []
    return [
        f"rail {rail.name}: {port.title} has {', '.join(found)}, but no file configures this port. Add one with the "
        f"address and MTU {rail.mtu}, or let the plan assign the address"
    ]


def _refuse_routing(manager: Manager, table_of: Mapping[str, int], rails: Iterable[Rail]) -> None:
    own = [rail.name for rail in rails if rail.vlan]
    if own and (manager.name, manager.backend) == (network_managers.NETPLAN, network_managers.NETWORKMANAGER):
        raise InputError(
            f"rails {', '.join(own)} have a VLAN, whose connection netplan gives NetworkManager a name that is not one "
            "of this collection. Set manager: networkmanager"
        )
    # Only late releases of netplan do, and none of the distributions supported here has one everywhere.
    if table_of and (manager.name, manager.backend) == (network_managers.NETPLAN, network_managers.NETWORKMANAGER):
        raise InputError(
            f"rails {', '.join(table_of)} need source routing, and netplan cannot pass routing rules to "
            "NetworkManager. Set manager: networkmanager, or source_routing: never"
        )


def _wanted_state(rail: Rail, before: Mapping[str, Any], entry: Mapping[str, Any] | None) -> dict[str, Any]:
    others = bonded.kept_addresses(entry, before) if rail.bond else link_restore.foreign(entry, before)
    own = set() if rail.vlan else {*rail.addresses}
    return {
        "mtu": rail.mtu,
        "up": True,
        "addresses": sorted({*own, *others}) if rail.addresses else before["addresses"],
        "sysctl": dict(SYSCTLS),
    }


def _link_files(
    rails: tuple[Rail, ...], ports: Mapping[str, Port], have: Have, *, manager: Manager, table_of: Mapping[str, int]
) -> tuple[LinkFile, ...]:
    """Return what the files of the rails contain; ConflictError or InputError for those that cannot have one."""
    claims = _claims(rails, ports, have, manager=manager)
    _refuse(rails, ports, claims, manager=manager)
    _refuse_routing(manager, {rail.name: table_of[rail.name] for rail in rails if rail.name in table_of}, rails)
    return tuple(
        link
        for rail in rails
        # A port that keeps its addresses keeps the file that gives them.
        if rail.addresses or not claims[rail.name]
        for link in _on_vlan(rail, _link_file(rail, ports[rail.pci], manager, table_of=table_of))
    )


def _on_vlan(rail: Rail, link: LinkFile) -> tuple[LinkFile, ...]:
    """Return the files of a rail: with a VLAN, its port only carries the interface that has the rest."""
    if not rail.vlan:
        return (link,)
    port = LinkFile(rail.name, link.port, rail.mtu, (), carries=rail.vlan_netdev)
    own = Vlan(rail.vlan_netdev, rail.vlan, rail.name)
    return port, dataclasses.replace(link, rail=rail.vlan_name, vlan=own)


def _link_file(rail: Rail, port: Port, manager: Manager, *, table_of: Mapping[str, int]) -> LinkFile:
    addresses: tuple[str, ...] | None = rail.addresses
    if not addresses and manager.name == network_managers.NETWORKD:
        addresses = None
    rules, routes = routing.of_rail(rail, table_of.get(rail.name))
    return LinkFile(rail.name, port, rail.mtu, addresses, tuple(rules), tuple(routes))


def _files(
    rails: tuple[Rail, ...], link_files: tuple[LinkFile, ...], manager: Manager | None, *, etc: str, machine: str
) -> dict[str, str]:
    if manager is None:
        return {}
    files = {}
    if manager.name == network_managers.NETPLAN:
        files = netplan.files(link_files, etc, manager.backend)
    elif manager.name == network_managers.NETWORKMANAGER:
        files = network_manager.files(link_files, etc, machine)
    else:
        files = networkd.files(link_files, etc)
        if network_managers.NETWORKMANAGER in manager.running:
            files.update(network_manager.unmanaged(link_files, etc))
    lines = [f"net.ipv4.conf.{rail.netdev}.{key} = {value}" for rail in rails for key, value in SYSCTLS.items()]
    # A name with a dot needs slashes.
    own = [rail.vlan_netdev for rail in rails if rail.vlan]
    lines += [f"net/ipv4/conf/{name}/{key} = {value}" for name in own for key, value in SYSCTLS.items()]
    files[f"{etc}/sysctl.d/{SYSCTL_FILE}"] = "\n".join([f"# {TITLE}", *lines]) + "\n"
    return files
