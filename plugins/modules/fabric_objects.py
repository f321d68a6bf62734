#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_objects
short_description: Apply or remove a list of Kubernetes objects
version_added: "0.1.0"
description:
  - Applies objects in order by server-side apply with the field manager C(gpufabric), two requests per object, and shows the
    difference of the fields that we own. Removes them in reverse order and waits until they are gone.
  - An object that was there before us is shared, not taken. It does not get the label C(app.kubernetes.io/managed-by), and
    O(state=absent) gives up the fields that we applied instead of deleting it. Nodes are always like that, and only labels of
    a node can be applied; a node is never created nor deleted.
  - A change of a pool of nv-ipam (C(IPPool), C(CIDRPool)) that assigns other addresses to a node is refused while pods hold
    addresses that would be assigned again. So is a new pool whose addresses pods hold already. Nothing is applied then.
    Blocks of addresses that stay as they are, as when a pool only grows, are no reason.
  - Pools cost one request more, and the pods of the cluster are listed when there is such a change or a new pool.
  - With O(state=absent), a C(NicClusterPolicy) that this collection created is not removed while there are pools that it did not
    create, because the operator removes all pools with it.
extends_documentation_fragment:
  - gpufabric.rdma.cluster
options:
  objects:
    description: The objects, each with C(apiVersion), C(kind) and C(metadata).
    type: list
    elements: dict
    default: []
  nodes:
    description: Names of nodes that get O(node_labels); before the objects, and with O(state=absent) after them.
    type: list
    elements: str
    default: []
  node_labels:
    description: Labels of O(nodes) that are ours. With O(state=absent), all labels that we applied to them are given up.
    type: dict
    default: {}
  state:
    description: Whether the objects shall be there.
    type: str
    choices: [present, absent]
    default: present
  force:
    description: Take fields that another field manager owns. Without it such a conflict is an error that names the owner.
    type: bool
    default: false
  timeout:
    description: Seconds to wait until removed objects are gone.
    type: int
    default: 120
  adopt:
    description:
      - Manage O(objects) that were not created by this collection from now on. They get the label C(app.kubernetes.io/managed-by),
        fields that another field manager owns are taken over, and O(state=absent) deletes them.
    type: bool
    default: false
  disrupt_users:
    description: >-
      Whether a pool may be changed while pods hold addresses of it, which can be assigned twice then. The playbooks pass
      C(rdma_disrupt_users).
    type: bool
    default: false
  remains:
    description: With O(state=absent), what a removed operator leaves behind.
    type: dict
    suboptions:
      definitions:
        description: >-
          API groups whose definitions are removed when no object of their kind is left and they are not part of another Helm release.
        type: list
        elements: str
        default: []
      keep:
        description: Names of definitions that stay.
        type: list
        elements: str
        default: []
      release:
        description: Helm release that was removed.
        type: str
        default: ""
      node_labels:
        description: Labels that are removed from all nodes, unless C(kubectl) set them.
        type: list
        elements: str
        default: []
      nfd:
        description: Whether the labels that Node Feature Discovery lists in its annotation of each node are removed, with the annotation.
        type: bool
        default: false
attributes:
  check_mode:
    details: By a dry run on the server. A kind that is not served yet is reported as to be created.
  diff_mode:
    description: Returns what changes.
    details: The fields that we own; values of a Secret are hidden.
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
  description: What was done with each object, in order.
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
      description: Its namespace, null when it has none.
      type: str
      returned: always
    action:
      description: >-
        V(create), V(update), V(delete), V(release) (our fields were given up) or V(none); in check mode what would be done.
      type: str
      returned: always
requests:
  description: Number of requests sent to the API server.
  returned: success
  type: int
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.change import Change
from ..module_utils._common.errors import ConflictError, FabricError
from ..module_utils._fabric.operator.nodes import node_objects
from ..module_utils._fabric.operator.order import apply_order, delete_order
from ..module_utils._k8s.client.api import Api
from ..module_utils._k8s.client.connection import AUTH_SPEC, connect
from ..module_utils._k8s.client.kinds import label, path_of
from ..module_utils._k8s.client.poll import Clock
from ..module_utils._k8s.objects import leftovers, pools
from ..module_utils._k8s.objects.apply import Options, Outcome, apply_object, remove_object, wait_gone

SPEC: dict[str, Any] = {
    "objects": {"type": "list", "elements": "dict", "default": []},
    "nodes": {"type": "list", "elements": "str", "default": []},
    "node_labels": {"type": "dict", "default": {}},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "force": {"type": "bool", "default": False},
    "timeout": {"type": "int", "default": 120},
    "adopt": {"type": "bool", "default": False},
    "disrupt_users": {"type": "bool", "default": False},
    "remains": {
        "type": "dict",
        "options": {
            "definitions": {"type": "list", "elements": "str", "default": []},
            "keep": {"type": "list", "elements": "str", "default": []},
            "release": {"type": "str", "default": ""},
            "node_labels": {"type": "list", "elements": "str", "default": []},
            "nfd": {"type": "bool", "default": False},
        },
    },
}


def _text(value: Any) -> str:
    """Labels are text; YAML makes true of a label without quotes."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def wanted_objects(params: dict[str, Any]) -> list[Any]:
    """Return the objects given, and the nodes as objects that carry only our labels."""
    labels = {name: _text(value) for name, value in params["node_labels"].items()}
    nodes = node_objects(params["nodes"], labels) if labels or params["state"] == "absent" else []
    return [*nodes, *params["objects"]]


def remove_all(api: Api, items: list[Any], params: dict[str, Any], options: Options, clock: Clock) -> list[Outcome]:
    """Remove what an operator left, then the objects in reverse order; wait until all are gone."""
    done: list[Outcome] = []
    given = params["remains"]
    if given:
        groups, labels = given["definitions"], given["node_labels"]
        wanted = leftovers.Wanted(groups, given["keep"], given["release"], labels, given["nfd"])
        done += leftovers.remove(api, wanted, options, clock)
    removed = [remove_object(api, item, options) for item in delete_order(items)]
    if not options.check:
        wait_gone(api, [outcome.item for outcome in removed if outcome.action == "delete"], options, clock)
    return done + removed


def run(api: Api, params: dict[str, Any], options: Options, clock: Clock) -> dict[str, Any]:
    """Bring the objects to the wanted state and return the module's result."""
    items = wanted_objects(params)
    for item in items:
        path_of(api, item)
    if params["state"] == "present":
        refused = [] if params["disrupt_users"] else pools.problems(api, items)
        if refused:
            raise ConflictError("; ".join(refused))
        outcomes = [apply_object(api, item, options, clock) for item in apply_order(items)]
    else:
        refused = pools.lost(api, items)
        if refused:
            raise ConflictError("; ".join(refused))
        outcomes = remove_all(api, items, params, options, clock)
    differ = [outcome for outcome in outcomes if outcome.action != "none"]
    change = Change(
        {label(outcome.item): outcome.before for outcome in differ},
        {label(outcome.item): outcome.after for outcome in differ},
    )
    return {
        "changed": change.changed,
        "diff": change.diff(),
        "objects": [outcome.to_dict() for outcome in outcomes],
        "requests": api.requests,
    }


def main() -> None:
    """Apply or remove, and say what differed."""
    module = AnsibleModule(argument_spec={**AUTH_SPEC, **SPEC}, supports_check_mode=True)
    params = module.params
    try:
        api = connect(module)
        options = Options(module.check_mode, params["force"], params["timeout"], params["adopt"])
        result = run(api, params, options, Clock())
    except FabricError as error:
        module.fail_json(msg=f"fabric_objects: {error}")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
