#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_facts
short_description: Read what a host has for RDMA
version_added: "0.1.0"
description:
  - Reads network ports, RDMA devices, GPUs, PCI paths, NUMA nodes, links, addresses, the RDMA stack and who uses it
    in one call, and returns them as the fact V(rdma).
  - Only physical functions are listed. Changes nothing.
extends_documentation_fragment:
  - gpufabric.rdma.host
attributes:
  diff_mode:
    description: Nothing changes, so there is no difference.
    support: none
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Read the host
  gpufabric.rdma.rdma_facts:

- name: Show its ports
  ansible.builtin.debug:
    var: ansible_facts.rdma.ports
"""

RETURN = r"""
ansible_facts:
  description: The facts of the host.
  returned: always
  type: dict
  contains:
    rdma:
      description: The host as the collection knows it.
      returned: always
      type: dict
      contains:
        schema:
          description: Version of this structure.
          type: int
          returned: always
        machine_id:
          description: Content of C(/etc/machine-id).
          type: str
          returned: always
        hostname:
          description: Name of the host.
          type: str
          returned: always
        arch:
          description: Machine architecture.
          type: str
          returned: always
        os:
          description: C(id), C(version), C(name) and C(like) of the operating system.
          type: dict
          returned: always
        kernel:
          description: C(release) and C(cmdline) of the running kernel.
          type: dict
          returned: always
        virtual:
          description: Whether the host is a virtual machine.
          type: bool
          returned: always
        secure_boot:
          description: Whether secure boot is on; null when it cannot be told.
          type: bool
          returned: always
        iommu_groups:
          description: Number of IOMMU groups; 0 when the IOMMU is off.
          type: int
          returned: always
        managers:
          description: Network managers that run.
          type: list
          elements: str
          returned: always
        ports:
          description: >-
            Physical network functions by PCI address, with netdev, MAC, MTU, speed in Gb/s, C(max_speed) (of the fastest link mode of its driver,
            null where it names none), carrier, link layer, NUMA node, PCIe link (with C(max_payload), the bytes of a packet, which only root can
            read), VFs (with C(rate), the lowest limit of one in Gb/s),
            master, addresses, RDMA devices, the path from the PCI root, C(duty) (C(carries the default route), also when a VLAN, bond or bridge on
            the port does; empty when nothing must be kept from being cut off), C(switch) (C(system), C(chassis) and C(port) of the
            LLDP neighbour; null where neither lldpd nor systemd-networkd tells one), C(uses) (what uses the port now, each with C(kind) (V(address), V(route),
            V(mount), V(bridge), V(vlan), V(bond), V(tcp), V(queue_pairs), V(dynamic) for an IPv6 address that the network gave,
            or V(unknown) where it cannot be read) and C(text); the address of a rail is not listed),
            and C(configured) (C(rail) that M(gpufabric.rdma.rail_links) made of the port and the C(addresses) that it set there, null for others).
          type: list
          elements: dict
          returned: always
        lost_rails:
          description: Rails that M(gpufabric.rdma.rail_links) configured at PCI addresses where no port is now, with these addresses.
          type: dict
          returned: always
        rdma_devices:
          description: RDMA devices with state, link layer, rate in Gb/s, MTU, GUID and firmware.
          type: list
          elements: dict
          returned: always
        gpus:
          description: GPUs with vendor, driver, NUMA node and the path from the PCI root.
          type: list
          elements: dict
          returned: always
        default_route:
          description: Network devices with a default route.
          type: list
          elements: str
          returned: always
        ssh_netdev:
          description: Network device of the ssh connection of this run, null without one.
          type: str
          returned: always
        networks:
          description: IPv4 subnets on network devices that cannot be rails.
          type: list
          elements: str
          returned: always
        modules:
          description: RDMA related kernel modules with their use count.
          type: dict
          returned: always
        drivers:
          description: >-
            Version of each loaded driver of network ports and of RDMA devices: its C(version) and C(srcversion) as the kernel shows them;
            for an in-tree driver without a C(srcversion) the release of the kernel. Null when it is unknown.
          type: dict
          returned: always
        perftest:
          description: C(path) and C(version) of perftest, null when it is not installed.
          type: dict
          returned: always
        nvidia_driver:
          description: C(version) of the NVIDIA driver and whether its kernel modules are C(open) ones, null when none is loaded.
          type: dict
          returned: always
        memory_peers:
          description: Clients of the RDMA core's peer memory interface, such as C(nv_mem) of nvidia-peermem.
          type: list
          elements: str
          returned: always
        workloads:
          description: Open C(queue_pairs) of programs (null when unknown) and their C(holders).
          type: dict
          returned: always
        reboot:
          description: Reasons to reboot that modules of this collection left since the last boot.
          type: list
          elements: str
          returned: always
        next_kernel:
          description: Release of the kernel that boots next, null when it cannot be told.
          type: str
          returned: always
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import FabricError
from ..module_utils._host.facts import io as facts_io
from ..module_utils._host.system import arguments, files


def main() -> None:
    """Read and return."""
    module = AnsibleModule(argument_spec=arguments.ROOTS, supports_check_mode=True)
    try:
        inventory = facts_io.read_inventory(files.Roots.from_params(module.params))
    except FabricError as error:
        module.fail_json(msg=f"rdma_facts: {error}")
    module.exit_json(changed=False, ansible_facts={"rdma": inventory.to_dict()})


if __name__ == "__main__":
    main()
