#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: sriov_vfs
short_description: Make the virtual functions (VFs) of rails, now and after a boot
version_added: "0.1.0"
description:
  - Makes the wanted number of VFs on the rails' ports, with addresses that are derived from the port and so are the same after every boot,
    and with trust, spoof check, rate limit and MTU. Drivers bind to the VFs when all that is set.
  - The kernel refuses to change a number of VFs that is not 0, so a change takes all VFs of the port away first. It is refused, before
    the first write, when one of them is in use; the message says by whom.
  - At boot, and after a reload of the driver, a udev rule by PCI address starts a systemd unit that makes them again without Python.
  - Number and settings of before are recorded once and come back with O(state=absent), unless another tool changed the VFs since.
  - Changes no limit of the NIC's firmware and binds no drivers for pods.
extends_documentation_fragment:
  - gpufabric.rdma.host
  - gpufabric.rdma.host.rails
  - gpufabric.rdma.host.consent
options:
  state:
    description:
      - V(present) makes the VFs of the rails that have a number in O(vfs) or O(vfs_by_rail), and leaves all other ports alone.
      - V(absent) restores the recorded VFs of all ports and removes the files; O(rails) is ignored. VFs of the SR-IOV operator, and those
        whose number or addresses have changed since they were set, stay as they are. The run warns of them and removes their record.
    type: str
    choices: [present, absent]
    default: present
  vfs:
    description: How many VFs each rail shall have. V(0) means none; not given, rails are left alone.
    type: int
  vfs_by_rail:
    description: Name of a rail -> its own number of VFs.
    type: dict
    default: {}
  identity:
    description:
      - V(derived) gives each VF a locally administered MAC address (on InfiniBand a node and port GUID) made of its port's own and its index.
      - V(driver) leaves that to the driver, which may take other ones at each boot.
    type: str
    choices: [derived, driver]
    default: derived
  trust:
    description: Whether VFs may change their MAC address and be promiscuous. Not given, it stays as it is.
    type: bool
  spoof_check:
    description: Whether frames with another source address than the VF's are dropped. Not given, it stays as it is.
    type: bool
  max_tx_rate:
    description: The most that each VF may send, in Mb/s; V(0) is no limit. Not given, it stays as it is.
    type: int
  link_state:
    description:
      - V(auto) follows the port, V(enable) is always up, V(disable) always down.
      - Not given, VFs on InfiniBand get V(auto), since they are down otherwise, and those on Ethernet stay as they are.
    type: str
    choices: [auto, enable, disable]
  mtu:
    description: MTU of the VFs' network devices in bytes. Not given, it is the rail's. One in another network namespace is left alone.
    type: int
  firmware_vfs:
    description:
      - How many VFs the firmware of NVIDIA's NICs shall allow (C(NUM_OF_VFS) as M(gpufabric.rdma.nic_firmware) sets it). Only for check mode,
        which then predicts what comes after the reboot; without check mode ports must have them by now.
    type: int
    default: 0
  operator_managed:
    description:
      - PCI addresses of ports whose VFs the SR-IOV operator makes. To want VFs on one of them is an error.
      - So is a port of which C(/etc/sriov-operator/pci) on the host, kept by the operator's agent, says that the operator makes its VFs.
    type: list
    elements: str
    default: []
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Eight VFs on each rail, with jumbo frames
  gpufabric.rdma.sriov_vfs:
    rails:
      - {rail: rail0, pci: "0000:18:00.0", driver: mlx5_core, netdev: rail0, mtu: 9000}
      - {rail: rail1, pci: "0000:3a:00.0", driver: mlx5_core, netdev: rail1, mtu: 9000}
    vfs: 8
    trust: true
    spoof_check: false

- name: Give all ports the VFs back that they had
  gpufabric.rdma.sriov_vfs:
    state: absent
"""

RETURN = r"""
diff:
  description: State before and after.
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
  description: Whether a change is pending until the next boot; never true for this module.
  returned: always
  type: bool
reasons:
  description: The changes that are pending until the next boot, and why.
  returned: always
  type: list
  elements: str
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import CommandError, FabricError, InputError
from ..module_utils._common.pci import PciAddress
from ..module_utils._host.facts import disruption
from ..module_utils._host.facts import io as facts_io
from ..module_utils._host.facts.inventory import HostInventory
from ..module_utils._host.facts.rail_ports import parse_rails
from ..module_utils._host.sriov import io as sriov_io
from ..module_utils._host.sriov import plan as sriov_plan
from ..module_utils._host.sriov import vf_restore
from ..module_utils._host.sriov.boot_unit import Target
from ..module_utils._host.system import arguments, files, lock, records

