#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_stack
short_description: Manage the RDMA stack of a host
version_added: "0.1.0"
description:
  - Loads the kernel modules for user space RDMA, immediately and at boot. With O(provider=soft_roce), also creates one soft-RoCE device
    C(rxe_NETDEV) per rail, with a systemd unit bound to the network device.
  - With O(provider=doca_ofed), the vendor stack is installed from a signed package source in the exact release and version requested. Key,
    source, version, kernel headers and the support matrix are checked before anything changes, for the running and the next kernel.
    Unused drivers are reloaded. If they are in use, the change takes effect at the next boot, and RV(reasons) names the users.
  - Returns the packages to install and remove in RV(packages). Use a package module to install them, then run this module again. Installed
    packages and replaced versions are recorded, so that O(state=absent) or another provider can restore them.
extends_documentation_fragment:
  - gpufabric.rdma.host
  - gpufabric.rdma.host.rails
  - gpufabric.rdma.host.consent
options:
  state:
    description: V(absent) reverts the changes of this module, and returns the packages that were installed by this collection.
    type: str
    choices: [present, absent]
    default: present
  provider:
    description:
      - V(inbox) uses the drivers of the distribution, V(soft_roce) configures software RDMA on NICs without RDMA, and V(doca_ofed) installs
        the vendor stack on the host. V(container)
        leaves the drivers to the driver container of the operator.
    type: str
    choices: [inbox, soft_roce, doca_ofed, container]
    default: inbox
  install_packages:
    description: Whether to check for missing packages.
    type: bool
    default: true
  packages:
    description: Required packages. An empty list selects the packages that the distribution requires.
    type: list
    elements: str
    default: []
  perftest_cuda:
    description:
      - Whether the perftest of the host must be built with CUDA, for tests from GPU memory. If it is installed and its own help does not list
        the options of CUDA, the module fails before anything changes. Packages that are missing are installed first.
    type: bool
    default: false
  replace:
    description: Allow replacing DOCA-OFED with another provider, or the packages of another vendor stack with this provider.
    type: bool
    default: false
  restart:
    description: V(idle) reloads unused drivers. V(never) defers the change to the next boot.
    type: str
    choices: [idle, never]
    default: idle
  vendor_packages:
    description: Vendor stack packages on the host that conflict with other stacks.
    type: list
    elements: str
    default: [doca-ofed, doca-all, mlnx-ofed-kernel-dkms, mlnx-ofed-kernel-modules, mlnx-ofa_kernel, mlnx-ofa_kernel-dkms, kmod-mlnx-ofa_kernel]
  doca:
    description: Version and source of the packages for O(provider=doca_ofed).
    type: dict
    suboptions:
      release:
        description: Release of DOCA-OFED, such as V(3.2.1). It determines the supported systems and kernels.
        type: str
      package:
        description: Metapackage to install.
        type: str
        default: doca-ofed
      version:
        description: Exact version of the package.
        type: str
      repository:
        description: URL of the package source. C({release}), C({distribution}) and C({arch}) are replaced.
        type: str
        default: https://linux.mellanox.com/public/repo/doca/{release}/{distribution}/{arch}
      suite:
        description: Suite of a Debian package source. A suite that ends with a slash is a directory.
        type: str
        default: ./
      components:
        description: Components of the suite. Leave empty for a directory.
        type: list
        elements: str
        default: []
      key:
        description: Public key of the package source, as ASCII-armored text.
        type: str
      fingerprint:
        description: Expected full fingerprint of the key, 40 hexadecimal digits.
        type: str
      build:
        description: V(dkms) builds the kernel modules on the host and requires kernel headers. V(precompiled) installs modules from the source.
        type: str
        choices: [dkms, precompiled]
        default: dkms
      hold:
        description: Whether to hold the packages at this version.
        type: bool
        default: true
      supported:
        description: Supported kernel release prefixes by distribution. Overrides the support matrix of the release.
        type: dict
        default: {}
seealso:
  - module: gpufabric.rdma.rdma_facts
  - module: gpufabric.rdma.peer_memory
  - module: gpufabric.rdma.preflight
  - name: Role rdma_stack
    description: The role that uses this module.
    link: https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/roles/rdma_stack.md
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Load the RDMA stack of the distribution
  gpufabric.rdma.rdma_stack:
    provider: inbox

- name: Configure DOCA-OFED
  gpufabric.rdma.rdma_stack:
    provider: doca_ofed
    doca:
      release: 3.2.1
      version: 3.2.1-044000
      key: "{{ lookup('ansible.builtin.file', 'GPG-KEY-Mellanox.pub') }}"
      fingerprint: "{{ doca_key_fingerprint }}"

- name: Configure soft-RoCE on the rails
  gpufabric.rdma.rdma_stack:
    provider: soft_roce
    rails:
      - {rail: rail0, pci: "0000:01:00.0", driver: igb, netdev: rail0, mtu: 9000}
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
packages:
  description: >-
    Package changes to make. C(remove) lists the packages to remove first, C(install) the packages to install, with a version if one is
    requested, C(manager) is C(apt) or C(dnf), and C(pinned) is true if versions are included. C(new_source) is true if the package source
    does not exist yet in check mode.
  returned: always
  type: dict
findings:
  description: Warnings that do not stop the run.
  returned: always
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import FabricError
from ..module_utils._host.facts import io as facts_io
from ..module_utils._host.rdma_stack import io as rdma_stack_io
from ..module_utils._host.rdma_stack import plan as rdma_stack_plan
from ..module_utils._host.rdma_stack import topic_io
from ..module_utils._host.system import files
from ..module_utils._host.system.converge import converge


def main() -> None:
    """Carry out the plan."""
    module = AnsibleModule(argument_spec=topic_io.ARGUMENTS, supports_check_mode=True)
    roots = files.Roots.under(module.params["root"])
    try:
        inventory = facts_io.read_inventory(roots)
        topic = topic_io.Topic(module.params, roots, inventory=inventory, check_mode=module.check_mode)
        done = converge(
            topic_io.NAME,
            roots,
            module.check_mode,
            read_plan=topic.read_plan,
            apply=lambda stack: rdma_stack_io.apply(roots, stack.plan),
            restores=module.params["state"] == "absent",
            # The kernel may refuse to unload a module, so that is no part of the change.
            is_due=lambda stack: stack.change.changed or bool(stack.plan.unload),
            may_wait=("drivers",),
        )
    except FabricError as error:
        module.fail_json(msg=f"{topic_io.NAME}: {error}")
    findings = list(done.last.reading.findings)
    for text in findings:
        module.warn(text)
    packages = rdma_stack_plan.packages_result(done.first.plan, done.last.reading.have)
    module.exit_json(**done.result, findings=findings, packages=packages)


if __name__ == "__main__":
    main()
