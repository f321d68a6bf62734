#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nic_firmware
short_description: Manage firmware parameters of NVIDIA NICs and check firmware versions
version_added: "0.1.0"
description:
  - Compares the desired parameters with the values for the next boot using C(mlxconfig) or C(mstconfig), sets the parameters that differ,
    reads them again and fails if the card did not accept a value. Values are normalized, so C(True(1)), C(1) and V(true) are equal.
  - All cards are read before the first one is changed. It is an error if a card does not support a parameter.
  - Reports which changes require a reboot, and which ones were not loaded by a reboot and require a power cycle. The module never resets
    a card, reboots or flashes a firmware image.
  - Two ports of one card are one device. Original values are recorded once and restored with O(state=absent), effective at the next boot.
extends_documentation_fragment:
  - gpufabric.rdma.host
  - gpufabric.rdma.host.rails
options:
  state:
    description:
      - V(present) sets the parameters in O(settings) on the cards of the rails. Other parameters are not changed, even if an earlier run
        set them.
      - V(absent) restores the recorded values of all cards. O(rails) is ignored.
    type: str
    choices: [present, absent]
    default: present
  settings:
    description:
      - Values by parameter, such as C(SRIOV_EN), C(NUM_OF_VFS), C(LINK_TYPE_P1), C(ADVANCED_PCI_SETTINGS), C(PCI_WR_ORDERING),
        C(MAX_ACC_OUT_READ), C(ATS_ENABLED), or any other parameter that the card supports.
      - A value is a boolean, a number, or a name such as V(ETH). Arrays such as C(NAME[0..3]) take one value for all elements, or a list.
      - The keys are not a fixed set of suboptions, because each card and firmware version has its own parameters.
      - Parameters that a card hides while C(ADVANCED_PCI_SETTINGS) is off are set as soon as they are visible.
    type: dict
    default: {}
  minimum:
    description: Minimum firmware versions, one per card type. The first number of a version identifies the card type.
    type: list
    elements: str
    default: []
  exact:
    description: Exact firmware versions, one per card type.
    type: list
    elements: str
    default: []
  version_policy:
    description: Whether a version mismatch is a warning, or fails the task before anything is changed.
    type: str
    choices: [report, fail]
    default: report
  management_allowed:
    description: Allow changes to cards that carry the default route or the ssh connection of this run.
    type: bool
    default: false
attributes:
  check_mode:
    details: Parameters hidden by C(ADVANCED_PCI_SETTINGS) are not predicted.
  diff_mode:
    description: Returns the values for the next boot, before and after.
seealso:
  - module: gpufabric.rdma.sriov_vfs
  - module: gpufabric.rdma.reboot_reasons
  - name: Role nic_firmware
    description: The role that uses this module.
    link: https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/roles/nic_firmware.md
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Enable 16 VFs, set Ethernet mode and require a minimum firmware version
  gpufabric.rdma.nic_firmware:
    rails:
      - {rail: rail0, pci: "0000:18:00.0", driver: mlx5_core, netdev: rail0, mtu: 9000}
    settings: {SRIOV_EN: true, NUM_OF_VFS: 16, LINK_TYPE_P1: ETH}
    minimum: ["28.43.1014"]

- name: Restore the original values of all cards
  gpufabric.rdma.nic_firmware:
    state: absent
"""

RETURN = r"""
diff:
  description: Values for the next boot, by PCI address and parameter.
  returned: always
  type: dict
  contains:
    before:
      description: State before the change.
      returned: always
      type: dict
    after:
      description: State after the change. In check mode, the predicted state.
      returned: always
      type: dict
reboot_required:
  description: Whether a change takes effect only at the next boot.
  returned: always
  type: bool
reasons:
  description: Changes that take effect at the next boot, and why.
  returned: always
  type: list
  elements: str
power_cycle:
  description: Changes that a reboot does not load. The cards require a power cycle or a reset with the vendor tool.
  returned: always
  type: list
  elements: str
cards:
  description: >-
    The cards with C(pci) address, C(firmware) version, board ID (C(psid)) and C(settings), the C(default), C(current) and C(next_boot) value
    of each requested parameter. In check mode, the current values.
  returned: always
  type: list
  elements: dict
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.change import Change
from ..module_utils._common.errors import FabricError
from ..module_utils._host.facts import io as facts_io
from ..module_utils._host.firmware import io as firmware_io
from ..module_utils._host.firmware import plan as firmware_plan
from ..module_utils._host.firmware import topic_io
from ..module_utils._host.system import files
from ..module_utils._host.system.converge import Done, converge

# What a parameter hides can be set once it is set itself; nothing hides twice.
ROUNDS = 2


def set_cards(
    cards: tuple[firmware_plan.Card, ...], roots: files.Roots, present: bool, *, check_mode: bool
) -> Done[firmware_plan.FirmwarePlan]:
    """Set the parameters of the cards, unless in check mode; where none are wanted reasons and record stay."""
    if not any(card.want for card in cards):
        return Done(firmware_plan.NOTHING, firmware_plan.NOTHING)
    boot, tool = facts_io.boot_id(roots), firmware_io.find_tool()

    def read_plan(record: Mapping[str, Any]) -> firmware_plan.FirmwarePlan:
        return topic_io.read_settings(cards, tool, record, boot=boot, present=present)

    def apply(plan: firmware_plan.FirmwarePlan) -> dict[str, Any]:
        return {pci: {"cold": True} for pci, values in plan.sets.items() if firmware_io.apply(tool, pci, values)}

    return converge(
        topic_io.NAME,
        roots,
        check_mode,
        read_plan=read_plan,
        apply=apply,
        restores=not present,
        # The plan knows the record: an entry names the values before the write that is to come.
        unsettled=lambda plan, _earlier, merged: {**merged, **plan.record},
        rounds=ROUNDS,
    )


def main() -> None:
    """Carry out the plan."""
    module = AnsibleModule(argument_spec=topic_io.ARGUMENTS, supports_check_mode=True)
    params, roots = module.params, files.Roots.under(module.params["root"])
    try:
        cards, warnings = topic_io.find_cards(params, roots)
        warnings += topic_io.judge_versions(params, cards)
        done = set_cards(cards, roots, params["state"] == "present", check_mode=module.check_mode)
        shown = [firmware_io.describe(roots, card, done.last) for card in cards]
    except FabricError as error:
        module.fail_json(msg=f"{topic_io.NAME}: {error}")
    cold = [f"{text}, or a reset by the vendor's tool" for text in done.last.cold]
    for text in (*warnings, *done.first.warnings, *cold):
        module.warn(f"{topic_io.NAME}: {text}")
    # A parameter that another one hides is known after the first round only.
    diff = Change(done.first.change.before, done.last.change.after).diff()
    module.exit_json(**{**done.result, "diff": diff}, power_cycle=list(done.last.cold), cards=shown)


if __name__ == "__main__":
    main()
