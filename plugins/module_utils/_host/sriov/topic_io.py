# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VFs of a host as the module sriov_vfs and preflight plan them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..._common.change import Change
from ..._common.errors import InputError
from ..._common.pci import PciAddress
from ..facts import disruption
from ..facts.inventory import HostInventory
from ..facts.rail_ports import parse_rails
from ..system import arguments
from ..system.files import Roots
from . import daemon_io, io, vf_restore
from . import plan as sriov_plan
from .boot_unit import Target

NAME = "sriov_vfs"
ARGUMENTS = {
    **arguments.ROOT,
    **arguments.RAILS,
    **arguments.STATE,
    **arguments.CONSENT,
    "vfs": {"type": "int"},
    "vfs_by_rail": {"type": "dict", "default": {}},
    "identity": {"type": "str", "choices": ["derived", "driver"], "default": "derived"},
    "trust": {"type": "bool"},
    "spoof_check": {"type": "bool"},
    "max_tx_rate": {"type": "int"},
    "link_state": {"type": "str", "choices": ["auto", "enable", "disable"]},
    "mtu": {"type": "int"},
    "firmware_vfs": {"type": "int", "default": 0},
    "operator_managed": {"type": "list", "elements": "str", "default": []},
    "remove_operator_files": {"type": "bool", "default": False},
}


def numbers(given: Mapping[str, Any]) -> dict[str, int]:
    """Return the numbers of VFs by rail; InputError names the one that is none."""
    wrong = {rail: number for rail, number in given.items() if not str(number).isdecimal()}
    if wrong:
        shown = ", ".join(f"{rail}: {number}" for rail, number in wrong.items())
        raise InputError(f"vfs_by_rail has {shown}; expected a number of VFs for each rail")
    return {rail: int(number) for rail, number in given.items()}


def wanted(
    params: Mapping[str, Any], inventory: HostInventory, managed: Mapping[str, str], *, check_mode: bool
) -> tuple[Target, ...]:
    """Return the ports that this run is about, with the VFs that they shall have."""
    wish = sriov_plan.Wish(
        count=params["vfs"],
        rails=numbers(params["vfs_by_rail"]),
        promised=params["firmware_vfs"] if check_mode else 0,
        derive=params["identity"] == "derived",
        **{key: params[key] for key in ("trust", "spoof_check", "max_tx_rate", "link_state", "mtu")},
    )
    return sriov_plan.wanted(inventory, parse_rails(params["rails"]), wish, managed=managed)


def read_plan(
    params: Mapping[str, Any], roots: Roots, record: Mapping[str, Any], *, inventory: HostInventory, check_mode: bool
) -> sriov_plan.VfPlan:
    """Read the host and work out what to do; ConflictError where that would disturb users."""
    where = io.folders(roots)
    managed = {str(PciAddress.parse(address)): "operator_managed" for address in params["operator_managed"]}
    managed.update(io.of_operator(roots.etc))
    if params["state"] == "absent":
        have = io.read(roots, inventory, [port for port in inventory.ports if port.pci in record])
        owned = vf_restore.left_alone(inventory, record, managed)
        targets, warnings = vf_restore.recorded(inventory, record, have, managed=managed, owned=owned)
    else:
        owned, warnings, targets = {}, [], wanted(params, inventory, managed, check_mode=check_mode)
        have = io.read(roots, inventory, [target.port for target in targets])
    own = io.read_files(where)
    left: dict[str, str] = {}
    if params["state"] == "absent" and params["remove_operator_files"] and not io.of_operator(roots.etc):
        left = daemon_io.read(roots)
    plan = sriov_plan.plan_vfs(
        targets, have, own, record=record, folders=where, present=params["state"] == "present", owned=owned
    )
    sriov_plan.check_users(inventory, plan, params["disrupt_users"])
    if left:
        before = {**plan.change.before, "files": {**plan.change.before["files"], **left}}
        plan = dataclasses.replace(plan, change=Change(before, plan.change.after))
    return dataclasses.replace(
        plan, record=disruption.with_owners(inventory, plan.record), warnings=(*owned.values(), *warnings)
    )
