#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_info
short_description: Read the cluster, and say all at once what would stop a run
version_added: "0.1.0"
description:
  - Reads version, nodes, operator, Node Feature Discovery, Multus and the objects of our kinds, and asks for every permission that a run needs.
  - Changes nothing.
extends_documentation_fragment:
  - gpufabric.rdma.cluster
options:
  hosts:
    description:
      - The hosts of the fabric by name, each with its C(machine_id) and, to override that, the name of its C(node).
      - The C(hosts) of a plan can be given as they are.
    type: dict
    default: {}
  release:
    description: Release of the operator that shall be installed.
    type: str
  namespace:
    description: Namespace of the operator.
    type: str
    default: nvidia-network-operator
  network_namespace:
    description: Namespace of the networks.
    type: str
    default: default
  test_namespace:
    description: Namespace of the testers.
    type: str
    default: gpufabric-validate
  test_pull_secret:
    description: Pull secret of the testers. It must exist in O(test_namespace) when the namespace exists.
    type: str
  pull_secrets:
    description:
      - Pull secrets that the values of the operator's chart name, each as text or as a dict with C(name). They must exist in O(namespace)
        when it exists.
    type: list
    elements: raw
    default: []
  nfd:
    description: Whether the operator's chart shall bring Node Feature Discovery.
    type: bool
    default: true
  node_labels:
    description: Labels that we set on the nodes.
    type: dict
    default: {}
  labels:
    description: Further labels of the nodes to return, beside those of the fabric.
    type: list
    elements: str
    default: []
  steps:
    description: Parts of the run. Permissions and problems of other parts are not checked.
    type: list
    elements: str
    choices: [operator, policy, networks, validate]
    default: [operator, policy, networks, validate]
  operator_name:
    description: Helm release of the operator. Without it, nothing is read or checked about Helm releases and the chart's installation.
    type: str
  operator_state:
    description:
      - V(present) checks that O(operator_name) can be installed or upgraded, V(installed) that its installation is complete.
      - V(absent) checks that it can be removed; other problems are not reported then.
    type: str
    choices: [present, installed, absent]
    default: present
  existing:
    description:
      - What to do with an operator and a policy that this collection does not manage. V(refuse) reports them as problems, V(use) leaves
        them as they are, V(adopt) manages them from now on. Without it, policies are not checked.
    type: str
    choices: [refuse, use, adopt]
  chart_ref:
    description: Chart to install. A path is checked, and with O(operator_name) Helm must be able to read it.
    type: str
  chart_repo:
    description: URL of the repository of the chart.
    type: str
    default: https://helm.ngc.nvidia.com/nvidia
  helm_binary:
    description: Path of the C(helm) binary; without it, C(helm) is looked for in E(PATH).
    type: path
  chart_checksum:
    description: The sha256 that the chart's archive must have.
    type: str
  objects:
    description: What the step V(networks) applies. A pool that pods use must not assign their addresses to others.
    type: list
    elements: dict
    default: []
  disrupt_users:
    description: Whether pools of O(objects) may be changed while pods hold their addresses. The playbooks pass C(rdma_disrupt_users).
    type: bool
    default: false
  workloads:
    description: Whether to look for pods of others that use rails, which lists all running pods of the cluster.
    type: bool
    default: false
  require:
    description: Fail with the list of all problems when there is one.
    type: bool
    default: false
attributes:
  diff_mode:
    description: Nothing changes, so there is no difference.
    support: none
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Check the cluster before the first change
  gpufabric.rdma.cluster_info:
    hosts: "{{ rdma_plan.hosts }}"
    release: "26.7.1"
    require: true
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
version:
  description: Version of the API server.
  returned: always
  type: str
  sample: v1.35.4
nodes:
  description: Every node with C(name), C(machine_id), C(labels) and C(allocatable) that matter to a fabric, and C(ready).
  returned: always
  type: list
  elements: dict
nodes_by_host:
  description: The node of every host that has exactly one.
  returned: always
  type: dict
  sample: {gpu-1: node-a}
nfd:
  description: Masters of Node Feature Discovery, with namespace, name and image.
  returned: always
  type: list
  elements: dict
multus:
  description: DaemonSets that run Multus, with namespace, name and image.
  returned: always
  type: list
  elements: dict
