#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_info
short_description: Gather information about the cluster and check it for problems
version_added: "0.1.0"
description:
  - Reads the version, nodes, network operator, Node Feature Discovery, Multus and the objects of the kinds that this collection manages.
  - Checks every permission that a run needs, and reports all problems in one message. The module changes nothing.
extends_documentation_fragment:
  - gpufabric.rdma.cluster
options:
  hosts:
    description:
      - The hosts of the fabric by name. Each has a C(machine_id), or a C(node) that names its node explicitly.
      - Accepts the C(hosts) of a plan.
    type: dict
    default: {}
  rails:
    description:
      - The C(rails) of a plan. Their subnets must not overlap networks of pods and services, and addresses of nodes.
      - Networks of services are read from ServiceCIDR objects, or else from the address of the Service C(kubernetes).
      - Networks of pods are read from objects of Calico and Cilium, or else from C(spec.podCIDRs) of the nodes. If no pod with an address
        of the latter is found, an overlap with them is a warning.
    type: list
    elements: dict
    default: []
  release:
    description: Release of the operator to be installed.
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
  collectives:
    description: Whether collectives of NCCL are run, which need Services in O(test_namespace).
    type: bool
    default: false
  test_pull_secret:
    description: Image pull secret of the testers. If O(test_namespace) exists, the secret must exist in it.
    type: str
  test_cpus:
    description: Number of whole CPUs of each tester in pods, 0 without a limit.
    type: int
    default: 0
    version_added: "0.2.0"
  pull_secrets:
    description:
      - Image pull secrets that the chart values name, each as a string or as a dictionary with C(name). If O(namespace) exists, the
        secrets must exist in it.
    type: list
    elements: raw
    default: []
  ufm_secret:
    description:
      - Secret with which the operator's ib-kubernetes logs in to UFM. If O(namespace) exists, the Secret must exist in it with the keys
        C(UFM_USERNAME), C(UFM_PASSWORD) and C(UFM_ADDRESS). Their values are not used.
    type: str
  multus:
    description: Whether the policy installs Multus. With V(false), the cluster must already run it.
    type: bool
    default: true
  nic_drivers:
    description: What brings the drivers of NICs, as the role C(rdma_stack) takes it. Settings of the GPU Operator that contradict it are warnings.
    type: str
  nfd:
    description: Whether the operator's chart installs Node Feature Discovery.
    type: bool
    default: true
  node_labels:
    description: Labels that the run sets on the nodes.
    type: dict
    default: {}
  labels:
    description: Additional node labels to return.
    type: list
    elements: str
    default: []
  platform:
    description: Kind of cluster, C(rdma_plan.operator.platform). A cluster of another kind is a problem. If omitted, it is not checked.
    type: str
    choices: [kubernetes, openshift]
  steps:
    description: Parts of the run to check. Permissions and problems of other parts are ignored.
    type: list
    elements: str
    choices: [operator, policy, networks, validate]
    default: [operator, policy, networks, validate]
  operator_name:
    description: Helm release of the operator. If omitted, Helm releases are neither read nor checked.
    type: str
  operator_state:
    description:
      - V(present) checks that O(operator_name) can be installed or upgraded, V(installed) that its installation is complete.
      - V(absent) checks only that the release can be removed.
    type: str
    choices: [present, installed, absent]
    default: present
  existing:
    description:
      - How to handle an unmanaged operator or policy. V(refuse) reports it as a problem, V(use) leaves it unchanged, and V(adopt) manages
        it from now on. If omitted, policies are not checked.
    type: str
    choices: [refuse, use, adopt]
  olm_approve_others:
    description: >-
      Allow that the InstallPlan of the operator also installs or upgrades other operators of its namespace, and that Subscriptions of the
      namespace are no longer updated without approval. For V(openshift) in O(platform).
    type: bool
    default: false
  chart_ref:
    description: Chart to install. A path must exist, and with O(operator_name) Helm must be able to read the chart.
    type: str
  chart_repo:
    description: URL of the chart repository.
    type: str
    default: https://helm.ngc.nvidia.com/nvidia
  helm_binary:
    description: Path of the C(helm) binary. If omitted, it is searched in E(PATH).
    type: path
  chart_checksum:
    description: Expected SHA-256 checksum of the chart archive.
    type: str
  profile:
    description: Network model of the plan, C(rdma_plan.profile.name). Without it, the default of C(rdma_fabric.profile).
    type: str
    default: ""
  classes:
    description: Classes of hosts of the plan, C(rdma_plan.classes), each with the network model and the labels of its nodes.
    type: list
    elements: dict
    default: []
  objects:
    description: Objects that the steps V(policy) and V(networks) apply. A pool must not reassign addresses that pods hold.
    type: list
    elements: dict
    default: []
  prune:
    description:
      - Steps that remove what earlier runs applied and O(objects) does not contain. If it is given, also with no step, RV(problems)
        includes what M(gpufabric.rdma.fabric_objects) would reject, such as fields that another field manager owns, or pods that use a
        network to be removed. This is found by server-side dry runs.
    type: list
    elements: str
    choices: [policy, networks]
  disrupt_users:
    description:
      - Allow changes to pools in O(objects) while pods hold addresses from them, and the removal of networks that pods use.
      - Allow that the driver container moves between the NicClusterPolicy and NicNodePolicies, which removes the driver from nodes.
      - The playbooks pass C(rdma_disrupt_users).
    type: bool
    default: false
  workloads:
    description: Search for workload pods that use rails. This lists all running pods of the cluster.
    type: bool
    default: false
  require:
    description: Fail with the list of all problems if there are any.
    type: bool
    default: false
