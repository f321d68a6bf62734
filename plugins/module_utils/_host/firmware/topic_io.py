# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The firmware of the NICs of a host as the module nic_firmware and preflight plan it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._common.errors import ConflictError
from ..facts import io as facts_io
from ..facts.inventory import HostInventory
from ..facts.rail_ports import parse_rails
from ..system import arguments, records
from ..system.files import Roots
from . import io
from . import plan as firmware_plan
from .mlxconfig import wanted_values

NAME = "nic_firmware"
ARGUMENTS = {
    **arguments.ROOT,
    **arguments.RAILS,
    **arguments.STATE,
    "settings": {"type": "dict", "default": {}},
    "minimum": {"type": "list", "elements": "str", "default": []},
    "exact": {"type": "list", "elements": "str", "default": []},
    "version_policy": {"type": "str", "choices": ["report", "fail"], "default": "report"},
    "management_allowed": {"type": "bool", "default": False},
}


def find_cards(
    params: Mapping[str, Any], roots: Roots, *, inventory: HostInventory | None = None
) -> tuple[tuple[firmware_plan.Card, ...], list[str]]:
    """Return the cards that this run is about, and warnings; nothing is read where nothing is wanted."""
    present = params["state"] == "present"
    record = records.load(roots.state, NAME)
    if not (any(params[key] for key in ("settings", "minimum", "exact")) if present else record):
        return (), []
    inventory = inventory or facts_io.read_inventory(roots)
    if not present:
        return firmware_plan.recorded_cards(inventory, record, params["management_allowed"])
    want = wanted_values(params["settings"])
    rails, owned = parse_rails(params["rails"]), params["management_allowed"] or not want
    return firmware_plan.find_cards(inventory, rails, want, owned=owned), []


def judge_versions(params: Mapping[str, Any], cards: tuple[firmware_plan.Card, ...]) -> list[str]:
    """Return what to warn of; ConflictError when the policy is to fail."""
    if params["state"] == "absent":
        return []
    problems = firmware_plan.version_problems(cards, params["minimum"], params["exact"])
    if problems and params["version_policy"] == "fail":
        raise ConflictError(
            f"{'; '.join(problems)}. Update it with the vendor's tools: this collection does not flash firmware"
        )
    return problems


def read_settings(
    cards: tuple[firmware_plan.Card, ...], tool: io.Tool, record: Mapping[str, Any], *, boot: str, present: bool
) -> firmware_plan.FirmwarePlan:
    """Ask the cards and work out what to set."""
    known = [card for card in cards if present or card.pci in record]
    return firmware_plan.plan_settings(known, io.read(tool, known), record, boot=boot, present=present)


def read_plan(
    params: Mapping[str, Any], roots: Roots, record: Mapping[str, Any], *, inventory: HostInventory
) -> firmware_plan.FirmwarePlan:
    """Judge the versions of the cards, ask the cards, and work out what to set."""
    cards, _warnings = find_cards(params, roots, inventory=inventory)
    judge_versions(params, cards)
    if not any(card.want for card in cards):
        return firmware_plan.NOTHING
    boot, present = facts_io.boot_id(roots), params["state"] == "present"
    return read_settings(cards, io.find_tool(), record, boot=boot, present=present)
