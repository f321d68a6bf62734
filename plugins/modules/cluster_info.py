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
  chart_ref:
    description: Chart that shall be installed; looked at when it is a path.
    type: str
  chart_checksum:
    description: The sha256 that the chart's archive must have.
    type: str
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
  description: Network operators, with namespace, name, version and image.
  returned: always
  type: list
  elements: dict
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

from ..module_utils._core.errors import FabricError
from ..module_utils._k8s import access, chart, problems, survey
from ..module_utils._k8s.api import Api
from ..module_utils._k8s.client import AUTH_SPEC, connect
from ..module_utils._k8s.nodes import nodes_of_hosts

SPEC: dict[str, Any] = {
    "hosts": {"type": "dict", "default": {}},
    "release": {"type": "str"},
    "namespace": {"type": "str", "default": "nvidia-network-operator"},
    "network_namespace": {"type": "str", "default": "default"},
    "test_namespace": {"type": "str", "default": "gpufabric-validate"},
    "nfd": {"type": "bool", "default": True},
    "node_labels": {"type": "dict", "default": {}},
    "labels": {"type": "list", "elements": "str", "default": []},
    "chart_ref": {"type": "str"},
    "chart_checksum": {"type": "str"},
    "workloads": {"type": "bool", "default": False},
    "require": {"type": "bool", "default": False},
}


def read(api: Api, params: dict[str, Any]) -> dict[str, Any]:
    """Return the module's result: what is there, and every problem with it."""
    spaces = (params["namespace"], params["network_namespace"], params["test_namespace"])
    version, numbers = survey.version(api)
    denied = access.denied(api, access.needed(*spaces))
    nodes = survey.listed(api, "v1", "nodes")
    deployments = survey.listed(api, "apps/v1", "deployments")
    daemonsets = survey.listed(api, "apps/v1", "daemonsets")
    # Without the permission to list nodes, every host would seem to have none.
    by_host, wrong = nodes_of_hosts(params["hosts"], nodes) if "list nodes" not in denied else ({}, {})
    running = survey.listed(api, "v1", "pods", fieldSelector="status.phase=Running") if params["workloads"] else []
    found = problems.Found(
        version=version,
        numbers=numbers,
        nodes=survey.summaries(nodes, params["labels"]),
        hosts=by_host,
        operators=survey.operators(deployments),
        discoveries=survey.discoveries(deployments),
        multuses=survey.multuses(daemonsets),
    )
    return {
        "version": version,
        "nodes": found.nodes,
        "nodes_by_host": by_host,
        "nfd": found.discoveries,
        "multus": found.multuses,
        "operator": found.operators,
        "objects": survey.objects(api),
        "workloads": survey.workloads(running),
        "denied": denied,
        "problems": [*_denied(denied), *wrong.values(), *_aimed(params, found)],
        "requests": api.requests,
    }


def _denied(denied: list[str]) -> list[str]:
    if not denied:
        return []
    return [f"permissions are missing: {access.grouped(denied)}; use an account that has them"]


def _aimed(params: dict[str, Any], found: problems.Found) -> list[str]:
    about_chart = list(chart.problems(params["chart_ref"] or "", params["chart_checksum"] or ""))
    if not params["release"]:
        return about_chart
    aim = problems.Aim(params["release"], params["namespace"], params["nfd"], params["node_labels"])
    return [*problems.problems(aim, found), *about_chart]


def main() -> None:
    """Read and return; fail with all problems when they shall stop the run."""
    module = AnsibleModule(argument_spec={**AUTH_SPEC, **SPEC}, supports_check_mode=True)
    try:
        result = read(connect(module), module.params)
    except FabricError as error:
        module.fail_json(msg=f"cluster_info: {error}")
    if module.params["require"] and result["problems"]:
        listed = "\n".join(f"- {problem}" for problem in result["problems"])
        module.fail_json(msg=f"cluster_info: this stops the run:\n{listed}", problems=result["problems"])
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
