# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of RDMA devices on a host: read what decides about them, rename, keep it over boots."""

from __future__ import annotations

from ..._common.errors import CommandError
from ..facts.inventory import HostInventory
from ..facts.io import Roots, read_inventory
from ..system import command, files
from ..system import record as state
from . import io as names
from . import model as vfnames
from . import rdma_plan as rdmanames
from . import record as namerecord
from .model import Wish

RECORD = "rdma_names"
_RENAMES = "rdma_rename"


def read_plan(inventory: HostInventory, roots: Roots, lib: str, state_root: str, wish: Wish) -> rdmanames.RdmaPlan:
    """Read the host and work out what to do; ``wish`` is about the RDMA devices that get their rail's name."""
    functions = names.read_functions(roots, inventory)
    return rdmanames.plan_rdma(inventory, functions, wish, state.load(state_root, RECORD), _have(roots, lib))


def apply(plan: rdmanames.RdmaPlan, roots: Roots, lib: str, state_root: str, wish: Wish) -> None:
    """Write the rule, rename, and make sure that nothing is left to do."""
    if plan.change.changed:
        state.save(state_root, RECORD, namerecord.while_changing(state.load(state_root, RECORD), plan.record))
        before, after = plan.change.before["rules"], plan.change.after["rules"]
        if before != after:
            files.put(_path(roots), after)
            command.run(["udevadm", "control", "--reload"])
        for argv in rdmanames.rename_commands(plan.renames):
            command.run(argv)
        left = read_plan(read_inventory(roots), roots, lib, state_root, wish).change
        if left.changed:
            raise CommandError(f"RDMA devices are {left.before['names']} after renaming, not {left.after['names']}")
    state.save(state_root, RECORD, plan.record)


def _path(roots: Roots) -> str:
    return f"{roots.etc}/udev/rules.d/{rdmanames.FILE}"


def _have(roots: Roots, lib: str) -> rdmanames.Have:
    path = _path(roots)
    texts = names.read_rules(roots)
    found = texts.pop(path, None)
    own = found if found is not None and found.startswith(f"# {vfnames.TITLE}") else None
    foreign = [other for other, text in texts.items() if any(_RENAMES in line for line in _rules(text))]
    if found is not None and own is None:
        foreign.append(path)
    return rdmanames.Have(own, files.read(f"{lib}/udev/rules.d/{rdmanames.FILE}"), tuple(foreign))


def _rules(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.lstrip().startswith("#")]
