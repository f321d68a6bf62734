# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel command line of a host as the module kernel_cmdline and preflight plan it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from ..._common.change import Change
from ..system import arguments
from ..system.files import Roots
from . import boot_loader, boot_loader_io, boot_plan, cmdline, requirements
from .cmdline import Wanted

NAME = "kernel_cmdline"
ARGUMENTS = {
    **arguments.ROOT,
    **arguments.STATE,
    **arguments.HUGEPAGES,
    "iommu": {"type": "str", "choices": list(requirements.IOMMU), "default": "auto"},
    "arguments": {"type": "list", "elements": "str", "default": []},
    "arguments_absent": {"type": "list", "elements": "str", "default": []},
}


def dropin_path(roots: Roots) -> str:
    """Return where GRUB's drop-in is."""
    return f"{roots.etc}/default/grub.d/{boot_loader.DROPIN}"


def wanted_arguments(params: Mapping[str, Any], roots: Roots, record: Mapping[str, Any]) -> Wanted:
    """Return what the command line must have and must not have; nothing on the way back."""
    if params["state"] == "absent":
        return Wanted()
    absent = params["arguments_absent"]
    pages = [pages.argument for pages in requirements.parse_hugepages(params["hugepages"]) if pages.boot]
    own = Wanted.from_texts([*params["arguments"], *pages], absent)
    named = {word.name for group in (*own.groups, own.unwanted) for word in group}
    live = [word.text for word in boot_loader_io.read_live(roots)]
    # A drop-in without its record: what it asked for is in the running kernel.
    ours = record.get("groups", live if os.path.exists(dropin_path(roots)) else [])
    iommu = requirements.iommu_arguments(params["iommu"], boot_loader_io.read_cpu(roots), live, ours=ours)
    texts = [text for text in iommu if cmdline.parse(text)[0].name not in named]
    return Wanted.from_texts([*texts, *params["arguments"], *pages], absent)


@dataclasses.dataclass(frozen=True)
class Boot:
    """What was found and wanted, and the plan for it; ``loader`` is None where nothing is asked of it."""

    wanted: Wanted
    loader: boot_loader.Loader | None
    plan: boot_plan.BootPlan

    @property
    def change(self) -> Change:
        """The change of the plan."""
        return self.plan.change

    @property
    def record(self) -> Mapping[str, Any]:
        """The record of the plan."""
        return self.plan.record

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why a boot is needed."""
        return self.plan.reasons


def read_plan(params: Mapping[str, Any], roots: Roots, record: Mapping[str, Any]) -> Boot:
    """Read running kernel and boot loader and work out what to do."""
    wanted = wanted_arguments(params, roots, record)
    idle = wanted == Wanted() and not record and not os.path.exists(dropin_path(roots))
    loader = None if idle else boot_loader_io.detect(roots, roots.boots)
    have = boot_loader_io.read(roots, roots.boots, roots.lib, loader=loader)
    return Boot(wanted, loader, boot_plan.plan_boot(wanted, loader, have, record=record))
