#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: chart_values
short_description: Show changed values of a chart
version_added: "0.1.0"
description:
  - Compares the values of an installed Helm release with those of the next installation and returns both as a diff. Values that the user
    gave may be credentials, so of these only the fact of a change is shown. Changes nothing.
extends_documentation_fragment:
  - gpufabric.rdma.controller
options:
  before:
    description: Values of the release, as returned by the module C(kubernetes.core.helm); empty if it is not installed.
    type: dict
    required: true
  after:
    description: All values of the next installation.
    type: dict
    required: true
  own:
    description: Values among O(after) that the user gave.
    type: dict
    default: {}
attributes:
  diff_mode:
    description: Returns the values before and after.
    support: full
seealso:
  - module: gpufabric.rdma.cluster_info
  - name: Role network_operator
    description: The role that uses this module.
    link: https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/roles/network_operator.md
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Show changed values
  gpufabric.rdma.chart_values:
    before: "{{ helm_result.status['values'].current }}"
    after: "{{ values }}"
  when: ansible_check_mode
"""

RETURN = r"""
shown:
  description: The values after, without those that the user gave.
  returned: always
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._fabric.operator import chart_diff


def main() -> None:
    """Compare and return."""
    values = {"type": "dict", "required": True}
    spec = {"before": values, "after": values, "own": {"type": "dict", "default": {}}}
    # Options must not be in the log of the system either.
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True, no_log=True)
    change = chart_diff.change(module.params["before"], module.params["after"], module.params["own"])
    differ = module.params["before"] != module.params["after"]
    # The options hold what must not be shown.
    module.exit_json(changed=differ, diff=change.diff(), shown=change.after, invocation={})


if __name__ == "__main__":
    main()