operator:
  description: Network operators, with namespace, name, version, image, Helm release, and whether they are available.
  returned: always
  type: list
  elements: dict
release:
  description: What is known of O(operator_name), and what to do with it.
  returned: with O(operator_name)
  type: dict
  contains:
    name:
      description: Helm release that a teardown removes; empty when none is managed by this collection.
      type: str
      returned: always
    state:
      description: State of O(operator_name) in Helm's words; empty when it does not exist.
      type: str
      returned: always
    managed:
      description: Whether this collection manages O(operator_name).
      type: bool
      returned: always
    action:
      description: V(install) (or upgrade, where something differs), V(repair) or V(none).
      type: str
      returned: always
    objects:
      description: Namespace and mark of the installation, to be applied, or with O(operator_state=absent) to be removed.
      type: list
      elements: dict
      returned: always
    remains:
      description: What the chart leaves behind and a teardown removes, as M(gpufabric.rdma.fabric_objects) takes it; null for nothing.
      type: dict
      returned: always
    notes:
      description: What a teardown leaves as it is, and why. The namespace is searched with O(operator_state=absent) only.
      type: list
      elements: str
      returned: always
chart:
  description: What O(chart_ref) is, V(path), V(url), or V(name) of a chart in O(chart_repo); null without it.
  returned: always
  type: str
objects:
  description: By kind the objects of our kinds, with name, namespace and whether we made them.
  returned: always
  type: dict
workloads:
  description: Pods of others that use rails, with namespace, name and node; empty unless asked for.
  returned: always
  type: list
  elements: dict
denied:
  description: Permissions that a run needs and that we do not have.
  returned: always
  type: list
  elements: str
  sample: ["patch nodes", "create namespaces"]
problems:
  description: Everything that would stop a run, each with what to do.
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
from ..module_utils._fabric.intent.intent import EXISTING
from ..module_utils._k8s.checks import access, chart, info
from ..module_utils._k8s.client.connection import AUTH_SPEC, connect

SPEC: dict[str, Any] = {
    "hosts": {"type": "dict", "default": {}},
    "release": {"type": "str"},
    "namespace": {"type": "str", "default": "nvidia-network-operator"},
    "network_namespace": {"type": "str", "default": "default"},
    "test_namespace": {"type": "str", "default": "gpufabric-validate"},
    "test_pull_secret": {"type": "str", "no_log": False},
    "pull_secrets": {"type": "list", "elements": "raw", "default": [], "no_log": False},
    "nfd": {"type": "bool", "default": True},
    "node_labels": {"type": "dict", "default": {}},
    "labels": {"type": "list", "elements": "str", "default": []},
    "steps": {"type": "list", "elements": "str", "choices": list(access.STEPS), "default": list(access.STEPS)},
    "operator_name": {"type": "str"},
    "operator_state": {"type": "str", "choices": ["present", "installed", "absent"], "default": "present"},
    "existing": {"type": "str", "choices": list(EXISTING)},
    "chart_ref": {"type": "str"},
    "chart_repo": {"type": "str", "default": "https://helm.ngc.nvidia.com/nvidia"},
    "helm_binary": {"type": "path"},
    "chart_checksum": {"type": "str"},
    "objects": {"type": "list", "elements": "dict", "default": []},
    "disrupt_users": {"type": "bool", "default": False},
    "workloads": {"type": "bool", "default": False},
    "require": {"type": "bool", "default": False},
}


def main() -> None:
    """Read and return; fail with all problems when they shall stop the run."""
    module = AnsibleModule(argument_spec={**AUTH_SPEC, **SPEC}, supports_check_mode=True)
    try:
        result = info.read(connect(module), module.params, lambda command: module.run_command(list(command)))
    except FabricError as error:
        module.fail_json(msg=f"cluster_info: {error}")
    if (result["release"] or {}).get("action") in ("install", "repair") and chart.unpinned(module.params):
        module.warn(
            "The chart of the network operator is fetched without a checksum: whoever controls the repository controls"
            " what is installed. Set network_operator_chart_checksum to the sha256 of the archive."
        )
    if module.params["require"] and result["problems"]:
        listed = "\n".join(f"- {problem}" for problem in result["problems"])
        module.fail_json(msg=f"cluster_info: this stops the run:\n{listed}", problems=result["problems"])
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
