# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of RDMA devices on a host: read what decides about them, rename, keep it over boots."""

from __future__ import annotations

from ..._common.errors import CommandError
from ..facts.inventory import HostInventory
from ..facts.io import read_inventory
from ..system import command, files, records
from ..system.files import Roots
from . import io, model, rdma_plan, recorded
from .model import Wish

RECORD = "rdma_names"
_RENAMES = "rdma_rename"


def read_plan(inventory: HostInventory, roots: Roots, lib: str, state_root: str, wish: Wish) -> rdma_plan.RdmaPlan:
    """Read the host and work out what to do; ``wish`` is about the RDMA devices that get their rail's name."""
    functions = io.read_functions(roots, inventory)
    return rdma_plan.plan_rdma(inventory, functions, wish, records.load(state_root, RECORD), _have(roots, lib))


def apply(plan: rdma_plan.RdmaPlan, roots: Roots, lib: str, state_root: str, wish: Wish) -> None:
    """Write the rule, rename, and make sure that nothing is left to do."""
    if plan.change.changed:
        records.save(state_root, RECORD, recorded.while_changing(records.load(state_root, RECORD), plan.record))
        before, after = plan.change.before["rules"], plan.change.after["rules"]
        if before != after:
            files.put(_path(roots), after)
            command.run(["udevadm", "control", "--reload"])
        for argv in rdma_plan.rename_commands(plan.renames):
            command.run(argv)
        left = read_plan(read_inventory(roots), roots, lib, state_root, wish).change
        if left.changed:
            raise CommandError(f"RDMA devices are {left.before['names']} after renaming, not {left.after['names']}")
    records.save(state_root, RECORD, plan.record)


def _path(roots: Roots) -> str:
    return f"{roots.etc}/udev/rules.d/{rdma_plan.FILE}"


def _have(roots: Roots, lib: str) -> rdma_plan.Have:
    path = _path(roots)
    texts = io.read_rules(roots)
    found = texts.pop(path, None)
    own = found if found is not None and found.startswith(f"# {model.TITLE}") else None
    foreign = [other for other, text in texts.items() if any(_RENAMES in line for line in _rules(text))]
    if found is not None and own is None:
        foreign.append(path)
    return rdma_plan.Have(own, files.read(f"{lib}/udev/rules.d/{rdma_plan.FILE}"), tuple(foreign))


def _rules(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.lstrip().startswith("#")]
