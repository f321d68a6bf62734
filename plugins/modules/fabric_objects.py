#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_objects
short_description: Apply or remove Kubernetes objects
version_added: "0.1.0"
description:
  - Applies objects in order with server-side apply and the field manager C(gpufabric), with two requests per object. The diff shows the
    fields that this collection owns. With O(state=absent), removes the objects in reverse order and waits until they are gone.
  - Objects that existed before are shared. They do not get the label C(app.kubernetes.io/managed-by), and O(state=absent) releases the
    applied fields instead of deleting the object. Nodes are always shared. Only labels can be applied to a node, and a node is never
    created or deleted.
  - A change to an nv-ipam pool (C(IPPool), C(CIDRPool)) is rejected if it would reassign addresses that pods hold, and so is a new pool
    that contains such addresses. Nothing is applied in this case. Address blocks that stay unchanged, for example in a pool that only
    grows, are not affected.
  - Pools require one additional request. For such a change or a new pool, the pods of the cluster are listed.
  - With O(state=absent), a managed C(NicClusterPolicy) is not removed while unmanaged pools exist, because the operator removes all
    pools together with the policy.
extends_documentation_fragment:
  - gpufabric.rdma.cluster
options:
  objects:
    description: Objects to apply or remove, each with C(apiVersion), C(kind) and C(metadata).
    type: list
    elements: dict
    default: []
  nodes:
    description: Names of the nodes that get O(node_labels). They are labeled before the objects are applied, or after the objects are removed.
    type: list
    elements: str
    default: []
  node_labels:
    description: Labels to apply to O(nodes). With O(state=absent), all labels that this collection applied are removed.
    type: dict
    default: {}
  classes:
    description: Classes of hosts, C(rdma_plan.classes). The C(labels) of a class are applied to the nodes of its C(hosts).
    type: list
    elements: dict
    default: []
  nodes_by_host:
    description: Node of each host in O(classes), as M(gpufabric.rdma.cluster_info) returns it.
    type: dict
    default: {}
  state:
    description: Whether the objects must exist.
    type: str
    choices: [present, absent]
    default: present
  force:
    description: Take over fields that another field manager owns. By default such a conflict is an error that names the owner.
    type: bool
    default: false
  timeout:
    description: Maximum time in seconds to wait until removed objects are gone.
    type: int
    default: 120
  adopt:
    description:
      - Take over the management of unmanaged O(objects). They get the label C(app.kubernetes.io/managed-by), fields of other field
        managers are taken over, and O(state=absent) deletes the objects.
    type: bool
    default: false
  disrupt_users:
    description: >-
      Allow changes to a pool while pods hold addresses from it. Such addresses may be assigned twice. The playbooks pass
      C(rdma_disrupt_users).
    type: bool
    default: false
  prune:
    description:
      - Remove what earlier runs applied and O(objects) does not contain, which is every object of a network model with the label
        C(app.kubernetes.io/managed-by=gpufabric). Rejected if pods use it. With O(state=absent), it is removed with O(objects).
      - Network attachment definitions of earlier runs are also found in other namespaces than O(prune.network_namespace), if the account
        may list them in all namespaces. There they must have the label, and the field manager of this collection.
      - Without O(objects), nothing is pruned unless O(state=absent). What the account may not list or delete is named in a warning.
    type: dict
    suboptions:
      step:
        description: Objects that are applied with the policy, or networks and pools.
        type: str
        choices: [policy, networks]
        required: true
      namespace:
        description: Namespace of the operator.
        type: str
        required: true
      network_namespace:
        description: Namespace of the network attachment definitions.
        type: str
        default: default
      platform:
        description: Kind of cluster, C(rdma_plan.operator.platform). It determines the namespace of the SR-IOV operator.
        type: str
        default: ""
  remains:
    description: Leftovers of a removed operator to clean up with O(state=absent).
    type: dict
    suboptions:
      definitions:
        description: >-
          API groups whose custom resource definitions are removed if no objects remain and no other Helm release contains them.
        type: list
        elements: str
        default: []
      keep:
        description: Names of custom resource definitions to keep.
        type: list
        elements: str
        default: []
      release:
        description: Name of the removed Helm release.
        type: str
        default: ""
      node_labels:
        description: Labels to remove from all nodes, except those set by C(kubectl).
        type: list
        elements: str
        default: []
      nfd:
        description: Remove the annotation of Node Feature Discovery from each node, and the labels listed in it.
        type: bool
        default: false
      agents:
        description: >-
          Remove the labels and annotations that agents of the SR-IOV operator have left on nodes, except those set by C(kubectl), unless
          their DaemonSet is still in the cluster.
        type: bool
        default: false
  progress_file:
    description:
      - File to which the module writes in one line what it waits for, with each poll.
      - On the controller, you need not set it. The action plugin of this module does, and shows the line every 30 seconds.
    type: path
attributes:
  check_mode:
    details: Uses a server-side dry run. Objects of a kind that is not served yet are reported as created.
  diff_mode:
    description: Returns the fields that this collection owns, before and after.
    details: Values of Secrets are hidden.
seealso:
  - module: gpufabric.rdma.fabric_plan
  - module: gpufabric.rdma.fabric_wait
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
- name: Apply the policy of a plan
  gpufabric.rdma.fabric_objects:
    kubeconfig: ~/.kube/config
    objects: "{{ rdma_plan.objects.policy }}"
  delegate_to: localhost
  run_once: true

- name: Label a node
  gpufabric.rdma.fabric_objects:
    nodes: [gpu-1]
    node_labels:
      feature.node.kubernetes.io/pci-15b3.present: "true"
  delegate_to: localhost

