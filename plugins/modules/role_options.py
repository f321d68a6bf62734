#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of plugins/action/role_options.py; no module runs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: role_options
short_description: Validate the variables of the playbooks and all roles before a host is contacted
version_added: "0.1.0"
description:
  - Ansible validates the variables of a role when the role starts. An invalid value for a late role would be found only after earlier
    roles have changed or rebooted the hosts. This module validates the variables of all roles first, for all hosts of the play.
  - Checks types, choices and structure with the argument specifications of the roles.
  - Also validates the variables of the playbooks, including C(rdma_fabric) (as far as possible without facts), C(rdma_gates) and
    C(rdma_host).
  - Fails if a variable looks like a misspelled playbook variable, because its value would be ignored. Warns about variables that look like
    misspelled role options.
  - Variables that depend on values discovered later are validated by the call that returns their O(effective) values.
  - Runs on the controller, once for all hosts, and contacts no host.
extends_documentation_fragment:
  - gpufabric.rdma.controller
seealso:
  - module: gpufabric.rdma.run_scope
author:
  - Contributors to gpufabric.rdma (@gpufabric)
options:
  effective:
    description:
      - Roles of the collection. Validates their options and returns them for each host in RV(options), with the defaults of the roles
        where nothing is set. Other variables are not checked.
      - The values are those at this point of the run, so they can depend on facts and on the plan.
    type: list
    elements: str
    default: []
  hosts:
    description: Hosts to return O(effective) options of. All hosts of the play by default.
    type: list
    elements: str
  fabric:
    description: Whether the run requires C(rdma_fabric). With V(false), this variable is not validated.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Validate the variables of the playbooks and all roles
  gpufabric.rdma.role_options:
  run_once: true

- name: Validate the variables of a playbook that requires no plan
  gpufabric.rdma.role_options:
    fabric: false
  run_once: true

- name: Read the options of a role for all hosts
  gpufabric.rdma.role_options:
    effective: [rdma_stack]
  run_once: true
  register: stack

- name: Show the provider of this host
  ansible.builtin.debug:
    msg: "{{ stack.options[inventory_hostname].rdma_stack_provider }}"
"""

RETURN = r"""
options:
  description: >-
    By host the options of the O(effective) roles. An option whose value cannot be evaluated yet is missing.
  type: dict
  returned: with O(effective)
  sample: {gpu-1: {rail_names_vfs: false, rail_names_apply: now}}
left_out:
  description: The O(effective) roles that the run leaves out, by its tags and those of the play. Each role has its name as a tag.
  type: list
  elements: str
  returned: with O(effective)
  sample: [sriov]
problems:
  description: All problems, each with the affected hosts.
  type: list
  elements: str
  returned: always
  sample: ["value of host_kernel_iommu must be one of: auto, passthrough, none, got: pasthrough (on gpu-1, gpu-2)"]
"""
