# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The RDMA stack of a host as the module rdma_stack and preflight plan it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..._common.change import Change
from ..facts import disruption, loaded_drivers
from ..facts.inventory import HostInventory
from ..facts.rail_ports import parse_rails, refuse_bonds
from ..system import arguments
from ..system.files import Roots
from . import doca, io, provider_io
from . import plan as rdma_stack_plan

NAME = "rdma_stack"
VENDOR = ["doca-ofed", "doca-all", "mlnx-ofed-kernel-dkms", "mlnx-ofed-kernel-modules"]
VENDOR += ["mlnx-ofa_kernel", "mlnx-ofa_kernel-dkms", "kmod-mlnx-ofa_kernel"]
DOCA = {
    "release": {"type": "str"},
    "package": {"type": "str", "default": "doca-ofed"},
    "version": {"type": "str"},
    "repository": {"type": "str", "default": doca.REPOSITORY},
    "suite": {"type": "str", "default": "./"},
    "components": {"type": "list", "elements": "str", "default": []},
    "key": {"type": "str", "no_log": False},
    "fingerprint": {"type": "str"},
    "build": {"type": "str", "choices": list(doca.BUILDS), "default": "dkms"},
    "hold": {"type": "bool", "default": True},
    "supported": {"type": "dict", "default": {}},
}
ARGUMENTS = {
    **arguments.ROOT,
    **arguments.RAILS,
    **arguments.STATE,
    **arguments.CONSENT,
    "provider": {"type": "str", "choices": list(rdma_stack_plan.PROVIDERS), "default": "inbox"},
    "install_packages": {"type": "bool", "default": True},
    "packages": {"type": "list", "elements": "str", "default": []},
    "perftest_cuda": {"type": "bool", "default": False},
    "replace": {"type": "bool", "default": False},
    "restart": {"type": "str", "choices": ["idle", "never"], "default": "idle"},
    "vendor_packages": {"type": "list", "elements": "str", "default": VENDOR},
    "doca": {"type": "dict", "options": DOCA},
}


@dataclasses.dataclass(frozen=True)
class Stack:
    """Both sides as they were read, and the plan for them, with its record and reasons completed."""

    reading: provider_io.Reading
    plan: rdma_stack_plan.StackPlan
    record: Mapping[str, Any]
    reasons: tuple[str, ...]

    @property
    def change(self) -> Change:
        """The change of the plan; packages are no part of it."""
        return self.plan.change


class Topic:
    """How the stack of a host is read. Ports do not change in a run, and the package source is asked once."""

    def __init__(self, params: Mapping[str, Any], roots: Roots, *, inventory: HostInventory, check_mode: bool) -> None:
        self.params, self.roots, self.check_mode = params, roots, check_mode
        self.inventory = inventory
        soft = params["state"] == "present" and params["provider"] == "soft_roce"
        rails = parse_rails(params["rails"]) if soft else ()
        refuse_bonds(rails, "They have the RDMA device of their NIC, and need no soft-RoCE. Set another provider")
        # In check mode the rename before us was not done either.
        self.ready = [rail.netdev for rail in rails if check_mode or provider_io.named(self.inventory, rail)]
        waiting = [rail for rail in rails if rail.netdev not in self.ready]
        self.waits = [f"soft-RoCE on {rail.netdev} waits for {rail.pci} to get its name" for rail in waiting]
        self.is_checked = False

    def read_plan(self, record: Mapping[str, Any]) -> Stack:
        """Read the host and work out what to do; ConflictError where that would disturb users."""
        reading = provider_io.read(self.params, self.roots, self.inventory, record=record, netdevs=self.ready)
        folders = io.folders(self.roots)
        plan = rdma_stack_plan.plan_stack(reading.want, reading.have, record, folders=folders, whole=self.check_mode)
        if not self.is_checked:
            self._check(reading, plan)
        why = list(reading.users) or ["the kernel kept them when they were loaded again"]
        kept = reading.have.stale if not self.check_mode or reading.users else ()
        reasons = (*self.waits, *(loaded_drivers.reason(old, new, why) for old, new in kept))
        return Stack(
            reading, plan, plan.record if self.check_mode else provider_io.recorded(reading.want, plan, record), reasons
        )

    def _check(self, reading: provider_io.Reading, plan: rdma_stack_plan.StackPlan) -> None:
        if reading.want.provider == rdma_stack_plan.DOCA and plan.install:
            provider_io.check_offer(self.params, self.roots, self.inventory, reading=reading)
        if self.params["perftest_cuda"] and self.params["state"] == "present" and not plan.install:
            provider_io.check_cuda()
        removals = rdma_stack_plan.removals(self.inventory, plan.change)
        disruption.check(self.inventory, removals, self.params["disrupt_users"])
        self.is_checked = True
