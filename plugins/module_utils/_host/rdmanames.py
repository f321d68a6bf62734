# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of RDMA devices on a host: read what decides about them, rename, keep it over boots."""

from __future__ import annotations

from collections.abc import Iterable

from .._core import rdmanames
from .._core.errors import CommandError
from .._core.inventory import HostInventory
from .._core.rail import Rail
from . import command, files, state
from .sysfs import Roots, read_inventory

RECORD = "rdma_names"


def read_plan(
    inventory: HostInventory, roots: Roots, lib: str, state_root: str, rails: Iterable[Rail], now: bool
) -> rdmanames.RdmaPlan:
    """Read the host and work out what to do; ``rails`` are those whose RDMA devices get their name."""
    path = f"{roots.etc}/udev/rules.d/{rdmanames.FILE}"
    have = rdmanames.Have(path, files.read(path), files.read(f"{lib}/udev/rules.d/{rdmanames.FILE}"))
    return rdmanames.plan_rdma(inventory, rails, state.load(state_root, RECORD), have, now)


def apply(plan: rdmanames.RdmaPlan, roots: Roots, lib: str, state_root: str, rails: Iterable[Rail], now: bool) -> None:
    """Write the rule, rename, and make sure that nothing is left to do."""
    if plan.change.changed:
        state.save(state_root, RECORD, {**state.load(state_root, RECORD), **plan.record})
        before, after = plan.change.before["rules"], plan.change.after["rules"]
        if before != after:
            files.put(f"{roots.etc}/udev/rules.d/{rdmanames.FILE}", after)
            command.run(["udevadm", "control", "--reload"])
        for argv in rdmanames.rename_commands(plan.renames):
            command.run(argv)
        left = read_plan(read_inventory(roots), roots, lib, state_root, rails, now).change
        if left.changed:
            raise CommandError(f"RDMA devices are {left.before['names']} after renaming, not {left.after['names']}")
    state.save(state_root, RECORD, plan.record)
