#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: sriov_vfs
short_description: Manage SR-IOV virtual functions (VFs) of rails
version_added: "0.1.0"
description:
  - Creates the requested number of VFs on the ports of the rails, with trust, spoof check, rate limit and MTU. Their addresses are derived
    from the port and stay the same across reboots. Drivers are bound to the VFs after all settings have been applied.
  - The kernel cannot change a number of VFs other than 0, so a change first removes all VFs of the port. The module fails before the first
    write if a VF is in use, and names its users.
  - At boot and after a driver reload, a udev rule that matches the PCI address starts a systemd unit that recreates the VFs without Python.
  - The original number and settings are recorded once and restored with O(state=absent), unless another tool has changed the VFs since.
  - Does not change firmware limits of the NIC and does not bind drivers for pods.
extends_documentation_fragment:
  - gpufabric.rdma.host
  - gpufabric.rdma.host.rails
  - gpufabric.rdma.host.consent
options:
  state:
    description:
      - V(present) creates the VFs of the rails with a number in O(vfs) or O(vfs_by_rail). Other ports are not changed.
      - V(absent) restores the recorded VFs of all ports and removes the files. O(rails) is ignored. VFs of the SR-IOV operator, and VFs
        whose number or addresses have changed since, are kept. The module warns about them and removes their record.
    type: str
    choices: [present, absent]
    default: present
  vfs:
    description: Number of VFs per rail. V(0) removes all VFs. If omitted, the number is not changed.
    type: int
  vfs_by_rail:
    description: 'Number of VFs by rail name, such as V({rail0: 8, rail1: 0}). Overrides O(vfs).'
    type: dict
    default: {}
  identity:
    description:
      - V(derived) assigns each VF a locally administered MAC address (on InfiniBand a node and port GUID) derived from the address of the
        port and the VF index.
      - V(driver) keeps the addresses assigned by the driver, which may change at each boot.
    type: str
    choices: [derived, driver]
    default: derived
  trust:
    description: Whether VFs may change their MAC address and use promiscuous mode. If omitted, it is not changed.
    type: bool
  spoof_check:
    description: Whether to drop frames whose source address is not that of the VF. If omitted, it is not changed.
    type: bool
  max_tx_rate:
    description: Maximum transmit rate per VF in Mb/s. V(0) means unlimited. If omitted, it is not changed.
    type: int
  link_state:
    description:
      - V(auto) follows the port, V(enable) is always up, and V(disable) is always down.
      - If omitted, VFs on InfiniBand use V(auto), because they would be down otherwise, and VFs on Ethernet are not changed.
    type: str
    choices: [auto, enable, disable]
  mtu:
    description: MTU of the network devices of the VFs in bytes. Defaults to the MTU of the rail. Other network namespaces are not changed.
    type: int
  firmware_vfs:
    description:
      - Number of VFs to be allowed by the firmware of NVIDIA NICs (C(NUM_OF_VFS) set by M(gpufabric.rdma.nic_firmware)). Used only in check
        mode, to predict the state after the reboot. Outside check mode, the ports must already support the number of VFs.
    type: int
    default: 0
  operator_managed:
    description:
      - PCI addresses of ports whose VFs are managed by the SR-IOV operator. Requesting VFs on such a port is an error.
      - This also applies to ports that C(/etc/sriov-operator/pci) on the host, maintained by the agent of the operator, marks as managed.
    type: list
    elements: str
    default: []
  remove_operator_files:
    description:
      - With O(state=absent), also remove the files that the agent of the SR-IOV operator has left on the host. It is an error while the
        agent runs. Files are kept while C(/etc/sriov-operator/pci) marks a port as managed.
    type: bool
    default: false
seealso:
  - module: gpufabric.rdma.nic_firmware
  - module: gpufabric.rdma.netdev_names
  - name: Role sriov
    description: The role that uses this module.
    link: https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/roles/sriov.md
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Create eight VFs per rail with jumbo frames
  gpufabric.rdma.sriov_vfs:
    rails:
      - {rail: rail0, pci: "0000:18:00.0", driver: mlx5_core, netdev: rail0, mtu: 9000}
      - {rail: rail1, pci: "0000:3a:00.0", driver: mlx5_core, netdev: rail1, mtu: 9000}
    vfs: 8
    trust: true
    spoof_check: false

- name: Restore the original VFs of all ports
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
      description: State before the change.
      returned: always
      type: dict
    after:
      description: State after the change. In check mode, the predicted state.
      returned: always
      type: dict
reboot_required:
  description: Whether a change takes effect only at the next boot. Always false for this module.
  returned: always
  type: bool
reasons:
  description: Changes that take effect at the next boot, and why.
  returned: always
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import FabricError
from ..module_utils._host.facts import io as facts_io
from ..module_utils._host.sriov import io as sriov_io
from ..module_utils._host.sriov import topic_io, vf_restore
from ..module_utils._host.system import files
from ..module_utils._host.system.converge import converge


def main() -> None:
    """Carry out the plan."""
    module = AnsibleModule(argument_spec=topic_io.ARGUMENTS, supports_check_mode=True)
    roots = files.Roots.under(module.params["root"])
    try:
        done = converge(
            topic_io.NAME,
            roots,
            module.check_mode,
            read_plan=lambda record: topic_io.read_plan(
                module.params, roots, record, inventory=facts_io.read_inventory(roots), check_mode=module.check_mode
            ),
            apply=lambda plan: sriov_io.apply(plan, roots),
            restores=module.params["state"] == "absent",
            unsettled=vf_restore.unsettled,
        )
    except FabricError as error:
        module.fail_json(msg=f"{topic_io.NAME}: {error}")
    for text in done.first.warnings:
        module.warn(text)
    module.exit_json(**done.result)


if __name__ == "__main__":
    main()
