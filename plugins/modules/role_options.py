#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of plugins/action/role_options.py; no module runs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: role_options
short_description: Judge the variables of all roles before the first of them begins
version_added: "0.1.0"
description:
  - Ansible judges a role's variables when the role begins, so a wrong value for a late role would be found on hosts that earlier
    ones have changed, perhaps after a reboot. This judges the variables of all roles of the collection at once, for all hosts of the play.
  - Types, choices and structure are judged, by the argument specifications of the roles. Variables that begin like an option of a role,
    are none, and are spelt nearly like one, are warned of.
  - A variable that stands on what the run has still to find out is left to its role.
  - Runs on the controller, once for all hosts, and contacts none.
author:
  - Contributors to gpufabric.rdma (@gpufabric)
options: {}
attributes:
  check_mode:
    description: Can run in check mode and judges the same.
    support: full
  diff_mode:
    description: Nothing is ever changed.
    support: none
"""

EXAMPLES = r"""
- name: Judge the variables of all roles
  gpufabric.rdma.role_options:
  run_once: true
"""

RETURN = r"""
problems:
  description: What is wrong, each with the hosts that it is about.
  type: list
  elements: str
  returned: always
  sample: ["value of host_kernel_iommu must be one of: auto, passthrough, none, got: pasthrough (on gpu-1, gpu-2)"]
"""
