# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of RDMA devices on a host: read what decides about them, rename, keep it over boots."""

from __future__ import annotations

from typing import Any

from ..system import command, converge, files, records
from ..system.files import Roots
from . import io, model, rdma_plan

RECORD = "rdma_names"
_RENAMES = "rdma_rename"


def load(roots: Roots) -> dict[str, Any]:
    """Return the record of names before the first change."""
    return records.load(roots.state, RECORD)


def apply(plan: rdma_plan.RdmaPlan, roots: Roots) -> None:
    """Record first names, write the rule, rename; what is restored leaves the record once nothing is left to do."""
    if not plan.change.changed:
        records.save(roots.state, RECORD, plan.record)
        return
    records.save(roots.state, RECORD, converge.merge(load(roots), plan.record))
    before, after = plan.change.before["rules"], plan.change.after["rules"]
    if before != after:
        files.put(_path(roots), after)
        command.run(["udevadm", "control", "--reload"])
    for argv in rdma_plan.rename_commands(plan.renames):
        command.run(argv)


def _path(roots: Roots) -> str:
    return f"{roots.etc}/udev/rules.d/{rdma_plan.FILE}"


def read(roots: Roots, lib: str) -> rdma_plan.Have:
    """Read the rules that decide about names; ``lib`` has the distribution's."""
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