attributes:
  diff_mode:
    description: The module changes nothing.
    support: none
seealso:
  - module: gpufabric.rdma.fabric_objects
  - module: gpufabric.rdma.fabric_wait
  - name: Role network_operator
    description: The role that uses this module.
    link: https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/roles/network_operator.md
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
  description: Each node with its C(name), C(machine_id), C(ready), and the C(labels) and C(allocatable) resources relevant to the fabric.
  returned: always
  type: list
  elements: dict
nodes_by_host:
  description: Node name per host, for hosts that match exactly one node.
  returned: always
  type: dict
  sample: {gpu-1: node-a}
nfd:
  description: Node Feature Discovery masters, with namespace, name and image.
  returned: always
  type: list
  elements: dict
multus:
  description: DaemonSets that run Multus, with namespace, name and image.
  returned: always
  type: list
  elements: dict
operator:
  description: Network operators, with namespace, name, version, image, Helm release and availability.
  returned: always
  type: list
  elements: dict
gpu_operator:
  description:
    - ClusterPolicies of the GPU Operator, with name, whether they load nvidia-peermem (C(rdma), C(use_host_mofed)), and the C(problem) of
      that with O(nic_drivers), which is also a warning.
    - Empty if the account may not list them.
  returned: always
  type: list
  elements: dict
sriov_policies:
  description:
    - SriovNetworkNodePolicies that this collection did not create and that select ports of rails of O(hosts), each with name, namespace,
      the C(ports) with host, rail and pci, the C(problem) of that, and whether it C(stops) the run because O(objects) has a policy for
      one of these ports, too. Otherwise the problem is a warning.
    - Empty if the account may not list them.
  returned: always
  type: list
  elements: dict
release:
  description: State of the release O(operator_name) and the action it requires.
  returned: with O(operator_name)
  type: dict
  contains:
    name:
      description: Helm release, or package of OLM, that a teardown removes; empty if this collection manages none.
      type: str
      returned: always
    state:
      description: Helm status of O(operator_name), or phase of the ClusterServiceVersion; empty if it does not exist.
      type: str
      returned: always
    managed:
      description: Whether this collection manages O(operator_name).
      type: bool
      returned: always
    action:
      description: Required action, V(install) (also for upgrades), V(repair), V(subscribe) (installation by OLM) or V(none).
      type: str
      returned: always
    objects:
      description: >-
        Namespace and installation marker to apply, or to remove with O(operator_state=absent). With V(subscribe), the objects of OLM.
      type: list
      elements: dict
      returned: always
    remains:
      description: Leftovers of the chart that a teardown removes, as input for M(gpufabric.rdma.fabric_objects); null if there are none.
      type: dict
      returned: always
    notes:
      description: Objects that a teardown keeps, and why. The namespace is searched only with O(operator_state=absent).
      type: list
      elements: str
      returned: always
