#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of plugins/action/role_options.py; no module runs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: role_options
short_description: Judge the variables of the playbooks and of all roles before a host is contacted
version_added: "0.1.0"
description:
  - Ansible judges a role's variables when the role begins, so a wrong value for a late role would be found on hosts that earlier
    ones have changed, perhaps after a reboot. This judges the variables of all roles of the collection at once, for all hosts of the play.
  - Types, choices and structure are judged, by the argument specifications of the roles.
  - The variables of the playbooks are judged too, among them C(rdma_fabric), as far as that needs no facts of the hosts, C(rdma_gates) and
    C(rdma_host).
  - A variable with a name that is nearly that of a variable of the playbooks is an error, since the run would go on without the value. One with a name
    that is nearly that of an option of a role is a warning.
  - A variable that stands on what the run has still to find out is left to its role.
  - Runs on the controller, once for all hosts, and contacts none.
author:
  - Contributors to gpufabric.rdma (@gpufabric)
options:
  effective:
    description:
      - Roles of the collection. Returns their options for each host in RV(options), with the defaults of the roles where nothing
        is set, in place of checking variables.
      - The values are those at this point of the run, so they can depend on facts and on the plan.
    type: list
    elements: str
    default: []
  hosts:
    description: Hosts to return O(effective) options of. All hosts of the play by default.
    type: list
    elements: str
  fabric:
    description: Whether the run needs C(rdma_fabric). With V(false) it is not looked at.
    type: bool
    default: true
attributes:
  check_mode:
    description: Can run in check mode and judges the same.
    support: full
  diff_mode:
    description: Nothing is ever changed.
    support: none
"""

EXAMPLES = r"""
- name: Judge the variables of the playbooks and of all roles
  gpufabric.rdma.role_options:
  run_once: true

- name: Judge the variables of a playbook that needs no plan
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
problems:
  description: What is wrong, each with the hosts that it is about.
  type: list
  elements: str
  returned: without O(effective)
  sample: ["value of host_kernel_iommu must be one of: auto, passthrough, none, got: pasthrough (on gpu-1, gpu-2)"]
"""
