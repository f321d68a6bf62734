#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_wait
short_description: Wait until policy, pools and networks are really ready
version_added: "0.1.0"
description:
  - The state that the operator reports is not enough. It is shown before anything was rolled out, and it flaps. So a policy is ready when its
    status belongs to its newest generation, every DaemonSet and Deployment that it owns runs its newest pods on exactly the expected nodes, and
    these offer the expected resources. A network is ready when its NetworkAttachmentDefinition is what it should be, a pool when every
    node has its block. All of it must hold for O(stable) seconds.
  - Fails with all reasons at O(timeout), or earlier when waiting cannot help, such as an image that cannot be pulled.
  - Changes nothing. A poll costs the same few requests for any number of nodes.
extends_documentation_fragment:
  - gpufabric.rdma.cluster
options:
  objects:
    description: What was applied; objects of kind NicClusterPolicy, IPPool and MacvlanNetwork.
    type: list
    elements: dict
    required: true
  nodes:
    description: Names of the nodes that must have it.
    type: list
    elements: str
    required: true
  release:
    description: Release of the operator; says what its status can tell.
    type: str
    required: true
  namespace:
    description: Namespace of the operator.
    type: str
    default: nvidia-network-operator
  resources:
    description: Device plugin resources, without their prefix C(rdma/), and how many of each every node must offer.
    type: dict
    default: {}
  timeout:
    description: Seconds to wait at most.
    type: int
    default: 600
  stable:
    description: Seconds for which everything must be ready on end. A falsely reported ready of 7 seconds was recorded.
    type: int
    default: 8
attributes:
  check_mode:
    details: Says what it would wait for, and waits for nothing.
  diff_mode:
    description: Nothing changes, so there is no difference.
    support: none
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Wait for the policy
  gpufabric.rdma.fabric_wait:
    objects: "{{ rdma_plan.objects.policy }}"
    nodes: [gpu-1, gpu-2]
    release: "26.7.1"
    resources: {rdma_rail0: 63}
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
ready:
  description: Whether everything was ready; false in check mode, which does not look.
  returned: success
  type: bool
waited:
  description: Seconds that it took.
  returned: always
  type: float
reasons:
  description: Why something is not ready; in check mode what would be waited for.
  returned: always
  type: list
  elements: str
requests:
  description: Number of requests sent to the API server.
  returned: always
  type: int
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import FabricError
from ..module_utils._k8s.client.connection import AUTH_SPEC, connect
from ..module_utils._k8s.client.kinds import label
from ..module_utils._k8s.client.poll import Clock
from ..module_utils._k8s.ready import wait

SPEC: dict[str, Any] = {
    "objects": {"type": "list", "elements": "dict", "required": True},
    "nodes": {"type": "list", "elements": "str", "required": True},
    "release": {"type": "str", "required": True},
    "namespace": {"type": "str", "default": "nvidia-network-operator"},
    "resources": {"type": "dict", "default": {}},
    "timeout": {"type": "int", "default": 600},
    "stable": {"type": "int", "default": 8},
}


def wanted_of(params: dict[str, Any]) -> wait.Wanted:
    """Return what to wait for; InputError for a kind that we cannot judge."""
    resources = {name: int(count) for name, count in params["resources"].items()}
    found = wait.Wanted(params["objects"], params["nodes"], params["release"], params["namespace"], resources)
    wait.check(found)
    return found


def main() -> None:
    """Wait, and say how it ended."""
    module = AnsibleModule(argument_spec={**AUTH_SPEC, **SPEC}, supports_check_mode=True)
    params = module.params
    try:
        wanted = wanted_of(params)
        if module.check_mode:
            reasons = [f"would wait for {label(item)}" for item in params["objects"]]
            module.exit_json(changed=False, ready=False, waited=0.0, reasons=reasons, requests=0)
        api = connect(module)
        found = wait.wait(api, wanted, params["timeout"], params["stable"], Clock())
    except FabricError as error:
        module.fail_json(msg=f"fabric_wait: {error}")
    result = {"waited": round(found.seconds, 1), "reasons": list(found.reasons), "requests": api.requests}
    if not found.ready:
        how = "gave up, since waiting does not help" if found.gave_up else "not ready in time"
        module.fail_json(msg=f"fabric_wait: {how}, after {found.seconds:.0f} s: {'; '.join(found.reasons)}", **result)
    module.exit_json(changed=False, ready=True, **result)


if __name__ == "__main__":
    main()
