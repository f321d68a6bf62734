#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_settings
short_description: Manage kernel modules, sysctl values, memory locking and hugepages
version_added: "0.1.0"
description:
  - Manages kernel modules and their options, sysctl values, the limit of locked memory, and hugepages. Settings are applied immediately if
    the kernel supports it, and persisted in one file each in C(modules-load.d), C(modprobe.d), C(sysctl.d), C(security/limits.d) and
    C(tmpfiles.d).
  - Original values are recorded before the first change. They are restored with O(state=absent), or if a setting is no longer requested.
  - Fails before the first write if the kernel does not support a sysctl key or hugepage size, or if a later file in C(sysctl.d) sets a
    different value. Hugepages that do not fit into memory are released immediately.
  - Never reboots. Options of loaded modules take effect at the next boot, see RV(reasons).
extends_documentation_fragment:
  - gpufabric.rdma.host
  - gpufabric.rdma.host.hugepages
options:
  state:
    description: V(absent) restores the recorded values, removes the files, and unloads modules that were loaded by this module and are unused.
    type: str
    choices: [present, absent]
    default: present
  modules:
    description: Kernel modules to load, immediately and at each boot.
    type: list
    elements: str
    default: []
  module_options:
    description: Options by kernel module, as C(NAME=VALUE) separated by spaces.
    type: dict
    default: {}
  sysctl:
    description: Values by sysctl key, such as C(vm.swappiness). Other keys are not changed.
    type: dict
    default: {}
  memlock:
    description: Limit of locked memory for logins, V(unlimited) or a number of KiB. If empty, it is not changed. Services are not affected.
    type: str
    default: unlimited
seealso:
  - module: gpufabric.rdma.kernel_cmdline
  - module: gpufabric.rdma.reboot_reasons
  - name: Role host_kernel
    description: The role that uses this module.
    link: https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/roles/host_kernel.md
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Allow every login to lock memory
  gpufabric.rdma.kernel_settings:

- name: Disable NUMA balancing and reserve 512 hugepages on each of two NUMA nodes
  gpufabric.rdma.kernel_settings:
    sysctl:
      kernel.numa_balancing: 0
    hugepages:
      - {size: 2M, count: 512, numa_node: 0}
      - {size: 2M, count: 512, numa_node: 1}

- name: Restore the original settings
  gpufabric.rdma.kernel_settings:
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
  description: Whether a change takes effect only at the next boot.
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
from ..module_utils._host.kernel import settings, settings_io
from ..module_utils._host.kernel import settings_topic_io as topic_io
from ..module_utils._host.system import files
from ..module_utils._host.system.converge import converge


def main() -> None:
    """Carry out the plan."""
    module = AnsibleModule(argument_spec=topic_io.ARGUMENTS, supports_check_mode=True)
    roots = files.Roots.under(module.params["root"])

    try:
        want = settings.Want.from_params(module.params)
        done = converge(
            topic_io.NAME,
            roots,
            module.check_mode,
            read_plan=lambda record: topic_io.read_plan(want, roots, record),
            apply=lambda plan: settings_io.apply(plan, roots, roots.lib, want=want),
            restores=module.params["state"] == "absent",
            # The kernel may refuse to unload a module, so that is no part of the change.
            is_due=lambda plan: plan.change.changed or bool(plan.unload),
            unsettled=settings.unsettled,
        )
    except FabricError as error:
        module.fail_json(msg=f"{topic_io.NAME}: {error}")
    for text in done.first.warnings:
        module.warn(text)
    module.exit_json(**done.result)


if __name__ == "__main__":
    main()
