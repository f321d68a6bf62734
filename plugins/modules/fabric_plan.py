#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_plan
short_description: Calculate the plan of an RDMA fabric from intent and facts
version_added: "0.1.0"
description:
  - Combines the intent (the dictionary C(rdma_fabric)) with the facts of M(gpufabric.rdma.rdma_facts). The plan assigns ports to rails and
    contains interface names, host addresses, address pools for pods, Kubernetes objects, the expected rate of each link, and warnings.
  - The module is a pure calculation. The same input gives the same plan, nothing is read or changed, and all problems of one kind
    are reported in one message.
  - Runs on the controller, once for all hosts.
seealso:
  - module: gpufabric.rdma.rdma_facts
  - module: gpufabric.rdma.fabric_objects
  - module: gpufabric.rdma.fabric_judge
author:
  - Contributors to gpufabric.rdma (@gpufabric)
options:
  facts:
    description:
      - Facts by inventory host name, each the value of C(ansible_facts.rdma).
      - A host of this run without valid facts is treated as absent.
    type: dict
    required: true
  settings:
    description:
      - Per-host settings by inventory host name, each the value of the variable C(rdma_host).
      - C(number) (integer) is the position of the host in the host block of every rail, in which its addresses end. Set it if addresses
        must not depend on the order of the group.
      - C(node_name) (string) is the name of its Node. By default, the Node with the same machine ID.
      - C(rails) (dictionary) maps a rail to a PCI address, if C(rdma_fabric.rails) does not apply to this host.
    type: dict
    default: {}
  qos:
    description:
      - QoS settings by inventory host name, each the value of the variable C(rail_links_qos). Unless C(rdma_fabric.tests.traffic_class) is
        set, tests use the traffic class of C(dscp) or C(traffic_class) in it. If hosts of this run have different ones, the plan warns
        and nothing is measured.
    type: dict
    default: {}
  group:
    description:
      - All hosts of the fabric in inventory order, including hosts that are not part of this run. New host numbers and addresses are
        assigned in this order.
    type: list
    elements: str
    required: true
  limit:
    description:
      - The hosts of this run. Defaults to all hosts of O(group).
    type: list
    elements: str
  absent:
    description:
      - Hosts of this run that did not respond, although facts of an earlier run exist.
    type: list
    elements: str
    default: []
  nodes:
    description:
      - The nodes of the cluster, as returned by M(gpufabric.rdma.cluster_info). Hosts are matched with nodes by machine ID.
    type: list
    elements: dict
    default: []
  groups:
    description:
      - The inventory groups with their hosts, for use in C(rdma_fabric.thresholds.overrides) and C(rdma_fabric.tests.groups).
    type: dict
    default: {}
  gates:
    description:
      - Custom acceptance rules for the report, as C(rdma_gates) in the inventory. Each rule has a C(name), a JMESPath C(query) that
        must evaluate to V(true), and a C(severity) of V(failure) or V(warning).
      - Syntax, functions and fields of the rules are validated before anything is changed or measured.
    type: list
    elements: dict
    default: []
extends_documentation_fragment:
  - gpufabric.rdma.controller
  - gpufabric.rdma.fabric
"""

EXAMPLES = r"""
- name: Plan the fabric of one host
  gpufabric.rdma.fabric_plan:
    fabric:
      supernet: 192.168.0.0/16
    facts:
      gpu-1: "{{ hostvars['gpu-1'].ansible_facts.rdma }}"
    group: [gpu-1]
  delegate_to: localhost
  run_once: true
  register: result

- name: Show the addresses of the host
  ansible.builtin.debug:
    msg: "{{ result.plan.hosts['gpu-1'].rails | map(attribute='address') }}"
