# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way to GPU memory of a host as the module peer_memory and preflight plan it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..._common.change import Change
from ..facts.inventory import HostInventory
from ..system import arguments
from ..system.files import Roots
from . import peer_memory, peer_memory_io

NAME = "peer_memory"
LEGACY_PACKAGES = ["nv_peer_mem", "nvidia-peer-memory", "nvidia-peer-memory-dkms", "nvidia_peer_memory"]
ARGUMENTS = {
    **arguments.ROOT,
    **arguments.STATE,
    "mode": {"type": "str", "choices": list(peer_memory.MODES), "default": "auto"},
    "legacy_packages": {"type": "list", "elements": "str", "default": LEGACY_PACKAGES},
}


@dataclasses.dataclass(frozen=True)
class Decision:
    """What was read, the way that is taken, and the plan for it."""

    inventory: HostInventory
    have: peer_memory.Have
    choice: peer_memory.Choice
    plan: peer_memory.PeerPlan

    @property
    def change(self) -> Change:
        """The change of the plan."""
        return self.plan.change

    @property
    def record(self) -> Mapping[str, bool]:
        """The record of the plan."""
        return self.plan.record

    @property
    def reasons(self) -> tuple[str, ...]:
        """Nothing here waits for a boot."""
        return ()


def read_plan(
    params: Mapping[str, Any], roots: Roots, record: Mapping[str, Any], *, inventory: HostInventory
) -> Decision:
    """Read the host and decide."""
    present = params["state"] == "present"
    have = peer_memory_io.read(roots, inventory, params["legacy_packages"])
    choice = peer_memory.choose(params["mode"] if present else "none", inventory, have)
    mode, folder = choice.mode if present else None, peer_memory_io.folder(roots)
    return Decision(
        inventory, have, choice, peer_memory.plan_peer_memory(mode, inventory, have, record=record, folder=folder)
    )
