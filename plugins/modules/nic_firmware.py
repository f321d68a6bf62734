#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nic_firmware
short_description: Set firmware parameters of NVIDIA NICs for the next boot, and judge firmware versions
version_added: "0.1.0"
description:
  - Compares the wanted parameters with those that the next boot loads, by C(mlxconfig) or C(mstconfig), sets what differs, reads again and
    fails with what the card did not take. Values are compared as values, so C(True(1)), C(1) and V(true) are the same.
  - All cards are asked before the first one is set. A parameter that a card does not know is an error that names it.
  - Says what has to be loaded by a reboot, and what was not loaded by one and needs a power cycle. Never resets a card, never reboots and
    never burns an image.
  - Two ports of one card are one device. Values before us are recorded once and come back with O(state=absent), for the next boot too.
extends_documentation_fragment:
  - gpufabric.rdma.host
  - gpufabric.rdma.host.rails
options:
  state:
    description:
      - V(present) sets the parameters of O(settings) on the cards of the rails. Other parameters stay as they are, also those that an
        earlier run set.
      - V(absent) restores the recorded values of all cards; O(rails) is ignored.
    type: str
    choices: [present, absent]
    default: present
  settings:
    description:
      - Parameter -> value, such as C(SRIOV_EN), C(NUM_OF_VFS), C(LINK_TYPE_P1), C(ADVANCED_PCI_SETTINGS), C(PCI_WR_ORDERING),
        C(MAX_ACC_OUT_READ), C(ATS_ENABLED), or any other one that the card knows.
      - A value is true or false, a number, or a name such as V(ETH). C(NAME[0..3]) takes one value for all, or a list.
      - Parameters that a card hides while C(ADVANCED_PCI_SETTINGS) is off are set as soon as they are visible.
    type: dict
    default: {}
  minimum:
    description: Firmware versions that cards must have at least, one for each kind of card; its first number is the kind.
    type: list
    elements: str
    default: []
  exact:
    description: The same, but exactly this version.
    type: list
    elements: str
    default: []
  version_policy:
    description: Whether a card of another version is reported as a warning or fails the task before anything is set.
    type: str
    choices: [report, fail]
    default: report
  management_allowed:
    description: Whether a card may be changed one of whose ports carries the default route or the ssh connection of this run.
    type: bool
    default: false
attributes:
  check_mode:
    details: What C(ADVANCED_PCI_SETTINGS) hides is not known yet.
  diff_mode:
    description: Returns the values that the next boot loads, before and after.
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Have 16 VFs, Ethernet, and firmware that is new enough
  gpufabric.rdma.nic_firmware:
    rails:
      - {rail: rail0, pci: "0000:18:00.0", driver: mlx5_core, netdev: rail0, mtu: 9000}
    settings: {SRIOV_EN: true, NUM_OF_VFS: 16, LINK_TYPE_P1: ETH}
    minimum: ["28.43.1014"]

- name: Give all cards their values back
  gpufabric.rdma.nic_firmware:
    state: absent
"""

RETURN = r"""
diff:
  description: PCI address -> parameter -> the value that the next boot loads.
  returned: always
  type: dict
  contains:
    before:
      description: State found.
      returned: always
      type: dict
    after:
      description: State wanted; with check mode off also the state reached.
      returned: always
      type: dict
reboot_required:
  description: Whether something waits for a reboot.
  returned: always
  type: bool
reasons:
  description: What waits for a reboot, and why.
  returned: always
  type: list
  elements: str
power_cycle:
  description: What a reboot did not load or will not load; those cards need a power cycle, or a reset by the vendor's tool.
  returned: always
  type: list
  elements: str
cards:
  description: >-
    The cards with C(pci) address, C(firmware) version, board id (C(psid)) and C(settings), the C(default), C(current) and C(next_boot) value of each wanted
    parameter; in check mode as they are now.
  returned: always
  type: list
  elements: dict
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.change import Change
from ..module_utils._common.errors import CommandError, ConflictError, FabricError
from ..module_utils._host.facts import io as facts_io
from ..module_utils._host.facts.rail_ports import parse_rails
from ..module_utils._host.firmware import io as firmware_io
from ..module_utils._host.firmware import plan as firmware_plan
from ..module_utils._host.firmware.mlxconfig import wanted_values
from ..module_utils._host.system import arguments, files, lock, records

