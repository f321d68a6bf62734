# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation that the modules on hosts share: options, and what they can do in check mode and diff."""

from __future__ import annotations


class ModuleDocFragment:
    """The roots that a chroot or a test redirects."""

    DOCUMENTATION = r"""
options:
  sysfs_root:
    description: Where sysfs is mounted.
    type: path
    default: /sys
  proc_root:
    description: Where procfs is mounted.
    type: path
    default: /proc
  etc_root:
    description: The host's configuration folder.
    type: path
    default: /etc
  run_root:
    description: The host's folder of run-time data.
    type: path
    default: /run
  boot_root:
    description: Where kernels and the menu of the boot loader are.
    type: path
    default: /boot
  modules_root:
    description: Where the modules of each kernel are.
    type: path
    default: /lib/modules
  state_root:
    description: Where this collection records the values that it replaced.
    type: path
    default: /var/lib/gpufabric
attributes:
  check_mode:
    description: Can run in check mode and says what would change, without changing it.
    support: full
  diff_mode:
    description: Returns the state before and after.
    support: full
  platform:
    description: Where the module can run.
    platforms: linux
    support: full
"""

    RAILS = r"""
options:
  rails:
    description: The host's slice of the plan, C(plan.hosts[name].rails) of M(gpufabric.rdma.fabric_plan).
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
        description: Driver of the port; the files match it beside the PCI path.
        type: str
      mac:
        description: MAC address of the port when the plan was made; for reading only.
        type: str
      current:
        description: Name of the network device when the plan was made; for reading only.
        type: str
      netdev:
        description: Name that the network device shall have.
        type: str
        required: true
      address:
        description: IPv4 address with prefix; none leaves the addresses as they are.
        type: str
      mtu:
        description: MTU in bytes.
        type: int
        required: true
      doubt:
        description: Hosts whose addresses the plan does not know. The address may be one of theirs, and is not set where it is new.
        type: str
"""

    CONSENT = r"""
options:
  disrupt_users:
    description:
      - Whether ports may be changed while something uses them. The playbooks pass C(rdma_disrupt_users).
      - Users are mounts over the port, established TCP connections and RDMA queue pairs. What cannot be read counts as a user.
    type: bool
    default: false
"""

    HUGEPAGES = r"""
options:
  hugepages:
    description:
      - Hugepages. Those with C(at=boot) become kernel arguments by M(gpufabric.rdma.kernel_cmdline), the others are for
        M(gpufabric.rdma.kernel_settings); both take the same list.
    type: list
    elements: dict
    default: []
    suboptions:
      size:
        description: Size of a page, such as V(2M) or V(1G).
        type: str
        required: true
      count:
        description: How many pages.
        type: int
        required: true
      numa_node:
        description: On which NUMA node; none leaves it to the kernel.
        type: int
      at:
        description: V(now) asks the running kernel, and each later one once it runs; V(boot) reserves them while memory is whole.
        type: str
        choices: [now, boot]
        default: now
"""
