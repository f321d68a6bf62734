#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_wait
short_description: Wait until the policy, pools and networks are ready
version_added: "0.1.0"
description:
  - Checks more than the state that the operator reports, because the operator reports ready before the rollout and the state flaps.
  - A policy is ready if its status belongs to the latest generation, every DaemonSet and Deployment that it owns runs the latest pods on
    exactly the expected nodes, and these nodes offer the expected resources.
  - A network is ready if its NetworkAttachmentDefinition matches the network. A pool is ready if every node has an address block.
  - All conditions must hold for O(stable) seconds.
  - Fails with all reasons after O(timeout), or earlier if waiting cannot help, for example if an image cannot be pulled.
  - Changes nothing. The number of requests per poll does not depend on the number of nodes.
extends_documentation_fragment:
  - gpufabric.rdma.cluster
options:
  objects:
    description: The applied objects, of the kinds in C(rdma_plan.objects).
    type: list
    elements: dict
    required: true
  nodes:
    description: Names of the nodes on which the objects must be ready.
    type: list
    elements: str
    required: true
  release:
    description: Release of the operator. It determines which status fields exist.
    type: str
    required: true
  namespace:
    description: Namespace of the operator.
    type: str
    default: nvidia-network-operator
  resources:
    description:
      - Number of each device plugin resource that every node must offer, by resource name. The prefix C(rdma/) can be omitted.
    type: dict
    default: {}
  classes:
    description:
      - Classes of hosts, C(rdma_plan.classes), if the objects differ between them. An object must be ready on the nodes of the classes
        that it selects only. The nodes of the C(hosts) of a class must have the labels in C(selector) and offer the C(resources).
    type: list
    elements: dict
    default: []
  hosts:
    description:
      - Hosts of the plan, C(rdma_plan.hosts). The node of a host need not offer the resources of rails that are in C(missing) of the host.
    type: dict
    default: {}
  nodes_by_host:
    description: Node of each host in O(classes) and O(hosts), as M(gpufabric.rdma.cluster_info) returns it.
    type: dict
    default: {}
  timeout:
    description: Maximum time to wait in seconds.
    type: int
    default: 600
  stable:
    description: Seconds for which all conditions must hold without interruption. False ready states of up to 7 seconds have been observed.
    type: int
    default: 8
  progress_file:
    description:
      - File to which the module writes in one line what it waits for, with each poll.
      - On the controller, you need not set it. The action plugin of this module does, and shows the line every 30 seconds.
    type: path
attributes:
  check_mode:
    details: Returns the conditions in RV(reasons) without waiting.
  diff_mode:
    description: The module changes nothing.
    support: none
seealso:
  - module: gpufabric.rdma.fabric_objects
  - module: gpufabric.rdma.cluster_info
  - name: Role nic_cluster_policy
    description: The role that uses this module.
    link: https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/roles/nic_cluster_policy.md
  - name: Role secondary_networks
    description: The role that uses this module.
    link: https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/roles/secondary_networks.md
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
  description: Whether all conditions are met. Always false in check mode.
  returned: success
  type: bool
waited:
  description: Time waited in seconds.
  returned: always
  type: float
reasons:
  description: Conditions that are not met. In check mode, the conditions to wait for.
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
from ..module_utils._k8s.client.api import Api
from ..module_utils._k8s.client.connection import AUTH_SPEC, connect
from ..module_utils._k8s.client.kinds import label
from ..module_utils._k8s.client.mirror import Mirror, Reader
from ..module_utils._k8s.client.nodes import nodes_of
from ..module_utils._k8s.client.poll import Clock
from ..module_utils._k8s.ready import progress, wait

# Up to so many nodes, a poll is a few small requests; more are watched.
SMALL = 50
SPEC: dict[str, Any] = {
    "objects": {"type": "list", "elements": "dict", "required": True},
    "nodes": {"type": "list", "elements": "str", "required": True},
    "release": {"type": "str", "required": True},
    "namespace": {"type": "str", "default": "nvidia-network-operator"},
    "resources": {"type": "dict", "default": {}},
    "classes": {"type": "list", "elements": "dict", "default": []},
    "hosts": {"type": "dict", "default": {}},
    "nodes_by_host": {"type": "dict", "default": {}},
    "timeout": {"type": "int", "default": 600},
    "stable": {"type": "int", "default": 8},
    "progress_file": {"type": "path"},
}


def counts(resources: dict[str, Any]) -> dict[str, int]:
    """Return the numbers of resources, which templates make text of."""
    return {name: int(count) for name, count in resources.items()}


def lacking(hosts: dict[str, Any], nodes: dict[str, str]) -> dict[str, list[str]]:
    """Return resource -> the nodes of the hosts that have no port for it."""
    found: dict[str, list[str]] = {}
    for name, host in hosts.items():
        for one in host.get("missing", {}).values():
            found.setdefault(one["resource"], []).extend([nodes[name]] if name in nodes else [])
    return found


def wanted_of(params: dict[str, Any]) -> wait.Wanted:
    """Return what to wait for; InputError for a kind that we cannot judge."""
    classes = [
        wait.NodeClass(nodes_of(own["hosts"], params["nodes_by_host"]), own["selector"], counts(own["resources"]))
        for own in params["classes"]
    ]
    found = wait.Wanted(
        params["objects"],
        params["nodes"],
        params["release"],
        params["namespace"],
        resources=counts(params["resources"]),
        classes=classes,
        without=lacking(params["hosts"], params["nodes_by_host"]),
    )
    wait.check(found)
    return found


def wait_for(api: Api, wanted: wait.Wanted, params: dict[str, Any]) -> wait.Waited:
    """Wait, and note in the file of progress what for."""
    timeout = params["timeout"]
    reader: Reader = Mirror(api, timeout + 60) if len(wanted.nodes) > SMALL else api

    tell = progress.teller("fabric_wait", params["progress_file"], timeout)
    return wait.wait(reader, wanted, timeout, stable=params["stable"], clock=Clock(), tell=tell)


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
        found = wait_for(api, wanted, params)
    except FabricError as error:
        module.fail_json(msg=f"fabric_wait: {error}")
    result = {"waited": round(found.seconds, 1), "reasons": list(found.reasons), "requests": api.requests}
    if not found.ready:
        how = "stopped, because waiting cannot resolve this" if found.gave_up else "not ready in time"
        module.fail_json(msg=f"fabric_wait: {how}, after {found.seconds:.0f} s: {'; '.join(found.reasons)}", **result)
    module.exit_json(changed=False, ready=True, **result)


if __name__ == "__main__":
    main()
