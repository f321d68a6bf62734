#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_changes
short_description: Compare the objects of a plan with the cluster
version_added: "0.1.0"
description:
  - Lists the objects that C(deploy) would remove, add and change in the cluster, in this order, and what would stop it, such as pods that
    use a network to be removed. Uses the code of M(gpufabric.rdma.fabric_objects) with server-side dry runs. Changes nothing.
  - The chart and the labels of nodes are not compared.
extends_documentation_fragment:
  - gpufabric.rdma.cluster
options:
  policy:
    description: Objects of the step that applies the policy, C(plan.objects.policy) of M(gpufabric.rdma.fabric_plan).
    type: list
    elements: dict
    required: true
  networks:
    description: Networks and pools, C(plan.objects.networks).
    type: list
    elements: dict
    required: true
  namespace:
    description: Namespace of the operator.
    type: str
    default: nvidia-network-operator
  network_namespace:
    description: Namespace of the network attachment definitions.
    type: str
    default: default
  platform:
    description: Kind of cluster, C(rdma_plan.operator.platform). It determines the namespace of the SR-IOV operator.
    type: str
    default: ""
  existing:
    description: What a run does with an operator that this collection does not manage, C(rdma_fabric.operator.existing).
    type: str
    choices: [refuse, use, adopt]
    default: refuse
  prune:
    description: Steps that remove what earlier runs applied and the plan does not contain.
    type: list
    elements: str
    choices: [policy, networks]
    default: [policy, networks]
  require:
    description: Fail if the cluster cannot be reached. Otherwise RV(table) has the reason.
    type: bool
    default: true
attributes:
  diff_mode:
    description: The module changes nothing.
    support: none
seealso:
  - module: gpufabric.rdma.fabric_objects
  - module: gpufabric.rdma.fabric_plan
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Compare the plan with the cluster
  gpufabric.rdma.fabric_changes:
    kubeconfig: ~/.kube/config
    policy: "{{ rdma_plan.objects.policy }}"
    networks: "{{ rdma_plan.objects.networks }}"
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
changes:
  description: The objects that differ, in the order of the run.
  returned: success
  type: list
  elements: dict
  contains:
    step:
      description: V(policy) or V(networks).
      type: str
      returned: always
    kind:
      description: Kind of the object.
      type: str
      returned: always
    name:
      description: Name of the object.
      type: str
      returned: always
    namespace:
      description: Namespace of the object; null if it is cluster-scoped.
      type: str
      returned: always
    action:
      description: V(create), V(update), V(delete), or V(release) (the applied fields are released).
      type: str
      returned: always
    fields:
      description: Paths of the fields that an update changes.
      type: list
      elements: str
      returned: always
blocked:
  description: The reasons why a run would be rejected now.
  returned: success
  type: list
  elements: str
table:
  description: The same for people.
  returned: success
  type: list
  elements: str
requests:
  description: Number of requests sent to the API server.
  returned: success
  type: int
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import FabricError
from ..module_utils._fabric.intent.intent import EXISTING
from ..module_utils._k8s.client.connection import AUTH_SPEC, connect
from ..module_utils._k8s.objects.preview import STEPS, preview, steps, table

SPEC: dict[str, Any] = {
    "policy": {"type": "list", "elements": "dict", "required": True},
    "networks": {"type": "list", "elements": "dict", "required": True},
    "namespace": {"type": "str", "default": "nvidia-network-operator"},
    "network_namespace": {"type": "str", "default": "default"},
    "platform": {"type": "str", "default": ""},
    "existing": {"type": "str", "choices": list(EXISTING), "default": "refuse"},
    "prune": {"type": "list", "elements": "str", "choices": list(STEPS), "default": list(STEPS)},
    "require": {"type": "bool", "default": True},
}


def main() -> None:
    """Compare and return."""
    module = AnsibleModule(argument_spec={**AUTH_SPEC, **SPEC}, supports_check_mode=True)
    try:
        api = connect(module)
        wanted = {name: module.params[name] for name in STEPS}
        found = preview(api, steps(api, wanted, module.params))
    except FabricError as error:
        if module.params["require"]:
            module.fail_json(msg=f"fabric_changes: {error}")
        module.exit_json(changed=False, changes=[], blocked=[], table=[f"objects of the cluster: not known: {error}"])
    shown = table(found)
    module.exit_json(changed=False, changes=found.changes, blocked=found.blocked, table=shown, requests=api.requests)


if __name__ == "__main__":
    main()
