# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation shared by all host modules."""

from __future__ import annotations


class ModuleDocFragment:
    """Options and attributes of host modules."""

    DOCUMENTATION = r"""
options:
  root:
    description: Root directory of the host's file system, such as a chroot. All files are read and written below it.
    type: path
    default: /
attributes:
  check_mode:
    description: Can run in check mode and return changed status prediction without modifying target.
    support: full
  diff_mode:
    description: Returns the state before and after.
    support: full
  idempotent:
    description: When run twice in a row outside check mode with the same arguments, the second run reports no change.
    support: full
  action_group:
    description: Use C(group/gpufabric.rdma.host) in C(module_defaults) to set defaults for all host modules.
    support: full
    membership: [gpufabric.rdma.host]
  platform:
    description: Where the module can run.
    platforms: linux
    support: full
"""

    RAILS = r"""
options:
  rails:
    description: Rails of the host, C(plan.hosts[name].rails) of M(gpufabric.rdma.fabric_plan).
    type: list
    elements: dict
    default: []
    suboptions:
      rail:
        description: Name of the rail.
        type: str
        required: true
      pci:
        description: PCI address of the port.
        type: str
        required: true
      driver:
        description: Driver of the port. The files match it together with the PCI path.
        type: str
      mac:
        description: MAC address of the port at planning time. For information only.
        type: str
      current:
        description: Name of the network device at planning time. For information only.
        type: str
      netdev:
        description: Desired name of the network device.
        type: str
        required: true
      address:
        description: Address with prefix length. Without this address and that of C(ipv6), addresses are not changed.
        type: str
      mtu:
        description: MTU in bytes.
        type: int
        required: true
      doubt:
        description: Hosts outside the plan that may already use the address. A new address is not set in this case.
        type: str
      gateway:
        description: Address of the router of the rail.
        type: str
      routes:
        description: Networks that the address of the rail reaches through the router.
        type: list
        elements: str
      beyond:
        description: The network among them that every address of the host reaches that way, which is the rest of the rail.
        type: str
      members:
        description:
          - PCI addresses of the members of a bond; O(rails[].pci) is the first of them, and O(rails[].netdev) the name of the bond.
          - Without it, the rail is a port.
        type: list
        elements: str
      vlan:
        description: Number of the VLAN interface on the port that has the address, named after O(rails[].netdev), such as C(rail0.100).
        type: int
      ipv6:
        description: IPv6 address of the rail beside an IPv4 address.
        type: dict
        suboptions:
          address:
            description: Address with prefix length.
            type: str
          gateway:
            description: Address of the router of the rail.
            type: str
          routes:
            description: Networks that the address reaches through the router.
            type: list
            elements: str
          beyond:
            description: The network among them that every IPv6 address of the host reaches that way.
            type: str
"""

    CONSENT = r"""
options:
  disrupt_users:
    description:
      - Allow changes to ports that are in use. The playbooks pass C(rdma_disrupt_users).
      - Users are mounts over the port, established TCP connections and RDMA queue pairs. Unreadable state counts as a user.
    type: bool
    default: false
"""

    HUGEPAGES = r"""
options:
  hugepages:
    description:
      - Hugepages to reserve. M(gpufabric.rdma.kernel_cmdline) handles entries with C(at=boot), M(gpufabric.rdma.kernel_settings) all
        others. Both modules accept the same list.
    type: list
    elements: dict
    default: []
    suboptions:
      size:
        description: Size of a page, such as V(2M) or V(1G).
        type: str
        required: true
      count:
        description: Number of pages.
        type: int
        required: true
      numa_node:
        description: NUMA node of the pages. If omitted, the kernel distributes them.
        type: int
      at:
        description: V(now) reserves pages in the running kernel, immediately and after each boot. V(boot) reserves them with kernel arguments.
        type: str
        choices: [now, boot]
        default: now
"""
