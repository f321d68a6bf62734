# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which RDMA device gets the name of its rail, now or at the next boot. Pure: the module only carries it out.

The rule calls rdma-core's ``rdma_rename`` with NAME_FIXED (rdma-core, kernel-boot/rdma_rename.c). It stands in a file
that hides the distribution's of the same name, since two files would both rename: the second would ask for a
kernel name that is free again, and so could hit another device that just came.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from .change import Change
from .errors import ConflictError
from .inventory import HostInventory
from .rail import Rail

TITLE = "# Written by gpufabric.rdma.netdev_names, which removes it with state: absent."
FILE = "60-rdma-persistent-naming.rules"
_END = "gpufabric_rdma_end"


@dataclasses.dataclass(frozen=True)
class Have:
    """The file at ``path`` and the distribution's of the same name: texts, None where there is none."""

    path: str
    found: str | None
    distribution: str | None

    @property
    def own(self) -> str | None:
        """The text of the file when it is ours."""
        return self.found if self.found is not None and self.found.startswith(TITLE) else None


@dataclasses.dataclass(frozen=True)
class RdmaPlan:
    """The change, (old, new) names that change now, what waits for a boot; ``record`` is PCI -> first name."""

    change: Change
    renames: tuple[tuple[str, str], ...]
    reasons: tuple[str, ...]
    record: Mapping[str, str]


def plan_rdma(
    inventory: HostInventory, rails: Iterable[Rail], record: Mapping[str, str], have: Have, now: bool
) -> RdmaPlan:
    """Work out the file and names; recorded devices of ports that are in ``rails`` no more get theirs back.

    Soft-RoCE devices are left alone: whoever makes them names them. ConflictError lists what
    stands in the way.
    """
    wanted = {rail.pci: rail.netdev for rail in rails}
    devices = {device.pci: device.name for device in inventory.rdma_devices if device.pci}
    names = {pci: name for pci, name in {**record, **wanted}.items() if pci in devices}
    _refuse(wanted, names, devices, [device.name for device in inventory.rdma_devices], have)
    why = _why_wait(inventory, now)
    moving = {pci: name for pci, name in names.items() if devices[pci] != name}
    reasons = [
        f"the RDMA device of {pci} gets its name {name} (now {devices[pci]}) at the next boot: {why}"
        for pci, name in moving.items()
        if why
    ]
    after = {pci: devices[pci] if why else name for pci, name in names.items()}
    change = Change(
        before={"rules": have.own, "names": {pci: devices[pci] for pci in names}},
        after={"rules": _text(wanted, have.distribution) if wanted else None, "names": after},
    )
    kept = {pci: name for pci, name in record.items() if pci in wanted or after.get(pci, name) != name}
    first = {pci: devices[pci] for pci in wanted if pci in devices}
    renames = [] if why else [(devices[pci], name) for pci, name in moving.items()]
    return RdmaPlan(change, tuple(renames), tuple(reasons), {**first, **kept})


def rename_commands(renames: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return the ``rdma`` commands that rename, also when names go round in a circle."""
    renames = tuple(renames)
    taken = [old for old, _new in renames]
    first, second = [], []
    for number, (old, new) in enumerate(renames):
        step = f"gpufabric{number}" if new in taken else new
        first.append(["rdma", "dev", "set", old, "name", step])
        if step != new:
            second.append(["rdma", "dev", "set", step, "name", new])
    return [*first, *second]


def _refuse(
    wanted: Mapping[str, str], names: Mapping[str, str], devices: Mapping[str, str], all_names: list[str], have: Have
) -> None:
    problems = []
    if wanted and have.found is not None and have.own is None:
        problems.append(f"{have.path} is not ours and names RDMA devices; remove it, or leave rail_names_rdma at keep")
    moving = [devices[pci] for pci in names]
    problems += [
        f"the RDMA device of {pci} is to be named {name}, but another one has this name; rename or remove it"
        for pci, name in names.items()
        if name in all_names and name not in moving
    ]
    if problems:
        raise ConflictError("; ".join(problems))


def _why_wait(inventory: HostInventory, now: bool) -> str:
    if not now:
        return "apply is boot"
    holders = inventory.workloads.holders
    return f"RDMA is in use by {', '.join(holders)}" if holders else ""


def _text(wanted: Mapping[str, str], distribution: str | None) -> str:
    rules = [
        f'ACTION=="add", SUBSYSTEM=="infiniband", KERNELS=="{pci}", PROGRAM="rdma_rename %k NAME_FIXED {name}", '
        f'GOTO="{_END}"'
        for pci, name in wanted.items()
    ]
    # Devices that are no rails keep the names that the distribution gives them.
    others = [line for line in (distribution or "").splitlines() if line.strip() and not line.startswith("#")]
    return "\n".join([TITLE, *rules, *others, f'LABEL="{_END}"']) + "\n"
