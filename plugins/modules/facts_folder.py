#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: facts_folder
short_description: Record the facts of the hosts in a folder
version_added: "0.2.0"
description:
  - Writes one file per host with its facts, its C(rdma_host) and its groups, from which M(gpufabric.rdma.fabric_manifests) plans later
    without the hosts and without an inventory.
  - A file is written only if its content differs. The file of a host that is not given stays.
  - Runs on the controller, once for all hosts.
extends_documentation_fragment:
  - gpufabric.rdma.controller
attributes:
  check_mode:
    description: Predicts which files change.
    support: full
  diff_mode:
    description: Lists the files that change, without their content.
    support: full
seealso:
  - module: gpufabric.rdma.rdma_facts
  - module: gpufabric.rdma.fabric_manifests
author:
  - Contributors to gpufabric.rdma (@gpufabric)
options:
  path:
    description: The folder on the controller. It is created if it does not exist.
    type: path
    required: true
  facts:
    description: Facts by inventory host name, each the value of C(ansible_facts.rdma). Hosts without facts are left out.
    type: dict
    required: true
  settings:
    description: The values of C(rdma_host) by inventory host name.
    type: dict
    default: {}
  group:
    description: All hosts of the fabric in inventory order, in which new addresses are assigned.
    type: list
    elements: str
    required: true
  groups:
    description: The groups of the inventory with their hosts.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Record the facts of the fabric
  gpufabric.rdma.facts_folder:
    path: /srv/rdma-facts
    facts:
      gpu-1: "{{ hostvars['gpu-1'].ansible_facts.rdma }}"
    group: [gpu-1]
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
files:
  description: The files that changed.
  returned: success
  type: list
  elements: str
  sample: [gpu-1.json]
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import FabricError
from ..module_utils._controller import recorded_facts

ARGUMENT_SPEC: dict[str, Any] = {
    "path": {"type": "path", "required": True},
    "facts": {"type": "dict", "required": True},
    "settings": {"type": "dict", "default": {}},
    "group": {"type": "list", "elements": "str", "required": True},
    "groups": {"type": "dict", "default": {}},
}


def contents(params: Mapping[str, Any]) -> dict[str, str]:
    """Return host -> the content of its file, for the hosts that gave facts."""
    groups: dict[str, list[str]] = {}
    for group, members in params["groups"].items():
        for name in members:
            groups.setdefault(name, []).append(group)
    return {
        name: recorded_facts.text(at, groups.get(name, []), params["settings"].get(name) or {}, facts=facts)
        for at, name in enumerate(params["group"])
        if (facts := params["facts"].get(name))
    }


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    params = module.params
    # The facts of a whole fleet must not come back with the result.
    invocation = {"module_args": {"path": params["path"], "group": params["group"]}}
    try:
        files = recorded_facts.write(params["path"], contents(params), module.check_mode)
    except FabricError as error:
        module.fail_json(msg=f"facts_folder: {error}", invocation=invocation)
    diff = {"before": "", "after": "".join(f"{name}\n" for name in files)}
    module.exit_json(changed=bool(files), files=files, diff=diff, invocation=invocation)


if __name__ == "__main__":
    main()