"""

RETURN = r"""
plan:
  description: The plan.
  returned: success
  type: dict
  contains:
    schema:
      description: Version of this structure.
      type: int
      returned: always
      sample: 1
    rails:
      description:
        - The rails in order, each with name, index, netdev, link_layer, subnet, host_range, pool_range,
          pool_subnet, gateway, host_prefix, router_index, routes, exclusions, block_size, mtu, speed (the value of C(link_speed)),
          resource, network, pool, vendors and drivers. A rail with IPv6 beside IPv4 addresses has the keys from subnet to block_size, and
          pool, again in ipv6.
      type: list
      elements: dict
      returned: always
      sample: [{name: rail0, netdev: rail0, subnet: 192.168.0.0/24, resource: rdma_rail0}]
    hosts:
      description:
        - The hosts by name, including hosts outside this run, each with number, machine_id, node (name of its node, if known) and rails.
          Each rail has rail, pci, driver, mac, current (current interface name), netdev (planned interface name), address, mtu, gateway,
          routes and beyond (with a router), vlan (with a VLAN interface), members (PCI addresses, of a bond), and doubt (hosts outside
          this run that may already use a newly assigned address).
          A rail with IPv6 beside IPv4 addresses has address, gateway, routes and beyond again in ipv6.
      type: dict
      returned: always
      sample: {gpu-1: {number: 1, rails: [{rail: rail0, pci: "0000:18:00.0", address: 192.168.0.1/24}]}}
    absent:
      description: Hosts of this run that returned no facts, or invalid facts.
      type: list
      elements: str
      returned: always
      sample: []
    profile:
      description:
        - The network model, with its name and operator_makes_vfs (whether the VFs of rails belong to the SR-IOV operator) and
          host_vfs (number of VFs of each rail that hosts need for it).
      type: dict
      returned: always
      sample: {name: macvlan, operator_makes_vfs: false, host_vfs: null}
    objects:
      description: Kubernetes objects to apply, in order, under C(policy) and C(networks).
      type: dict
      returned: always
      sample: {policy: [{kind: NicClusterPolicy}], networks: [{kind: IPPool}, {kind: MacvlanNetwork}]}
    nodes:
      description: Labels to set on the nodes of the fabric, and the labels that select these nodes.
      type: dict
      returned: always
      sample: {labels: {}, selector: {feature.node.kubernetes.io/pci-15b3.present: "true"}}
    operator:
      description: Release and namespace of the operator, whether its chart installs NFD, and the namespace of the networks.
      type: dict
      returned: always
      sample: {release: 26.7.1, namespace: nvidia-network-operator, nfd: true, network_namespace: default}
    expectations:
      description:
        - Values by rail and host from which the expected results are calculated. Contains link rate and NIC rate in Gb/s, RDMA MTU of the
          tests, PCIe link and VF rate limit (null if unknown), and the thresholds of the host.
      type: dict
      returned: always
      sample: {rail0: {gpu-1: {rate: 400.0, max_rate: 400.0, mtu: 4096, floor: null, tolerance: 0.95, kinds: {}}}}
    thresholds:
      description: Fabric-wide thresholds, C(rdma_fabric.thresholds) with defaults.
      type: dict
      returned: always
      sample: {gpu_paths: {PIX: 0.97, SYS: null}, outliers: {severity: warning, deviations: 5.0}, unsteady: {severity: failure}}
    tests:
      description:
        - Test settings, C(rdma_fabric.tests) with defaults, and traffic. The latter has by rail the traffic_class, dscp, priority and
          priorities with PFC (pfc) of test packets as far as known, their source, a text and doubts. If hosts of this run have
          different traffic classes, problem is the reason why nothing is measured.
      type: dict
      returned: always
      sample: {duration: 10, size: 65536, queue_pairs: 4}
    gates:
      description: The validated rules of O(gates).
      type: list
      elements: dict
      returned: always
      sample: [{name: no pair is slow, query: "length(results[?value < `90`]) == `0`", severity: failure}]
    gpus:
      description: Nearest GPU by rail and host, with its PCI address and the type of the path (PIX, PXB, PHB, NODE, SYS).
      type: dict
      returned: when C(tests.memory) selects GPU memory
      sample: {rail0: {gpu-1: {bdf: "0000:1b:00.0", path: PIX}}}
    switches:
      description: Switch and switch port by rail and host, and the priorities with flow control (pfc) that the switch reports by DCBX.
      type: dict
      returned: when the facts contain LLDP neighbours, or the file of C(tests.groups) has the switches of InfiniBand ports
      sample: {rail0: {gpu-1: {switch: leaf3, port: Ethernet12}}}
    partitions:
      description: Lines of C(partitions.conf) for the administrator of the subnet manager.
      type: list
      elements: str
      returned: when the rails are InfiniBand and UFM does not manage their partitions
      sample: ["Default=0x7fff, ipoib, mtu=5 : ALL=full ;"]
    table:
      description:
        - The plan as text for review. For each class of identical hosts, it lists the rails with PCI address, interface, supported rate,
          driver, nearest GPU and addresses, and the ports that are not used as rails with the reason.
      type: list
      elements: str
      returned: always
      sample: ["gpu-[01-16]: 16 identical hosts"]
    warnings:
      description: Conditions that do not stop the run but require attention.
      type: list
      elements: str
      returned: always
      sample: ["gpu-7 rail3: the link came up at 100 Gb/s, most ports of the rail run at 400 Gb/s: check cable, transceiver, switch port and
    autonegotiation"]
    endpoints:
      description: Hosts to measure, in order, directly on the host under C(host) and in pods under C(pod).
      type: dict
      returned: always
      sample: {host: [gpu-1], pod: [gpu-1]}
"""

import gc
import json
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.yaml import yaml_load

from ..module_utils._common.errors import FabricError, InputError
from ..module_utils._fabric.intent.given import given
from ..module_utils._fabric.intent.host_groups import topology_file
from ..module_utils._fabric.intent.options import FABRIC
from ..module_utils._fabric.plan.plan import plan

ARGUMENT_SPEC = {
    "fabric": {"type": "dict", "required": True, "options": FABRIC},
    "facts": {"type": "dict", "required": True},
    "settings": {"type": "dict", "default": {}},
    "qos": {"type": "dict", "default": {}},
    "group": {"type": "list", "elements": "str", "required": True},
    "limit": {"type": "list", "elements": "str"},
    "absent": {"type": "list", "elements": "str", "default": []},
    "nodes": {"type": "list", "elements": "dict", "default": []},
    "groups": {"type": "dict", "default": {}},
    "gates": {"type": "list", "elements": "dict", "default": []},
}

# What the planner takes of a host, and the option that has it by host.
_OF_HOST = {"facts": "facts", "rdma_host": "settings", "qos": "qos"}


def read_topology(fabric: Mapping[str, Any]) -> Any:
    """Return the content of the file that groups of hosts are taken from: text, or what JSON or YAML make of it."""
    path = topology_file(fabric.get("tests"))
    if not path.startswith("/"):
        return None
    try:
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
        if path.endswith(".json"):
            return json.loads(text)
        return yaml_load(text) if path.endswith((".yml", ".yaml")) else text
    except OSError as error:
        raise InputError(f"rdma_fabric.tests.groups.path: cannot read {path}: {error.strerror}") from error
    except Exception as error:  # ValueError for JSON and coding; the YAML parser has exceptions of its own.
        raise InputError(f"rdma_fabric.tests.groups.path: {path} cannot be parsed: {error}") from error


def main() -> None:
    # To look for cycles among the facts of a big fleet again and again takes longer than to plan.
    gc.disable()
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    params = {**module.params, "fabric": given(module.params["fabric"])}
    hosts = {name: {key: params[option].get(name) for key, option in _OF_HOST.items()} for name in params["group"]}
    # The facts of a whole fleet must not come back with the result.
    invocation = {"module_args": {"fabric": params["fabric"], "group": params["group"], "limit": params["limit"]}}
    try:
        names = ("group", "limit", "absent", "nodes", "groups", "gates")
        known = {name: params[name] for name in names}
        result = plan(params["fabric"], hosts, topology=read_topology(params["fabric"]), **known)
    except FabricError as exc:
        module.fail_json(msg=str(exc), invocation=invocation)
    for warning in result["warnings"]:
        module.warn(warning)
    module.exit_json(changed=False, plan=result, invocation=invocation)


if __name__ == "__main__":
    main()