NAME = "sriov_vfs"
ARGUMENTS = {
    **arguments.ROOTS,
    **arguments.RAILS,
    **arguments.STATE,
    **arguments.CONSENT,
    "vfs": {"type": "int"},
    "vfs_by_rail": {"type": "dict", "default": {}},
    "identity": {"type": "str", "choices": ["derived", "driver"], "default": "derived"},
    "trust": {"type": "bool"},
    "spoof_check": {"type": "bool"},
    "max_tx_rate": {"type": "int"},
    "link_state": {"type": "str", "choices": ["auto", "enable", "disable"]},
    "mtu": {"type": "int"},
    "firmware_vfs": {"type": "int", "default": 0},
    "operator_managed": {"type": "list", "elements": "str", "default": []},
}


def numbers(given: Mapping[str, Any]) -> dict[str, int]:
    """Return the numbers of VFs by rail; InputError names the one that is none."""
    wrong = {rail: number for rail, number in given.items() if not str(number).isdecimal()}
    if wrong:
        shown = ", ".join(f"{rail}: {number}" for rail, number in wrong.items())
        raise InputError(f"vfs_by_rail has {shown}; expected a number of VFs for each rail")
    return {rail: int(number) for rail, number in given.items()}


def wanted(
    params: Mapping[str, Any], inventory: HostInventory, managed: Mapping[str, str], check_mode: bool
) -> tuple[Target, ...]:
    """Return the ports that this run is about, with the VFs that they shall have."""
    wish = sriov_plan.Wish(
        count=params["vfs"],
        rails=numbers(params["vfs_by_rail"]),
        promised=params["firmware_vfs"] if check_mode else 0,
        derive=params["identity"] == "derived",
        **{key: params[key] for key in ("trust", "spoof_check", "max_tx_rate", "link_state", "mtu")},
    )
    return sriov_plan.wanted(inventory, parse_rails(params["rails"]), wish, managed)


def read_plan(
    params: Mapping[str, Any], record: Mapping[str, Any], inventory: HostInventory, check_mode: bool
) -> tuple[sriov_plan.VfPlan, sriov_plan.Have, list[str]]:
    """Read the host and work out what to do; also returns the VFs and warnings."""
    roots = files.Roots.from_params(params)
    where = sriov_io.folders(roots)
    managed = {str(PciAddress.parse(address)): "operator_managed" for address in params["operator_managed"]}
    managed.update(sriov_io.of_operator(roots.etc))
    if params["state"] == "absent":
        have = sriov_io.read(roots, inventory, [port for port in inventory.ports if port.pci in record])
        owned = vf_restore.left_alone(inventory, record, managed)
        targets, warnings = vf_restore.recorded(inventory, record, have, managed, owned)
    else:
        owned, warnings, targets = {}, [], wanted(params, inventory, managed, check_mode)
        have = sriov_io.read(roots, inventory, [target.port for target in targets])
    own = sriov_io.read_files(where)
    plan = sriov_plan.plan_vfs(targets, have, own, record, where, params["state"] == "present", owned)
    return plan, have, [*owned.values(), *warnings]


def converge(params: Mapping[str, Any], check_mode: bool) -> tuple[sriov_plan.VfPlan, list[str]]:
    """Plan, apply unless in check mode, and make sure that nothing is left to do; also returns warnings."""
    roots = files.Roots.from_params(params)
    record = records.load(params["state_root"], NAME)
    inventory = facts_io.read_inventory(roots)
    plan, have, warnings = read_plan(params, record, inventory, check_mode)
    sriov_plan.check_users(inventory, plan, have, params["disrupt_users"])
    if check_mode:
        return plan, warnings
    to_keep = disruption.with_owners(inventory, plan.record)
    if plan.change.changed:
        # What was there before us is kept before the first write, so that a run that fails half way can be taken back.
        records.save(params["state_root"], NAME, vf_restore.while_changing(plan, to_keep, record))
        sriov_io.apply(plan, have, sriov_io.folders(roots))
        left = read_plan(params, record, facts_io.read_inventory(roots), check_mode)[0].change
        if left.changed:
            raise CommandError(
                f"settings did not take effect: {sriov_plan.mismatches(left)}. Check the kernel log for errors"
            )
    records.save(params["state_root"], NAME, to_keep)
    return plan, warnings


def main() -> None:
    """Carry out the plan."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        with lock.held(module.params, NAME, module.check_mode):
            plan, warnings = converge(module.params, module.check_mode)
    except FabricError as error:
        module.fail_json(msg=f"{NAME}: {error}")
    for text in warnings:
        module.warn(text)
    module.exit_json(changed=plan.change.changed, diff=plan.change.diff(), reboot_required=False, reasons=[])


if __name__ == "__main__":
    main()
