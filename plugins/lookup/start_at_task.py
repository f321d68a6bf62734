# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: start_at_task
short_description: Return the value of the ansible-playbook option --start-at-task
version_added: "0.1.0"
description:
  - With C(--start-at-task), Ansible skips all tasks before the named one, and reports success if no task has this name.
    A task can therefore not reject the option. The playbooks of this collection reject it in the C(hosts) expression of
    their first play, which Ansible always evaluates.
author:
  - Contributors to gpufabric.rdma (@gpufabric)
options: {}
"""

EXAMPLES = r"""
- name: Check the scope of the run
  hosts: >-
    {{ undef(hint='--start-at-task is not supported.') if lookup('gpufabric.rdma.start_at_task') else 'all:localhost' }}
  gather_facts: false
"""

RETURN = r"""
_raw:
  description: The name of the task, or an empty string if the option is not set.
  type: list
  elements: str
  sample: [Install packages]
"""

from typing import Any

from ansible import context
from ansible.plugins.lookup import LookupBase


class LookupModule(LookupBase):
    """Ansible has no variable for this option, unlike for tags and limit."""

    def run(self, terms: list[Any], variables: Any = None, **kwargs: Any) -> list[str]:
        return [context.CLIARGS.get("start_at_task") or ""]
