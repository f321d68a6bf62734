#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of plugins/action/run_scope.py; no module runs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: run_scope
short_description: Check that a run selects hosts of the fabric and tasks
version_added: "0.1.0"
description:
  - Ansible skips plays without hosts and tasks without a selected tag, and reports success. This module fails such a run before any
    other task.
  - Fails if the group of the fabric (C(rdma_group), default C(rdma_hosts)) is missing or empty, if C(--limit) matches none of its hosts,
    if the name of the group is a pattern that selects other hosts, or if the inventory sets C(rdma_group) to a different value.
  - The playbook C(plan) alone may run without hosts, with C(rdma_facts_dir), C(rdma_cluster_file) or C(rdma_preset).
  - Fails if no task of the playbook has a tag given by C(--tags) or C(--skip-tags), or if the tags select no tasks.
  - Use this module with C(run_once) in a play on C(all:localhost), as in playbooks/plays/guard.yml. Ansible would skip a play on an empty
    group, and C(--limit) would exclude a play on C(localhost).
  - Runs on the controller and contacts no host.
extends_documentation_fragment:
  - gpufabric.rdma.controller
seealso:
  - module: gpufabric.rdma.role_options
  - plugin: gpufabric.rdma.start_at_task
    plugin_type: lookup
author:
  - Contributors to gpufabric.rdma (@gpufabric)
options: {}
"""

EXAMPLES = r"""
- name: Check the group, limit and tags
  gpufabric.rdma.run_scope:
  run_once: true
"""

RETURN = r"""
group:
  description: The inventory group that this run uses as the fabric.
  type: str
  returned: always
  sample: rdma_hosts
only_plan:
  description: Whether the playbook C(plan) is the only one of the command line.
  type: bool
  returned: always
recorded:
  description: Whether recorded facts, a cluster file or a preset stand for the hosts.
  type: bool
  returned: always
"""
