# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bonds that are rails: their addresses and MTU are added to what the user configured. Pure.

The bond is the user's. This collection neither creates nor removes it, and never removes an address of it that it did
not set. systemd-networkd reads drop-ins beside the .network file of the bond, also beside one that netplan made. No
other network manager has files that add to those of others: there the bond must already be as planned.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..._common.errors import ConflictError
from ..facts.bonds import Bond
from ..facts.devices import Netdev, Port
from ..facts.inventory import HostInventory
from ..facts.rail_ports import Rail
from ..naming import systemd_files
from ..system import systemd
from . import link_restore, networkd
from .network_managers import NETWORKD, PREFIX, TITLE, LinkFile, Manager
from .routing import of_rail

Record = Mapping[str, Mapping[str, Any]]
Texts = Mapping[str, str]
# Late: the last one that sets a value wins.
DROP_IN, FOLDER = f"90-{PREFIX}", ".network.d"
_GIVE_BACK = "Give {} the members that it had, or remove it, then run playbook teardown for this host"


class Lost(NamedTuple):
    """Recorded bonds of which nothing is restored.

    ``warnings``: PCI address -> why. ``kept``: the record of those that exist, with another first member.
    """

    warnings: Mapping[str, str]
    kept: Record

    def files(self, own: Texts) -> dict[str, str]:
        """Return the drop-ins (of the files of this collection) that are kept with the record."""
        names = tuple(f"{FOLDER}/{DROP_IN}{entry['rail']}.conf" for entry in self.kept.values())
        return {path: text for path, text in own.items() if path.endswith(names)}


def seen(inventory: HostInventory, rails: Iterable[Rail], record: Record) -> tuple[HostInventory, dict[str, str], Lost]:
    """Return the inventory in which ports are seen through the bonds of the rails and of the record, and these bonds.

    Last come the recorded bonds that are not found over their ports. ConflictError for a port of both kinds, and for a
    bond that is in the record with another first member.
    """
    bonds = _known(rails, record)
    inventory = inventory.through_bonds(bonds)
    return inventory, bonds, _lost(inventory, record)


def _known(rails: Iterable[Rail], record: Record) -> dict[str, str]:
    problems, found = [], {pci: str(entry["bond"]) for pci, entry in record.items() if entry.get("bond")}
    for rail in rails:
        if rail.pci in record and found.get(rail.pci, "") != rail.bond:
            problems.append(
                f"rail {rail.name}: {rail.pci} was configured as {_title(found.get(rail.pci, ''))}, and is to be "
                f"{_title(rail.bond)}. Run playbook teardown for this host first"
            )
        problems += [
            f"rail {rail.name}: the bond {rail.bond} was configured with {pci} as first member, and is to have "
            f"{rail.pci}. {_GIVE_BACK.format(rail.bond)} and change the bond"
            for pci, entry in record.items()
            if rail.bond and entry.get("bond") == rail.bond and pci != rail.pci
        ]
        found.update({rail.pci: rail.bond} if rail.bond else {})
    if problems:
        raise ConflictError("; ".join(problems))
    return found


def _title(bond: str) -> str:
    return f"the bond {bond}" if bond else "a port"


def _lost(inventory: HostInventory, record: Record) -> Lost:
    there = {port.pci: port.netdev.name for port in inventory.ports if port.netdev}
    bonds = {bond.name: bond for bond in inventory.bonds}
    lost = {pci: entry for pci, entry in record.items() if entry.get("bond") and there.get(pci) != entry["bond"]}
    return Lost(
        {pci: _why_lost(entry["bond"], pci, bonds.get(entry["bond"])) for pci, entry in lost.items()},
        {pci: entry for pci, entry in lost.items() if entry["bond"] in bonds},
    )