NAME = "nic_firmware"
ARGUMENTS = {
    **arguments.ROOTS,
    **arguments.RAILS,
    **arguments.STATE,
    "settings": {"type": "dict", "default": {}},
    "minimum": {"type": "list", "elements": "str", "default": []},
    "exact": {"type": "list", "elements": "str", "default": []},
    "version_policy": {"type": "str", "choices": ["report", "fail"], "default": "report"},
    "management_allowed": {"type": "bool", "default": False},
}
# What a parameter hides can be set once it is set itself; nothing hides twice.
ROUNDS = 2


def find_cards(params: Mapping[str, Any], roots: files.Roots) -> tuple[tuple[firmware_plan.Card, ...], list[str]]:
    """Return the cards that this run is about, and warnings; nothing is read where nothing is wanted."""
    present = params["state"] == "present"
    record = records.load(params["state_root"], NAME)
    if not (any(params[key] for key in ("settings", "minimum", "exact")) if present else record):
        return (), []
    inventory = facts_io.read_inventory(roots)
    if not present:
        return firmware_plan.recorded_cards(inventory, record, params["management_allowed"])
    want = wanted_values(params["settings"])
    rails, owned = parse_rails(params["rails"]), params["management_allowed"] or not want
    return firmware_plan.find_cards(inventory, rails, want, owned), []


def judge_versions(params: Mapping[str, Any], cards: tuple[firmware_plan.Card, ...]) -> list[str]:
    """Return what to warn of; ConflictError when the policy is to fail."""
    if params["state"] == "absent":
        return []
    problems = firmware_plan.version_problems(cards, params["minimum"], params["exact"])
    if problems and params["version_policy"] == "fail":
        raise ConflictError(f"{'; '.join(problems)}; burn it by the vendor's tools, this role burns nothing")
    return problems


def write(params: Mapping[str, Any], tool: firmware_io.Tool, plan: firmware_plan.FirmwarePlan) -> None:
    """Set what the plan says, with the record of before us kept first, so that half a run can be taken back."""
    record = {**records.load(params["state_root"], NAME), **plan.record}
    records.save(params["state_root"], NAME, record)
    cold = [pci for pci, values in plan.sets.items() if firmware_io.apply(tool, pci, values)]
    record.update({pci: {**record[pci], "cold": True} for pci in cold if pci in record})
    records.save(params["state_root"], NAME, record)


def converge(
    params: Mapping[str, Any], cards: tuple[firmware_plan.Card, ...], check_mode: bool
) -> firmware_plan.FirmwarePlan:
    """Plan, set unless in check mode, and make sure that nothing is left to do."""
    roots = files.Roots.from_params(params)
    boot = facts_io.boot_id(roots)
    tool = firmware_io.find_tool()

    def read_plan() -> firmware_plan.FirmwarePlan:
        record = records.load(params["state_root"], NAME)
        have = firmware_io.read(tool, cards)
        return firmware_plan.plan_settings(cards, have, record, boot, params["state"] == "present")

    first = plan = read_plan()
    if check_mode:
        return plan
    for _round in range(ROUNDS):
        if plan.sets:
            write(params, tool, plan)
            plan = read_plan()
    if plan.sets:
        raise CommandError(f"the tool set all, but the next boot loads {plan.change.before}; still to set: {plan.sets}")
    records.save(params["state_root"], NAME, plan.record)
    records.set_reasons(roots, NAME, plan.reasons)
    return dataclasses.replace(plan, change=Change(first.change.before, plan.change.after), warnings=first.warnings)


def run(
    params: Mapping[str, Any], check_mode: bool
) -> tuple[firmware_plan.FirmwarePlan, list[dict[str, Any]], list[str]]:
    """Return the plan, the cards for the result, and what to warn of."""
    roots = files.Roots.from_params(params)
    cards, warnings = find_cards(params, roots)
    warnings += judge_versions(params, cards)
    plan = firmware_plan.FirmwarePlan(Change({}, {}), {}, (), (), {}, {})
    if any(card.want for card in cards):
        plan = converge(params, cards, check_mode)
    shown = [firmware_io.describe(roots, card, plan) for card in cards]
    return plan, shown, [*warnings, *plan.warnings, *(f"{text}, or a reset by the vendor's tool" for text in plan.cold)]


def main() -> None:
    """Carry out the plan."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        with lock.held(module.params, NAME, module.check_mode):
            plan, cards, warnings = run(module.params, module.check_mode)
    except FabricError as error:
        module.fail_json(msg=f"{NAME}: {error}")
    for warning in warnings:
        module.warn(f"{NAME}: {warning}")
    module.exit_json(
        changed=plan.change.changed,
        diff=plan.change.diff(),
        reboot_required=bool(plan.reasons),
        reasons=list(plan.reasons),
        power_cycle=list(plan.cold),
        cards=cards,
    )


if __name__ == "__main__":
    main()
