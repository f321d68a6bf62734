#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_facts
short_description: Gather RDMA facts of a host
version_added: "0.1.0"
description:
  - Gathers network ports, RDMA devices, GPUs, PCI paths, NUMA nodes, links, addresses, the RDMA stack and its users in one call, and
    returns them as the fact V(rdma).
  - Lists no VFs, except those that a hypervisor passed through. Changes nothing.
extends_documentation_fragment:
  - gpufabric.rdma.host
attributes:
  diff_mode:
    description: The module changes nothing.
    support: none
seealso:
  - module: gpufabric.rdma.fabric_plan
  - module: gpufabric.rdma.preflight
  - name: Role rdma_validate
    description: The role that uses this module.
    link: https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/roles/rdma_validate.md
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Gather RDMA facts
  gpufabric.rdma.rdma_facts:

- name: Show the ports
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
      description: RDMA facts of the host.
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
          description: Whether Secure Boot is enabled; null if unknown.
          type: bool
          returned: always
        iommu_groups:
          description: Number of IOMMU groups; 0 if the IOMMU is off.
          type: int
          returned: always
        managers:
          description: Active network managers.
          type: list
          elements: str
          returned: always
        ports:
          description: >-
            Network functions by PCI address, except VFs of the ports of the host, with netdev, MAC, MTU, speed in Gb/s, C(max_speed) (fastest link
            mode of the driver, null if unknown), carrier, link layer, NUMA node, PCIe link (null in virtual machines, with C(max_payload) in bytes,
            readable only by root),
            VFs (with C(rate), the lowest rate limit in Gb/s), master, addresses, RDMA devices, the path from the PCI root, C(duty) (for example
            C(carries the default route), directly or through a VLAN, bond or bridge; empty if the port is not critical for connectivity), C(switch)
            (C(system), C(chassis) and C(port) of the LLDP neighbour, and as far as lldpd reports them C(max_frame), its largest frame in bytes,
            and C(pfc), its priorities with flow control; null if neither lldpd nor systemd-networkd reports one. Of InfiniBand, name, GUID and
            port of the switch, if C(smpquery) of infiniband-diags is installed), C(uses) (current users of the
            port, each with C(kind) and C(text); the kind is V(address), V(route), V(mount), V(bridge), V(vlan), V(bond), V(tcp), V(queue_pairs),
            V(dynamic) for an IPv6 address assigned by the network, or V(unknown) if it cannot be read; addresses of rails are not listed), and
            C(configured) (the C(rail) and C(addresses) that M(gpufabric.rdma.rail_links) configured on the port, null for other ports), and
            C(passthrough) (in virtual machines V(vf) for a VF of a card of the hypervisor and V(pf) for other functions, also emulated ones; null
            on other hosts).
          type: list
          elements: dict
          returned: always
        bonds:
          description: >-
            Bonds by name, with C(mode), C(members) (C(netdev), C(pci), C(speed) and C(carrier)), C(lag) (state of the LAG of an mlx5 NIC in
            debugfs, null if it cannot be read), C(problem) (why the bond cannot be a rail; empty if it can), and C(port) (the first member as in
            C(ports), with the MTU, addresses, users and RDMA device of the bond, and the speed of one member; null without members that are ports).
          type: list
          elements: dict
          returned: always
        lost_rails:
          description: Rails that M(gpufabric.rdma.rail_links) configured on ports that no longer exist, with their PCI addresses.
          type: dict
          returned: always
        lost_addresses:
          description: The same rails with the addresses that M(gpufabric.rdma.rail_links) configured.
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
          description: Network device of the ssh connection of this run; null if there is none.
          type: str
          returned: always
        networks:
          description: Subnets on network devices that cannot be rails.
          type: list
          elements: str
          returned: always
        modules:
          description: RDMA-related kernel modules with their use count.
          type: dict
          returned: always
        drivers:
          description: >-
            Version of each loaded driver of network ports and RDMA devices, with its C(version) and C(srcversion) as shown by the kernel, or
            the kernel release for an in-tree driver without C(srcversion). Null if unknown.
          type: dict
          returned: always
        perftest:
          description: C(path) and C(version) of perftest; null if it is not installed.
          type: dict
          returned: always
        nvidia_driver:
          description: C(version) of the NVIDIA driver, and whether it uses the C(open) kernel modules; null if no driver is loaded.
          type: dict
          returned: always
        memory_peers:
          description: Clients of the peer memory interface of the RDMA core, such as C(nv_mem) of nvidia-peermem.
          type: list
          elements: str
          returned: always
        workloads:
          description: Number of open C(queue_pairs) of user processes (null if unknown) and their C(holders).
          type: dict
          returned: always
        reboot:
          description: Reboot reasons recorded by modules of this collection since the last boot.
          type: list
          elements: str
          returned: always
        next_kernel:
          description: Release of the kernel for the next boot; null if unknown.
          type: str
          returned: always
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import FabricError
from ..module_utils._host.facts import io as facts_io
from ..module_utils._host.system import arguments, files


def main() -> None:
    """Read and return."""
    module = AnsibleModule(argument_spec=arguments.ROOT, supports_check_mode=True)
    try:
        inventory = facts_io.read_inventory(files.Roots.under(module.params["root"]))
    except FabricError as error:
        module.fail_json(msg=f"rdma_facts: {error}")
    module.exit_json(changed=False, ansible_facts={"rdma": inventory.to_dict()})


if __name__ == "__main__":
    main()