- name: Remove the networks of a plan
  gpufabric.rdma.fabric_objects:
    state: absent
    objects: "{{ rdma_plan.objects.networks }}"
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
objects:
  description: Action taken per object, in order.
  returned: success
  type: list
  elements: dict
  contains:
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
      description: >-
        V(create), V(update), V(delete), V(release) (the applied fields were released) or V(none). In check mode, the predicted action.
      type: str
      returned: always
requests:
  description: Number of requests sent to the API server.
  returned: success
  type: int
notes:
  description: Other effects of a removal on nodes. Also returned as warnings.
  returned: success
  type: list
  elements: str
effects:
  description: Effects on pods that O(disrupt_users) permits. Also returned as warnings.
  returned: success
  type: list
  elements: str
unseen:
  description: What O(prune) could not list or delete without permission, for example V(list HostDeviceNetwork).
  returned: success
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import ConflictError, FabricError
from ..module_utils._fabric.operator.nodes import node_objects
from ..module_utils._k8s.client.api import Api
from ..module_utils._k8s.client.connection import AUTH_SPEC, connect
from ..module_utils._k8s.client.kinds import path_of
from ..module_utils._k8s.client.nodes import nodes_of
from ..module_utils._k8s.client.poll import Clock
from ..module_utils._k8s.objects import agents, converge, pools, prune, released
from ..module_utils._k8s.objects.apply import Options, told
from ..module_utils._k8s.ready import progress

SPEC: dict[str, Any] = {
    "objects": {"type": "list", "elements": "dict", "default": []},
    "nodes": {"type": "list", "elements": "str", "default": []},
    "node_labels": {"type": "dict", "default": {}},
    "classes": {"type": "list", "elements": "dict", "default": []},
    "nodes_by_host": {"type": "dict", "default": {}},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "force": {"type": "bool", "default": False},
    "timeout": {"type": "int", "default": 120},
    "adopt": {"type": "bool", "default": False},
    "progress_file": {"type": "path"},
    "disrupt_users": {"type": "bool", "default": False},
    "prune": {
        "type": "dict",
        "options": {
            "step": {"type": "str", "choices": ["policy", "networks"], "required": True},
            "namespace": {"type": "str", "required": True},
            "network_namespace": {"type": "str", "default": "default"},
            "platform": {"type": "str", "default": ""},
        },
    },
    "remains": {
        "type": "dict",
        "options": {
            "definitions": {"type": "list", "elements": "str", "default": []},
            "keep": {"type": "list", "elements": "str", "default": []},
            "release": {"type": "str", "default": ""},
            "node_labels": {"type": "list", "elements": "str", "default": []},
            "nfd": {"type": "bool", "default": False},
            "agents": {"type": "bool", "default": False},
        },
    },
}


def _text(value: Any) -> str:
    """Labels are text; YAML makes true of a label without quotes."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def wanted_objects(params: dict[str, Any]) -> list[Any]:
    """Return the objects given, and the nodes as objects that carry only our labels."""
    labels = {name: _text(value) for name, value in params["node_labels"].items()}
    of_node = dict.fromkeys(params["nodes"], labels)
    for own in params["classes"]:
        further = {name: _text(value) for name, value in own["labels"].items()}
        of_node.update({node: {**labels, **further} for node in nodes_of(own["hosts"], params["nodes_by_host"])})
    wanted = [node for node in of_node if of_node[node] or params["state"] == "absent"]
    return [*(item for node in wanted for item in node_objects([node], of_node[node])), *params["objects"]]


def run(api: Api, params: dict[str, Any], options: Options, *, clock: Clock) -> dict[str, Any]:
    """Bring the objects to the wanted state and return the module's result."""
    items = wanted_objects(params)
    for item in items:
        path_of(api, item)
    old = converge.outdated(api, params, items)
    effects: list[str] = []
    if params["state"] == "present":
        known = pools.existing(api, items)
        effects = [*prune.problems(api, old.items), *pools.problems(api, items, known)]
        if effects and not params["disrupt_users"]:
            raise ConflictError("; ".join(effects))
        outcomes = converge.remove_old(api, old.items, options, clock=clock)
        nodes = agents.nodes_of_items(params, items)
        outcomes += converge.apply_all(api, items, old.items, known=known, nodes=nodes, options=options, clock=clock)
    else:
        items += old.items
        refused = pools.lost(api, items)
        if refused:
            raise ConflictError("; ".join(refused))
        outcomes = converge.remove_all(api, items, params, options=options, clock=clock)
    return {
        **told(outcomes),
        "requests": api.requests,
        "unseen": list(old.unseen),
        "effects": effects,
        "notes": list(released.notes(api, [one.item for one in outcomes if one.action == "delete"])),
    }


def main() -> None:
    """Apply or remove, and say what differed."""
    module = AnsibleModule(argument_spec={**AUTH_SPEC, **SPEC}, supports_check_mode=True)
    params = module.params
    try:
        api = connect(module)
        tell = progress.teller("fabric_objects", params["progress_file"], params["timeout"])
        options = Options(module.check_mode, params["force"], params["timeout"], params["adopt"], tell=tell)
        result = run(api, params, options, clock=Clock())
    except FabricError as error:
        module.fail_json(msg=f"fabric_objects: {error}")
    if result["unseen"]:
        refused = ", ".join(result["unseen"])
        module.warn(f"no permission to {refused}: objects of earlier runs may be left")
    for text in result["effects"]:
        module.warn(f"consented by disrupt_users: {text}")
    for text in result["notes"]:
        module.warn(text)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