def _why_lost(name: str, pci: str, bond: Bond | None) -> str:
    if bond is None:
        return f"the bond {name} over {pci} does not exist any more, so its MTU and addresses are not restored"
    members = ", ".join(port.pci if port else netdev for netdev, port in bond.members) or "none"
    return (
        f"the bond {name} has the members {members}, and had {pci} as first member when it was configured. Its MTU and "
        f"addresses are not restored, and its record is kept. {_GIVE_BACK.format(name)}"
    )


def kept_addresses(entry: Mapping[str, Any] | None, now: Mapping[str, Any]) -> set[str]:
    """Return the addresses of a bond that this collection did not set."""
    return {*now["addresses"]} - (link_restore.added(entry) if entry else set())


def files(
    rails: Iterable[Rail],
    ports: Mapping[str, Port],
    others: tuple[Texts, Texts],
    *,
    manager: Manager | None,
    table_of: Mapping[str, int],
    etc: str,
) -> dict[str, str]:
    """Return path -> text of the drop-ins; ConflictError lists the bonds that cannot be configured.

    ``others``: the .network files of systemd-networkd, and the files of the other network managers. ``manager``: None
    without rails.
    """
    if manager is None:
        return {}
    found: dict[str, str] = {}
    problems: list[str] = []
    for rail in (rail for rail in rails if rail.bond):
        port = ports[rail.pci]
        problems += [*rail.doubts(port.netdev), *rail.mtu_problems(port.netdev)]
        path = systemd_files.first_match(others[0], port, ".network") if NETWORKD in manager.running else None
        if path and _is_only_for(others[0][path], rail.bond):
            place = f"{etc}/systemd/network/{posixpath.basename(path)}.d"
            found[f"{place}/{DROP_IN}{rail.name}.conf"] = _text(rail, port, table_of.get(rail.name))
        elif path:
            problems.append(
                f"rail {rail.name}: {path} configures {rail.bond} and can match other devices. Add a .network file "
                f"with [Match] Name={rail.bond} that comes before it"
            )
        elif not _is_as_planned(rail, port.netdev) or rail.name in table_of:
            problems.append(_refusal(rail, others[1], rail.name in table_of))
    if problems:
        raise ConflictError("; ".join(problems))
    return found


def _is_only_for(text: str, bond: str) -> bool:
    names = [one.value for one in systemd_files.parse(text) if (one.section, one.key) == ("Match", "Name")]
    return names == [bond]


def _is_as_planned(rail: Rail, link: Netdev | None) -> bool:
    return link is not None and link.mtu == rail.mtu and {*rail.addresses} <= {*link.addresses}


def _refusal(rail: Rail, files: Texts, routes: bool) -> str:
    bond = rf"['\"]?{re.escape(rail.bond)}(?![\w.-])"
    name = re.compile(rf"^\s*(interface-name|DEVICE|iface)\s*[=\s]\s*{bond}", re.MULTILINE)
    path = next((path for path, text in files.items() if name.search(text)), "")
    who = f"is configured by {path}" if path else "has no .network file of systemd-networkd"
    wanted = " and ".join([f"MTU {rail.mtu}", *(f"address {one}" for one in rail.addresses)])
    also = ". It also needs source routing, which is written for systemd-networkd only: set source_routing: never"
    return (
        f"rail {rail.name}: the bond {rail.bond} {who}, and this collection adds settings to .network files only. Set "
        f"{wanted} for {rail.bond} in your own configuration{also if routes else ''}"
    )


def _text(rail: Rail, port: Port, table: int | None) -> str:
    rules, routes = of_rail(rail, table)
    link = LinkFile(rail.name, port, rail.mtu, rail.addresses, tuple(rules), tuple(routes))
    addresses = [("Address", address) for address in rail.addresses]
    sections = [
        ("Link", [("MTUBytes", str(rail.mtu))]),
        *([("Network", addresses)] if addresses else []),
        *networkd.routing_sections(link),
    ]
    return systemd.file_text(TITLE, sections)


def noted(entry: Mapping[str, Any], rail: Rail) -> dict[str, Any]:
    """Return the record of a rail with its bond."""
    return {**entry, **({"bond": rail.bond} if rail.bond else {})}
