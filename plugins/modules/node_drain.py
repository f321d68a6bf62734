#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_drain
short_description: Drain the node of a host before a reboot and uncordon it afterwards
version_added: "0.1.0"
description:
  - Cordons the node and evicts its pods through the eviction API, so that PodDisruptionBudgets are respected. Evictions that a budget
    blocks are retried until O(timeout). Then the module fails and lists every remaining pod with the budget that blocks it.
  - DaemonSet pods, static pods and completed pods are not evicted. Pods without a controller or with local data are rejected before
    anything changes, unless O(evict_unmanaged) or O(evict_local_storage) allow their eviction.
  - The annotation C(gpufabric.rdma/cordoned) records that this collection cordoned the node, and C(gpufabric.rdma/reboot) records the
    reason. The next run can therefore finish an interrupted one, and a node that another tool cordoned stays cordoned.
  - The module fails unless it can drain the host or prove that the host is not a node. A host is not a node if the list of nodes is
    complete and no node matches the host, or no cluster is configured, and the host shows no sign of a kubelet.
  - The node is found by machine ID or O(node) and confirmed by a second property of O(identity). A node that matches only one property
    is rejected.
  - A control plane node is rejected while another one is not Ready or has the annotation C(gpufabric.rdma/reboot).
extends_documentation_fragment:
  - gpufabric.rdma.cluster
