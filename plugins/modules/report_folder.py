#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of plugins/action/report_folder.py; no module runs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: report_folder
short_description: Check that the folder of the report can be written
version_added: "0.1.0"
description:
  - Fails when the folder, or its nearest parent that exists when it does not, cannot be written by the user that runs Ansible, and when the
    folder lies in an installed collection. It creates nothing.
  - The playbook C(site) does this before the first host is changed, the role C(rdma_validate) before it measures.
  - Runs on the controller and contacts no host.
author:
  - Contributors to gpufabric.rdma (@gpufabric)
options:
  path:
    description: The folder, as an absolute path.
    type: path
    required: true
attributes:
  check_mode:
    description: Can run in check mode and checks the same.
    support: full
  diff_mode:
    description: Nothing is ever changed.
    support: none
"""

EXAMPLES = r"""
- name: Check that the report can be written
  gpufabric.rdma.report_folder:
    path: /srv/rdma-report
  run_once: true
"""

RETURN = r"""
path:
  description: The folder.
  type: str
  returned: always
  sample: /srv/rdma-report
process:
  description: The process of ansible-playbook, for M(gpufabric.rdma.fabric_run). Empty on a controller without C(/proc).
  type: dict
  returned: always
  sample: {system: "3f0c9d1e-5a8b-4c55-9d6e-2f1b7c7f4a10 pid:[4026531836]", pid: 4711, start: "8839175"}
"""
