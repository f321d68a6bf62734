#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_drain
short_description: Drain the Node of a host before it reboots, and uncordon it afterwards
version_added: "0.1.0"
description:
  - Cordons the Node and evicts its pods by the eviction API, so PodDisruptionBudgets hold. A budget that says no is asked again until
    O(timeout); then the module fails and names every pod that is left and the budget that holds it.
  - Pods of DaemonSets, of the kubelet itself and those that have ended stay. A pod without a controller or with data on the node is refused
    before anything changes, unless told otherwise.
  - That it was us who cordoned the Node stands in its annotation C(gpufabric.rdma/cordoned), what for in C(gpufabric.rdma/reboot). So a run
    that was cut off can be finished by the next one, and a Node that somebody else cordoned stays cordoned.
  - A host is drained, or known not to be a node, or the module fails. It is not a node when the list of Nodes is complete and none of them
    matches the host, and the host shows no sign of a kubelet. Without any configuration of a cluster, the host must show no sign of a kubelet.
  - The Node is found by machine id or O(node) and confirmed by a second property of O(identity). A Node that only one property matches is
    refused.
  - A node of the control plane is refused while another one is not Ready or has the annotation C(gpufabric.rdma/reboot).
extends_documentation_fragment:
  - gpufabric.rdma.cluster
options:
  inventory_host:
    description: Name of the host, for messages.
    type: str
    required: true
  identity:
    description: What the host reports about itself, RV(gpufabric.rdma.reboot_reasons#module:identity).
    type: dict
    required: true
    suboptions:
      machine_id:
        description: Content of C(/etc/machine-id).
        type: str
        default: ""
      hostname:
        description: The host's name.
        type: str
        default: ""
      addresses:
        description: The host's addresses.
        type: list
        elements: str
        default: []
      kubelet:
        description: Signs of a kubelet; an empty list means that there are none. Without it they are unknown, which counts as a kubelet.
        type: list
        elements: str
      control_plane:
        description: Whether the host runs a part of a control plane. The labels of its Node decide.
        type: bool
  node:
    description: Name of the Node, where the machine id does not identify it.
    type: str
    default: ""
  state:
    description:
      - V(drained) cordons and drains, with O(reason) as the annotation.
      - V(released) waits until the kubelet of the boot O(boot_id) says Ready, then takes the annotations off, and uncordons when we cordoned it.
      - V(kept) leaves the Node as it is and writes O(reason) to it, when it has our annotation.
    type: str
    choices: [drained, released, kept]
    default: drained
  reason:
    description: What the Node is closed for, or what went wrong.
    type: str
    default: ""
  boot_id:
    description: Boot id that the kubelet must report, see C(/proc/sys/kernel/random/boot_id); without it any is fine.
    type: str
    default: ""
  evict_unmanaged:
    description: Whether pods may be evicted that no controller makes again.
    type: bool
    default: false
  evict_local_storage:
    description: Whether pods may be evicted whose emptyDir volumes are lost with it.
    type: bool
    default: false
  grace_period:
    description: Seconds that evicted pods have to end; default is what each pod says.
    type: int
  timeout:
    description: Seconds to wait at most, for the drain or for Ready.
    type: int
    default: 600
attributes:
  check_mode:
    details: Waits for nothing. Budgets are not asked.
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Empty the node of this host
  gpufabric.rdma.node_drain:
    inventory_host: "{{ inventory_hostname }}"
    identity: "{{ found.identity }}"  # registered from gpufabric.rdma.reboot_reasons
    reason: "reboot: iommu=pt is not in /proc/cmdline"
  delegate_to: localhost

- name: Open it again
  gpufabric.rdma.node_drain:
    inventory_host: "{{ inventory_hostname }}"
    identity: "{{ found.identity }}"
    state: released
  delegate_to: localhost
"""

RETURN = r"""
diff:
  description: What is changed of the Node, and the pods that go, before and after.
  returned: always
  type: dict
node:
  description: Name of the Node, null when the host is none.
  returned: always
  type: str
why_none:
  description: Why there is no Node, empty when there is one.
  returned: always
  type: str
evicted:
  description: Pods that went; in check mode those that would be asked to go.
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


def noted(api: Api, node: cordon.Node, params: Mapping[str, Any], check: bool) -> Change:
    """Change the annotations; with ``released`` wait for Ready and undo our cordon."""

    def wanted(live: cordon.Node) -> dict[str, Any]:
        if params["state"] == "released":
            return cordon.opened(live)
        ours = cordon.REBOOT in cordon.view(live)["annotations"]
        return cordon.noted(live, params["reason"]) if ours else cordon.view(live)

    if check:
        return Change(cordon.view(node), wanted(node))
    if params["state"] == "released":
        cordon.wait_ready(api, node["metadata"]["name"], params["boot_id"], params["timeout"], Clock())
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
        change, evicted = drain.empty(api, node, drain.Rules(*limits), params["reason"], check, Clock())
    else:
        change = noted(api, node, params, check)
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
