#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of plugins/action/run_scope.py; no module runs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: run_scope
short_description: Check that a run addresses hosts of the fabric and has tasks to do
version_added: "0.1.0"
description:
  - Ansible skips a play that has no hosts and a task that has none of the selected tags, and reports success. This module ends such a run
    with an error before anything else happens.
  - Fails when the group of the fabric (C(rdma_group), default C(rdma_hosts)) is missing or empty, when C(--limit) matches none of its
    hosts, when a play on the name of the group would select other hosts than those of the group, since Ansible reads it as a pattern, and
    when the inventory sets C(rdma_group) to another value than the run uses.
  - Fails when no task of the playbook has a tag of C(--tags) or C(--skip-tags), and when the tags select nothing to do.
  - Use it with C(run_once) in a play on C(all:localhost), as playbooks/plays/guard.yml does. A play on the group of the fabric would be skipped
    when it has no hosts, a play on C(localhost) by C(--limit).
  - Runs on the controller and contacts no host.
author:
  - Contributors to gpufabric.rdma (@gpufabric)
options: {}
attributes:
  check_mode:
    description: Can run in check mode and checks the same.
    support: full
  diff_mode:
    description: Nothing is ever changed.
    support: none
"""

EXAMPLES = r"""
- name: Check group, limit and tags
  gpufabric.rdma.run_scope:
  run_once: true
"""

RETURN = r"""
group:
  description: The group of the inventory that this run uses as the fabric.
  type: str
  returned: always
  sample: rdma_hosts
"""
