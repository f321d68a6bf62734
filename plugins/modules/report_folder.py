#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of plugins/action/report_folder.py; no module runs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: report_folder
short_description: Check that the report directory is writable
version_added: "0.1.0"
description:
  - Fails if the user that runs Ansible cannot write to the directory or, if it does not exist, to its nearest existing parent. Also fails
    if the directory is inside an installed collection. Creates nothing.
  - The playbook C(site) runs this check before the first host is changed, and the role C(rdma_validate) before it measures.
  - Runs on the controller and contacts no host.
extends_documentation_fragment:
  - gpufabric.rdma.controller
seealso:
  - module: gpufabric.rdma.fabric_run
  - module: gpufabric.rdma.fabric_report
  - name: Role rdma_validate
    description: The role that uses this module.
    link: https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/roles/rdma_validate.md
author:
  - Contributors to gpufabric.rdma (@gpufabric)
options:
  path:
    description: Absolute path of the directory.
    type: path
    required: true
"""

EXAMPLES = r"""
- name: Check that the report directory is writable
  gpufabric.rdma.report_folder:
    path: /srv/rdma-report
  run_once: true
"""

RETURN = r"""
path:
  description: The directory.
  type: str
  returned: always
  sample: /srv/rdma-report
process:
  description: The ansible-playbook process, for M(gpufabric.rdma.fabric_run). Empty on controllers without C(/proc).
  type: dict
  returned: always
  sample: {system: "3f0c9d1e-5a8b-4c55-9d6e-2f1b7c7f4a10 pid:[4026531836]", pid: 4711, start: "8839175"}
"""
