# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The QoS settings of a host as the module rail_qos and preflight plan them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..facts import disruption
from ..facts.inventory import HostInventory
from ..facts.rail_ports import find_links, parse_rails, refuse_bonds
from ..system import arguments
from ..system.files import Roots
from . import io, settings, switch
from . import plan as qos_plan

NAME = "rail_qos"
ARGUMENTS = {
    **arguments.ROOT,
    **arguments.RAILS,
    **arguments.STATE,
    **arguments.CONSENT,
    "settings": {"type": "dict", "default": {}, "options": settings.argument_spec()},
}


def read_plan(
    params: Mapping[str, Any], roots: Roots, entries: Mapping[str, Any], *, inventory: HostInventory, check_mode: bool
) -> qos_plan.QosPlan:
    """Read the host and work out what to do; ``entries`` are the record."""
    present = params["state"] == "present"
    wanted = settings.parse(params["settings"] if present else {})
    rails = parse_rails(params["rails"] if present and wanted else [])
    refuse_bonds(
        rails,
        "QoS settings are those of ports, and the members of a bond are not configured by this collection. Set them "
        "with your own tools, and leave the settings of this role unset for these hosts",
    )
    find_links(inventory, rails)
    restored = {pci: entry["owners"] for pci, entry in entries.items() if pci not in {rail.pci for rail in rails}}
    owned = disruption.left_alone(inventory, restored, "Its QoS settings are")
    record = {pci: entry for pci, entry in entries.items() if pci not in owned}
    names = {rail.pci: rail.name for rail in rails}
    found = io.read(roots, inventory, qos_plan.to_read(rails, wanted, record), rails=names)
    found, warnings = qos_plan.promised(found) if check_mode else (found, [])
    plan = qos_plan.plan_qos(rails, wanted, record, found=found, have=io.units(roots), units=io.unit_folder(roots))
    before, after = plan.change.before["rails"], plan.change.after["rails"]
    changes = {pci: "a change of its QoS settings" for pci in after if before[pci] != after[pci]}
    disruption.check(inventory, changes, params["disrupt_users"])
    kept = {**disruption.with_owners(inventory, plan.record), **{pci: entries[pci] for pci in owned}}
    warnings += switch.differences(inventory, rails, wanted)
    return dataclasses.replace(plan, record=kept, warnings=(*warnings, *owned.values(), *plan.warnings))
