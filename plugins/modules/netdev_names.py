#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: netdev_names
short_description: Manage interface names of rails by PCI path
version_added: "0.1.0"
description:
  - Writes one systemd C(.link) file per rail, with a low number, that matches the port by PCI path and driver.
  - Fails before the first write if another C(.link) file, netplan or a udev rule would assign a different name, if another network device
    has the name, or if a port carries the default route or the ssh connection or is a member of a bond.
  - The original name is recorded once and restored with O(state=absent), unless another tool has renamed the device since.
  - Ports, VFs and representors that are managed by another tool keep their names.
  - Optionally names the VFs of the rails and their representors with udev rules, which also apply to VFs created later.
  - Rebuilds the initramfs if files changed and it contains the driver of a port, because the port gets its name there.
extends_documentation_fragment:
  - gpufabric.rdma.host
  - gpufabric.rdma.host.rails
options:
  state:
    description:
      - V(present) configures the ports as described in O(rails). Ports that are no longer rails are restored to their recorded state.
      - V(absent) restores the recorded state of all ports and removes the files. O(rails) is ignored.
    type: str
    choices: [present, absent]
    default: present
  vfs:
    description:
      - Name the VFs after their rail, for example V(rail0v3) for VF 3 of V(rail0). The VF is found by the link C(virtfn3) of the port.
      - The rule also applies to VFs created later, up to C(sriov_totalvfs) of the port, and to VFs returned from a pod.
      - Fails if a name has more than 15 characters, is in use, or is assigned by another tool.
    type: bool
    default: false
  representors:
    description:
      - Name the VF representors of ports in switchdev mode after their rail, for example V(rail0r3) for VF 3 of V(rail0).
      - Representors of subfunctions and of VFs of another controller (the host of a DPU) keep their names.
    type: bool
    default: false
  apply:
    description:
      - V(now) immediately renames unused devices. These have no address and no device on top, and no process uses the RDMA device of a VF.
        The link is set down during the rename. VFs in another network namespace, such as that of a pod, are not renamed.
      - V(boot) applies all renames at the next boot.
    type: str
    choices: [now, boot]
    default: boot
  rdma:
    description:
      - V(rail) also names the RDMA device of each port after its rail, with a udev rule that calls C(rdma_rename) of rdma-core. The order of
        RDMA devices then matches the rails, regardless of the driver. With O(vfs), the RDMA device of a VF is named after the VF.
      - V(keep) does not name RDMA devices, and restores RDMA device names set earlier.
    type: str
    choices: [keep, rail]
    default: keep
seealso:
  - module: gpufabric.rdma.rail_links
  - module: gpufabric.rdma.reboot_reasons
  - name: Role rail_names
    description: The role that uses this module.
    link: https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/roles/rail_names.md
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Name the rails and rename unused ports immediately
  gpufabric.rdma.netdev_names:
    rails:
      - {rail: rail0, pci: "0000:18:00.0", driver: mlx5_core, netdev: rail0, mtu: 9000}
      - {rail: rail1, pci: "0000:3a:00.0", driver: mlx5_core, netdev: rail1, mtu: 9000}
    apply: now

- name: Name the rails, their VFs and their RDMA devices
  gpufabric.rdma.netdev_names:
    rails:
      - {rail: rail0, pci: "0000:18:00.0", driver: mlx5_core, netdev: rail0, mtu: 9000}
    vfs: true
    rdma: rail

- name: Restore the original names of all ports
  gpufabric.rdma.netdev_names:
    state: absent
    apply: now
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
  description: Whether a change takes effect only at the next boot.
  returned: always
  type: bool
reasons:
  description: Changes that take effect at the next boot, and why.
  returned: always
  type: list
  elements: str
initramfs:
  description: The rebuilt initramfs images, which contain the driver of a port whose files changed.
  returned: always
  type: list
  elements: str
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import FabricError
from ..module_utils._host.facts import io as facts_io
from ..module_utils._host.naming import io as naming_io
from ..module_utils._host.naming import rdma_io, topic_io
from ..module_utils._host.system import files
from ..module_utils._host.system.converge import converge


class Naming:
    """How the names of a host are read and changed; ``images`` are those initramfs images that were made anew.

    ``converge`` has the record of network devices, this class the one of RDMA devices: each was there before the other.
    """

    def __init__(self, params: Mapping[str, Any], roots: files.Roots) -> None:
        self.params, self.roots = params, roots
        # There as long as the files and the initramfs may differ: a run that was cut off is finished by the next one.
        self.marker = f"{roots.state}/{topic_io.NAME}.initramfs"
        self.images: list[str] = []

    def read_plan(self, record: Mapping[str, Any]) -> topic_io.Names:
        """Read the host and work out what to do."""
        inventory = facts_io.read_inventory(self.roots)
        return topic_io.read_plan(self.params, self.roots, record, inventory=inventory)

    def is_due(self, plan: topic_io.Names) -> bool:
        """Whether names, records or an initramfs are not as they are to be."""
        late = plan.rdma.record != plan.rdma_record or files.read(self.marker) is not None
        return plan.change.changed or late

    def apply(self, plan: topic_io.Names) -> None:
        """Write files, rename, make the initramfs anew."""
        if plan.netdevs.changes_links:
            files.write(self.marker, "")
        if plan.netdevs.change.changed:
            naming_io.apply(plan.netdevs)
        if files.read(self.marker) is not None:
            self.images = naming_io.renew_initramfs(self.roots, list(plan.netdevs.change.after["names"]))
            files.remove(self.marker)
        rdma_io.apply(plan.rdma, self.roots)


def main() -> None:
    """Carry out the plan."""
    module = AnsibleModule(argument_spec=topic_io.ARGUMENTS, supports_check_mode=True)
    roots = files.Roots.under(module.params["root"])
    topic = Naming(module.params, roots)
    try:
        # The second round settles the record of RDMA devices, which were read again by then.
        done = converge(
            topic_io.NAME,
            roots,
            module.check_mode,
            read_plan=topic.read_plan,
            apply=topic.apply,
            restores=module.params["state"] == "absent",
            is_due=topic.is_due,
            rounds=2,
        )
    except FabricError as error:
        module.fail_json(msg=f"{topic_io.NAME}: {error}")
    for text in done.first.warnings:
        module.warn(text)
    module.exit_json(**done.result, initramfs=topic.images)


if __name__ == "__main__":
    main()
