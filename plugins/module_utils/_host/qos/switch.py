# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""QoS of a rail compared with that of its switch port, where the switch reports it by DCBX in LLDP."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..facts.inventory import HostInventory
from ..facts.rail_ports import Rail


def differences(inventory: HostInventory, rails: Iterable[Rail], wanted: Mapping[str, Any]) -> Iterator[str]:
    """Yield a warning for each rail whose switch port has flow control for other priorities than are to be set."""
    if "pfc" not in wanted:
        return
    ports = inventory.by_pci
    for rail in rails:
        netdev = ports[rail.pci].netdev if rail.pci in ports else None
        told = inventory.neighbours.get(netdev.name) if netdev else None
        if told and told.pfc is not None and list(told.pfc) != sorted(wanted["pfc"]):
            yield (
                f"{inventory.hostname} {rail.name}: pfc is {_shown(wanted['pfc'])}, and {told.title} has flow control"
                f" for {_shown(told.pfc)} (DCBX by LLDP). Set the same priorities on both sides"
            )


def _shown(priorities: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(priorities))) or "no priority"
