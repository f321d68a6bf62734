#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pcie_acs
short_description: Disable PCIe Access Control Services (ACS) between NICs and GPUs
version_added: "0.1.0"
description:
  - Clears the ACS control register of the switch ports between the NIC of each rail and the GPUs that are reachable without passing a
    root port. This happens immediately, and at each boot through a systemd unit. Other ports are not changed.
  - With ACS enabled, a switch redirects traffic between NIC and GPU through the CPU, which reduces the bandwidth or causes hangs.
  - Disabling ACS removes isolation, because devices below these switches can access the memory of each other without the IOMMU. The
    module therefore rejects virtual machines, hosts with devices bound to C(vfio-pci), and NICs or GPUs with IOMMU translation (the
    IOMMU must be off or in passthrough mode).
  - All ports are read before the first write and verified afterwards. The original registers are recorded once. They are restored with
    O(state=absent), or if a port is no longer between a NIC and a GPU.
  - Requires root and C(setpci) of pciutils. After a hotplug, rescan or bus reset, ports have the kernel defaults until the module or the
    unit runs again.
extends_documentation_fragment:
  - gpufabric.rdma.host
  - gpufabric.rdma.host.rails
options:
  state:
    description: V(absent) restores the recorded registers of all ports and removes the unit. O(rails) is ignored.
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: gpufabric.rdma.peer_memory
  - module: gpufabric.rdma.preflight
  - name: Role pcie_acs
    description: The role that uses this module.
    link: https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/roles/pcie_acs.md
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Disable ACS between NICs and GPUs on the same switch
  gpufabric.rdma.pcie_acs:
    rails:
      - {rail: rail0, pci: "0000:18:00.0", driver: mlx5_core, netdev: rail0, mtu: 9000}

- name: Restore the original registers of all ports
  gpufabric.rdma.pcie_acs:
    state: absent
"""

RETURN = r"""
diff:
  description: State before and after, with registers in the notation of lspci.
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
ports:
  description: The switch ports with ACS disabled, each with the C(nic) and the C(gpu) that it connects.
  returned: always
  type: dict
  sample: {"0000:17:00.0": {nic: "0000:18:00.0", gpu: "0000:1b:00.0"}}
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import CommandError, FabricError
from ..module_utils._host.facts import io as facts_io
from ..module_utils._host.facts.rail_ports import parse_rails
from ..module_utils._host.gpu_direct import acs, acs_io
from ..module_utils._host.system import arguments, files
from ..module_utils._host.system.converge import converge

NAME = "pcie_acs"
ARGUMENTS = {**arguments.ROOT, **arguments.RAILS, **arguments.STATE}
TRADE = (
    "ACS is off on %s: devices below these PCIe switches reach each other's memory past the IOMMU. Do not pass them "
    "to a virtual machine"
)


class Acs:
    """The switch ports that this run is about, and how they are read."""

    def __init__(self, params: Mapping[str, Any], roots: files.Roots) -> None:
        rails = parse_rails(params["rails"]) if params["state"] == "present" else ()
        self.roots = roots
        self.inventory = facts_io.read_inventory(roots) if rails else None
        self.wanted = acs.paths(self.inventory, [rail.pci for rail in rails]) if self.inventory else {}

    def read_plan(self, record: Mapping[str, Any]) -> acs.AcsPlan:
        """Read registers and unit and work out what to do."""
        devices = [device for pair in self.wanted.values() for device in pair]
        have = acs_io.read(self.roots, [*self.wanted, *(port for port in record if port not in self.wanted)], devices)
        if self.inventory:
            acs.check(self.inventory, self.wanted, have)
        plan = acs.plan_acs(self.wanted, have, record, unit=f"{acs_io.units(self.roots)}/{acs.UNIT}")
        missing = acs_io.no_setpci()
        if missing and (plan.writes or plan.record):
            raise CommandError(missing)
        return plan


def main() -> None:
    """Carry out the plan."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    roots = files.Roots.under(module.params["root"])
    try:
        topic = Acs(module.params, roots)
        restores = module.params["state"] == "absent"
        done = converge(
            NAME, roots, module.check_mode, read_plan=topic.read_plan, apply=acs_io.apply, restores=restores
        )
    except FabricError as error:
        module.fail_json(msg=f"{NAME}: {error}")
    ports = {port: pair for port, pair in topic.wanted.items() if port in done.first.record}
    for text in done.first.warnings:
        module.warn(text)
    if done.first.change.changed and ports:
        module.warn(TRADE % ", ".join(ports))
    module.exit_json(**done.result, ports={port: {"nic": nic, "gpu": gpu} for port, (nic, gpu) in ports.items()})


if __name__ == "__main__":
    main()
