# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of a host as the module netdev_names and preflight plan them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..._common.change import Change
from ..facts.inventory import HostInventory
from ..facts.rail_ports import parse_rails, without_bonds
from ..system import arguments
from ..system.files import Roots
from . import io, model, rdma_io, rdma_plan
from . import plan as naming_plan
from .model import Wish

NAME = "netdev_names"
ARGUMENTS = {
    **arguments.ROOT,
    **arguments.RAILS,
    **arguments.STATE,
    "vfs": {"type": "bool", "default": False},
    "representors": {"type": "bool", "default": False},
    "apply": {"type": "str", "choices": ["now", "boot"], "default": "boot"},
    "rdma": {"type": "str", "choices": ["keep", "rail"], "default": "keep"},
}


def read_wish(params: Mapping[str, Any], wanted: bool) -> Wish:
    """Return whose names are asked for; nobody's when not ``wanted`` or when all is taken back."""
    given = wanted and params["state"] == "present"
    kinds = model.kinds(params["vfs"], params["representors"])
    # A bond and its members keep their names.
    return Wish(without_bonds(parse_rails(params["rails"] if given else [])), kinds, params["apply"] == "now")


@dataclasses.dataclass(frozen=True)
class Names:
    """The plans for both kinds of names. RDMA devices have a record of their own, ``rdma_record`` before the change."""

    netdevs: naming_plan.NamePlan
    rdma: rdma_plan.RdmaPlan
    rdma_record: Mapping[str, Any]

    @property
    def change(self) -> Change:
        """Both changes; that of RDMA devices only where it matters: most hosts keep their names."""
        first, second = self.netdevs.change, self.rdma.change
        if not (second.changed or self.rdma.record):
            return first
        return Change({**first.before, "rdma": second.before}, {**first.after, "rdma": second.after})

    @property
    def record(self) -> Mapping[str, Any]:
        """The record of network devices."""
        return self.netdevs.record

    @property
    def reasons(self) -> list[str]:
        """Why a boot is needed."""
        return [*self.netdevs.reasons, *self.rdma.reasons]

    @property
    def warnings(self) -> list[str]:
        """What is left alone."""
        return list(dict.fromkeys([*self.netdevs.warnings, *self.rdma.warnings]))


def read_plan(params: Mapping[str, Any], roots: Roots, record: Mapping[str, Any], *, inventory: HostInventory) -> Names:
    """Read the host and work out what to do."""
    functions = io.read_functions(roots, inventory)
    found = io.read_files(roots, roots.lib)
    plan = naming_plan.plan_names(inventory, functions, read_wish(params, True), record=record, files=found)
    wish, known = read_wish(params, params["rdma"] == "rail"), rdma_io.load(roots)
    have = rdma_io.read(roots, roots.lib)
    return Names(plan, rdma_plan.plan_rdma(inventory, functions, wish, record=known, have=have), known)