options:
  inventory_host:
    description: Name of the host, used in messages.
    type: str
    required: true
  identity:
    description: Identity of the host, as returned in RV(gpufabric.rdma.reboot_reasons#module:identity).
    type: dict
    required: true
    suboptions:
      machine_id:
        description: Content of C(/etc/machine-id).
        type: str
        default: ""
      hostname:
        description: Hostname of the host.
        type: str
        default: ""
      addresses:
        description: IP addresses of the host.
        type: list
        elements: str
        default: []
      kubelet:
        description: Signs of a kubelet. An empty list means that there are none. If omitted, the host is assumed to run a kubelet.
        type: list
        elements: str
      control_plane:
        description: Whether the host runs control plane components. The labels of the node take precedence.
        type: bool
  node:
    description: Name of the node, if the machine ID does not identify it.
    type: str
    default: ""
  state:
    description:
      - V(drained) cordons and drains the node, and records O(reason) in the annotation.
      - V(released) waits until the kubelet of the boot O(boot_id) reports Ready, removes the annotations, and uncordons the node if this
        collection cordoned it.
      - V(kept) keeps the node cordoned and records O(reason), if the node has an annotation of this collection.
    type: str
    choices: [drained, released, kept]
    default: drained
  reason:
    description: Reason for the drain, or for keeping the node cordoned.
    type: str
    default: ""
  boot_id:
    description: Boot ID that the kubelet must report, see C(/proc/sys/kernel/random/boot_id). If empty, any boot ID is accepted.
    type: str
    default: ""
  evict_unmanaged:
    description: Allow the eviction of pods that no controller recreates.
    type: bool
    default: false
  evict_local_storage:
    description: Allow the eviction of pods with emptyDir volumes, whose data is lost.
    type: bool
    default: false
  grace_period:
    description: Termination grace period of evicted pods in seconds. Defaults to the value of each pod.
    type: int
  timeout:
    description: Maximum time in seconds to wait for the drain or for Ready.
    type: int
    default: 600
attributes:
  check_mode:
    details: Does not wait and does not evaluate PodDisruptionBudgets.
seealso:
  - module: gpufabric.rdma.reboot_reasons
  - name: Role host_reboot
    description: The role that uses this module.
    link: https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/roles/host_reboot.md
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Cordon and drain the node of this host
  gpufabric.rdma.node_drain:
    inventory_host: "{{ inventory_hostname }}"
    identity: "{{ found.identity }}"  # registered from gpufabric.rdma.reboot_reasons
    reason: "reboot: iommu=pt is not in /proc/cmdline"
  delegate_to: localhost

- name: Uncordon the node after the reboot
  gpufabric.rdma.node_drain:
    inventory_host: "{{ inventory_hostname }}"
    identity: "{{ found.identity }}"
    state: released
  delegate_to: localhost
"""

RETURN = r"""
diff:
  description: Changes to the node and the evicted pods, before and after.
  returned: always
  type: dict
node:
  description: Name of the node; null if the host is not a node.
  returned: always
  type: str
why_none:
  description: Reason why the host is not a node; empty if it is one.
  returned: always
  type: str
evicted:
  description: The evicted pods. In check mode, the pods that would be evicted.
  returned: always
  type: list
  elements: str
requests:
  description: Number of requests sent to the API server.
  returned: always
  type: int
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.change import Change
from ..module_utils._common.errors import FabricError
from ..module_utils._k8s.client.api import Api
from ..module_utils._k8s.client.connection import AUTH_SPEC, connect
from ..module_utils._k8s.client.nodes import Host, refuse_unconfigured
from ..module_utils._k8s.client.poll import Clock
from ..module_utils._k8s.drain import cordon, drain

SPEC: dict[str, Any] = {
    "inventory_host": {"type": "str", "required": True},
    "identity": {
        "type": "dict",
        "required": True,
        "options": {
            "machine_id": {"type": "str", "default": ""},
            "hostname": {"type": "str", "default": ""},
            "addresses": {"type": "list", "elements": "str", "default": []},
            "kubelet": {"type": "list", "elements": "str"},
            "control_plane": {"type": "bool"},
        },
    },
    "node": {"type": "str", "default": ""},
    "state": {"type": "str", "choices": ["drained", "released", "kept"], "default": "drained"},
    "reason": {"type": "str", "default": ""},
    "boot_id": {"type": "str", "default": ""},
    "evict_unmanaged": {"type": "bool", "default": False},
    "evict_local_storage": {"type": "bool", "default": False},
    "grace_period": {"type": "int"},
    "timeout": {"type": "int", "default": 600},
}


# Each of them says how to reach a cluster; the last one is there in a pod.
ENVIRONMENT = ("K8S_AUTH_KUBECONFIG", "KUBECONFIG", "KUBERNETES_SERVICE_HOST")


def configured(params: Mapping[str, Any]) -> bool:
    """Whether anything says how to reach a cluster: an option, the environment, or the usual file."""
    named = params["kubeconfig"] or params["host"] or any(os.environ.get(name) for name in ENVIRONMENT)
    return bool(named) or (Path.home() / ".kube" / "config").exists()


def noted(api: Api, node: cordon.Node, params: Mapping[str, Any], *, check: bool) -> Change:
    """Change the annotations; with ``released`` wait for Ready and undo our cordon."""

    def wanted(live: cordon.Node) -> dict[str, Any]:
        if params["state"] == "released":
            return cordon.opened(live)
        ours = cordon.REBOOT in cordon.view(live)["annotations"]
        return cordon.noted(live, params["reason"]) if ours else cordon.view(live)

    if check:
        return Change(cordon.view(node), wanted(node))
    if params["state"] == "released":
        cordon.wait_ready(api, node["metadata"]["name"], params["boot_id"], timeout=params["timeout"], clock=Clock())
    return Change(*cordon.change(api, node["metadata"]["name"], wanted))


def carry_out(api: Api, params: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Do what ``state`` says; return the module's result."""
    node = cordon.find_node(api, Host.of(params))
    if node is None:
        return nothing("no Node matches the host, and the host has no kubelet", api.requests)
    name: str = node["metadata"]["name"]
    evicted: list[str] = []
    if params["state"] == "drained":
        limits = (params["evict_unmanaged"], params["evict_local_storage"], params["timeout"], params["grace_period"])
        change, evicted = drain.empty(
            api, node, drain.Rules(*limits), reason=params["reason"], check=check, clock=Clock()
        )
    else:
        change = noted(api, node, params, check=check)
    result = {"node": name, "why_none": "", "evicted": evicted, "requests": api.requests}
    return {"changed": change.changed, "diff": change.diff(), **result}


def nothing(why: str, requests: int) -> dict[str, Any]:
    """Return the result for a host that is no node."""
    same = Change({}, {})
    result = {"changed": same.changed, "diff": same.diff(), "requests": requests}
    return {**result, "node": None, "why_none": why, "evicted": []}


def main() -> None:
    """Carry out and say what happened."""
    module = AnsibleModule(argument_spec={**AUTH_SPEC, **SPEC}, supports_check_mode=True)
    try:
        if configured(module.params):
            result = carry_out(connect(module), module.params, module.check_mode)
        else:
            refuse_unconfigured(Host.of(module.params))
            result = nothing("no cluster is configured on the controller, and the host has no kubelet", 0)
    except FabricError as error:
        module.fail_json(msg=f"node_drain: {error}")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
