# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a port may be disturbed, and whether it may be restored: one rule for all modules. Pure.

* A port with users now (a mount, TCP connections, queue pairs, or something that cannot be read) is not disturbed
  without consent.
* A port that this collection configured once is restored only while nothing else owns it now: no address or route that
  this collection did not set, nothing stacked on it. Consent does not change that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .devices import Port
from .errors import ConflictError
from .inventory import HostInventory

CONSENT = "rdma_disrupt_users"
USERS = ("mount", "tcp", "queue_pairs", "unknown")
OWNERS = ("address", "route", "bridge", "vlan", "bond")


def users(inventory: HostInventory, port: Port) -> list[str]:
    """Return what a port is used for now; nobody is disturbed where there is nothing."""
    return [use.text for use in inventory.uses(port) if use.kind in USERS]


def owners(inventory: HostInventory, port: Port) -> list[str]:
    """Return what owns a port beside this collection; idle, but not to be changed."""
    return [use.text for use in inventory.uses(port) if use.kind in OWNERS]


def at_first(inventory: HostInventory, port: Port) -> list[str]:
    """Return the owners of a port to record: those now, and those that ``rail_links`` found and restores."""
    return list(dict.fromkeys([*owners(inventory, port), *inventory.first.get(port.pci, ())]))


def check(inventory: HostInventory, changes: Mapping[str, str], consent: bool) -> None:
    """ConflictError when a change would disturb users; ``changes`` maps PCI addresses to what would change."""
    ports = inventory.by_pci
    problems = [
        f"{ports[pci].title}: {what} would disturb its users: {', '.join(found)}"
        for pci, what in changes.items()
        if pci in ports
        for found in [users(inventory, ports[pci])]
        if found and not consent
    ]
    if problems:
        raise ConflictError(f"{'; '.join(problems)}. Stop these users and retry, or set {CONSENT}: true")


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
            f"{ports[pci].title} is not a rail any more and has another owner: {', '.join(others)}. {what} not "
            "restored; the record is kept, and a run without this owner restores them"
        )
        for pci, others in found.items()
        if others
    }