chart:
  description: Type of O(chart_ref), V(path), V(url), or V(name) for a chart in O(chart_repo); null if it is not set.
  returned: always
  type: str
objects:
  description: Objects by kind, with name, namespace and whether this collection created them.
  returned: always
  type: dict
workloads:
  description: Workload pods that use rails, with namespace, name and node; empty unless O(workloads=true).
  returned: always
  type: list
  elements: dict
denied:
  description: Permissions that the run requires and the account does not have.
  returned: always
  type: list
  elements: str
  sample: ["patch nodes", "create namespaces"]
problems:
  description: All problems that would stop the run, each with its remedy.
  returned: always
  type: list
  elements: str
doubts:
  description: What may be wrong, and does not stop the run. Each is also a warning.
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
from ..module_utils._fabric.intent import platforms
from ..module_utils._fabric.intent.intent import EXISTING
from ..module_utils._k8s.checks import access, chart, info
from ..module_utils._k8s.client.connection import AUTH_SPEC, connect
from ..module_utils._k8s.objects.preview import STEPS

SPEC: dict[str, Any] = {
    "hosts": {"type": "dict", "default": {}},
    "rails": {"type": "list", "elements": "dict", "default": []},
    "release": {"type": "str"},
    "namespace": {"type": "str", "default": "nvidia-network-operator"},
    "network_namespace": {"type": "str", "default": "default"},
    "test_namespace": {"type": "str", "default": "gpufabric-validate"},
    "collectives": {"type": "bool", "default": False},
    "test_pull_secret": {"type": "str", "no_log": False},
    "test_cpus": {"type": "int", "default": 0},
    "pull_secrets": {"type": "list", "elements": "raw", "default": [], "no_log": False},
    "ufm_secret": {"type": "str", "no_log": False},
    "multus": {"type": "bool", "default": True},
    "nfd": {"type": "bool", "default": True},
    "node_labels": {"type": "dict", "default": {}},
    "labels": {"type": "list", "elements": "str", "default": []},
    "platform": {"type": "str", "choices": list(platforms.PLATFORMS)},
    "steps": {"type": "list", "elements": "str", "choices": list(access.STEPS), "default": list(access.STEPS)},
    "operator_name": {"type": "str"},
    "operator_state": {"type": "str", "choices": ["present", "installed", "absent"], "default": "present"},
    "existing": {"type": "str", "choices": list(EXISTING)},
    "olm_approve_others": {"type": "bool", "default": False},
    "chart_ref": {"type": "str"},
    "chart_repo": {"type": "str", "default": "https://helm.ngc.nvidia.com/nvidia"},
    "helm_binary": {"type": "path"},
    "chart_checksum": {"type": "str"},
    "profile": {"type": "str", "default": ""},
    "nic_drivers": {"type": "str"},
    "classes": {"type": "list", "elements": "dict", "default": []},
    "objects": {"type": "list", "elements": "dict", "default": []},
    "prune": {"type": "list", "elements": "str", "choices": list(STEPS)},
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
            "The chart of the network operator is fetched without a checksum: the repository determines what is"
            " installed. Set chart_checksum to the sha256 of the archive."
        )
    for problem in filter(None, (*result["doubts"], *(policy["problem"] for policy in result["gpu_operator"]))):
        module.warn(problem)
    if module.params["require"] and result["problems"]:
        listed = "\n".join(f"- {problem}" for problem in result["problems"])
        module.fail_json(msg=f"cluster_info: this stops the run:\n{listed}", problems=result["problems"])
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
