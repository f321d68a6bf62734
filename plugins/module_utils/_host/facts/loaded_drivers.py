# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the RDMA drivers that run are those that are installed, and who keeps them from being loaded again. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from ..._common import host_facts
from ..._common.rdma_modules import OTHERS, STORAGE
from .inventory import HostInventory

# What tells the provider of a stack: the core, and the driver of the rails' cards.
DRIVERS = ("ib_core", "mlx5_core")
PEERS = ("nvidia_peermem", "nv_peer_mem")
VENDOR_CARD = "mlx5_core"


@dataclasses.dataclass(frozen=True)
class Driver:
    """A kernel module; ``outside``: it is an out-of-tree module, as DOCA-OFED's are."""

    name: str
    version: str
    outside: bool

    @property
    def title(self) -> str:
        """Return how messages name it; in-tree modules have no version of their own."""
        origin = "out-of-tree" if self.outside else "in-tree"
        return " ".join(part for part in (self.name, self.version, f"({origin})") if part)

    @classmethod
    def loaded(cls, name: str, version: str | None, taint: str | None) -> Driver:
        """Build it from /sys/module/NAME/version and taint, which has an O for modules from outside."""
        return cls(name, (version or "") if "O" in (taint or "") else "", "O" in (taint or ""))

    @classmethod
    def installed(cls, name: str, modinfo: str) -> Driver | None:
        """Build it from the output of modinfo; None when the module is not there."""
        fields: dict[str, str] = {}
        for line in modinfo.splitlines():
            key, found, value = line.partition(":")
            if found:
                fields.setdefault(key.strip(), value.strip())
        if "filename" not in fields:
            return None
        outside = fields.get("intree") != "Y"
        return cls(name, fields.get("version", "") if outside else "", outside)


def stale(loaded: Iterable[Driver], installed: Mapping[str, Driver]) -> list[tuple[Driver, Driver]]:
    """Return the drivers that run and are not those that are installed, with the installed ones."""
    pairs = [(driver, installed[driver.name]) for driver in loaded if driver.name in installed]
    return [(old, new) for old, new in pairs if old != new]


def reason(old: Driver, new: Driver, users: Iterable[str]) -> str:
    """Say what waits for a boot, and who stands in the way of a restart of the stack."""
    text = f"{old.title} runs, {new.title} is installed"
    users = list(users)
    return f"{text}; the stack was not restarted: {', '.join(users)}" if users else text


def users(inventory: HostInventory, modules: Mapping[str, int]) -> list[str]:
    """Say who would lose something by a restart of the stack: programs, modules, ports, VFs.

    A port of the card's driver has a user when it has an address that is not a rail's, a route, a mount or connections.
    ``modules`` maps every loaded module to its use count.
    """
    found = []
    work = inventory.workloads
    if work.queue_pairs is None and inventory.rdma_devices:
        found.append("RDMA users cannot be determined (install iproute2's rdma tool)")
    elif work.queue_pairs:
        found.append(f"{work.queue_pairs} queue pairs of {', '.join(work.holders)}")
    found += [f"module {name}" for name in (*STORAGE, *OTHERS) if name in modules and name != "rdma_rxe"]
    found += [f"module {name} in use" for name in PEERS if modules.get(name)]
    # Queue pairs were named above, for all devices.
    named = ("queue_pairs",) if work.queue_pairs else ()
    for port in (port for port in inventory.ports if port.driver == VENDOR_CARD):
        uses = [use for use in inventory.uses(port) if use.kind not in named and use != host_facts.HIDDEN_QUEUE_PAIRS]
        owner = inventory.owner(port.netdev.name) if port.netdev else None
        if owner:
            found.append(owner)
        elif uses:
            found.append(f"{port.title} is in use: {', '.join(use.text for use in uses)}")
        if port.vfs_count:
            found.append(f"{port.vfs_count} VFs of {port.title}")
    return found
