#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_manifests
short_description: Write the plan of an RDMA fabric as Kubernetes manifests
version_added: "0.2.0"
description:
  - Writes all that the playbooks would apply to the cluster into a folder, ready for Argo CD, Flux or C(kubectl apply -k). The folder
    contains the namespace, the Helm values and the release of the operator, the policy, the networks, the list of images, and a pod
    that uses the rails.
  - The plan comes from a run (O(plan)), or is calculated from O(fabric) and recorded facts (O(facts_dir)), a cluster file of
    k8s-launch-kit (O(cluster_file)) or a well-known server (O(preset)). These need neither hosts nor a cluster.
  - Files of an earlier run that are no longer planned are removed. Files that this module did not write are never changed.
  - Runs on the controller.
extends_documentation_fragment:
  - gpufabric.rdma.controller
attributes:
  check_mode:
    description: Predicts which files change.
    support: full
  diff_mode:
    description: Shows the files before and after.
    support: full
seealso:
  - module: gpufabric.rdma.fabric_plan
  - module: gpufabric.rdma.facts_folder
author:
  - Contributors to gpufabric.rdma (@gpufabric)
options:
  path:
    description: The folder for the files. It is created if it does not exist. Without it, the plan is only calculated.
    type: path
  plan:
    description: The plan, as returned by M(gpufabric.rdma.fabric_plan).
    type: dict
  fabric:
    description: The intent, as C(rdma_fabric) in the inventory. Required without O(plan).
    type: dict
  facts_dir:
    description: Folder with the facts of the hosts, as written by M(gpufabric.rdma.facts_folder).
    type: path
  cluster_file:
    description:
      - The file C(cluster-config.yaml) that C(l8k discover) of NVIDIA's k8s-launch-kit writes. Its node groups, ports and rails are used,
        its settings of networks and operator are not.
    type: path
  preset:
    description:
      - A well-known server. V(dell_xe9680_h200), V(lenovo_sr680a_v3_h200) and V(cisco_ucsc_885a_m8_h200) each have 8 ports of 400 Gb/s.
      - The PCI addresses of a real server can differ. Use a preset for drafts.
    type: str
  preset_hosts:
    description: Number of servers of the O(preset).
    type: int
    default: 2
  gates:
    description: Custom acceptance rules, as C(rdma_gates) in the inventory. They are validated.
    type: list
    elements: dict
    default: []
  chart_ref:
    description: Name of the operator's chart in its repository.
    type: str
    default: network-operator
  chart_repo:
    description: URL of the chart repository. Without it, no release for Argo CD and Flux is written.
    type: str
    default: ""
  operator_name:
    description: Name of the Helm release.
    type: str
    default: network-operator
  values:
    description:
      - Values of the chart that override those of the plan. They are written to files, so do not put credentials into them.
    type: dict
    default: {}
  image:
    description: Image of the example pod.
    type: str
    default: ""
  image_digests:
    description:
      - A text file with digests of images, beside those that the collection knows. Each line with an image and a C(sha256) digest
        counts, such as the rows of the vendor's page "NVIDIA Network Operator Container Images", or C(registry/image:tag@sha256:...).
    type: path
    version_added: "0.2.0"
  kernel_arguments:
    description: Kernel arguments of the hosts, for the MachineConfig on OpenShift.
    type: list
    elements: str
    default: []
  kernel_modules:
    description: Further kernel modules of the hosts, for the MachineConfig on OpenShift.
    type: list
    elements: str
    default: []
  kernel_sysctl:
    description: Values of sysctl of the hosts, for the MachineConfig on OpenShift.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Write the manifests of 4 well-known servers
  gpufabric.rdma.fabric_manifests:
    path: /srv/fabric
    preset: dell_xe9680_h200
    preset_hosts: 4
    fabric:
      supernet: 192.168.0.0/16
    chart_repo: https://helm.ngc.nvidia.com/nvidia
  delegate_to: localhost
  run_once: true

- name: Write the manifests of this run
  gpufabric.rdma.fabric_manifests:
    path: /srv/fabric
    plan: "{{ rdma_plan }}"
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
files:
  description: The files of the folder.
  returned: success
  type: list
  elements: str
  sample: [images.txt, networks/ippool-rail0.yaml, policy/nicclusterpolicy-nic-cluster-policy.yaml]
images:
  description:
    - The images of the components and of the chart, as far as they are known exactly; those of C(images.txt) without its comments. An
      image whose digest is known has it after its tag.
  returned: success
  type: list
  elements: str
  sample: ["nvcr.io/nvidia/mellanox/multus-cni:network-operator-v26.7.1"]
table:
  description: The plan as text for review.
  returned: success
  type: list
  elements: str
  sample: ["gpu-[1-4]: 4 identical hosts"]
"""

import gc
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.yaml import yaml_dump, yaml_load

from ..module_utils._common.errors import FabricError, InputError
from ..module_utils._controller import image_digests, recorded_facts, written_folder
from ..module_utils._fabric.operator.coreos import Kernel
from ..module_utils._fabric.operator.manifests import Chart, manifests
from ..module_utils._fabric.operator.profiles import registry
from ..module_utils._fabric.plan import cluster_file, presets
from ..module_utils._fabric.plan.plan import plan

SOURCES = ("plan", "facts_dir", "cluster_file", "preset")
_LARGEST = 1 << 24
ARGUMENT_SPEC: dict[str, Any] = {
    "path": {"type": "path"},
    "plan": {"type": "dict"},
    "fabric": {"type": "dict"},
    "facts_dir": {"type": "path"},
    "cluster_file": {"type": "path"},
    "preset": {"type": "str"},
    "preset_hosts": {"type": "int", "default": 2},
    "gates": {"type": "list", "elements": "dict", "default": []},
    "chart_ref": {"type": "str", "default": "network-operator"},
    "chart_repo": {"type": "str", "default": ""},
    "operator_name": {"type": "str", "default": "network-operator"},
    "values": {"type": "dict", "default": {}},
    "image": {"type": "str", "default": ""},
    "image_digests": {"type": "path"},
    "kernel_arguments": {"type": "list", "elements": "str", "default": []},
    "kernel_modules": {"type": "list", "elements": "str", "default": []},
    "kernel_sysctl": {"type": "dict", "default": {}},
}


def _link_layer(fabric: Any) -> str:
    """Return that of the network model; a wrong name of one is reported by the plan."""
    name = fabric.get("profile") if isinstance(fabric, dict) else None
    return registry.get(name if name in registry.names() else "").link_layer


def calculated(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plan of hosts that are not contacted."""
    groups: dict[str, list[str]] = {}
    if params["facts_dir"]:
        hosts, groups = recorded_facts.read(params["facts_dir"])
    elif params["cluster_file"]:
        hosts = cluster_file.hosts(read_cluster(params["cluster_file"]))
    else:
        hosts = presets.hosts(params["preset"], params["preset_hosts"], _link_layer(params["fabric"]))
    return plan(params["fabric"], hosts, groups=groups, gates=params["gates"])


def read_cluster(path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            return yaml_load(file.read(_LARGEST))
    except OSError as error:
        raise InputError(f"cluster_file: cannot read {path}: {error.strerror}") from error
    except Exception as error:  # ValueError for the coding; the YAML parser has exceptions of its own.
        raise InputError(f"cluster_file: {path} is not valid YAML: {' '.join(str(error).split())}") from error


def as_text(content: Any) -> str:
    """Return the text of a file: objects become one YAML document each."""
    if isinstance(content, str):
        return content
    return "---\n" + "---\n".join(yaml_dump(item, sort_keys=False, default_flow_style=False) for item in content)


def main() -> None:
    # To look for cycles among the facts of a big fleet again and again takes longer than to plan.
    gc.disable()
    module = AnsibleModule(
        argument_spec=ARGUMENT_SPEC,
        supports_check_mode=True,
        required_one_of=[SOURCES],
        mutually_exclusive=[SOURCES],
        required_by={name: ("fabric",) for name in SOURCES[1:]},
    )
    params, invocation = module.params, {"module_args": {**module.params, "plan": None, "values": None}}
    try:
        found = params["plan"] or calculated(params)
        chart = Chart(params["operator_name"], params["chart_ref"], params["chart_repo"], params["values"])
        kernel = Kernel(params["kernel_arguments"], params["kernel_modules"], params["kernel_sysctl"])
        pins = image_digests.read(params["image_digests"])
        content = manifests(found, chart, params["image"], kernel=kernel, digests=pins)
        files = {path: as_text(one) for path, one in content.items()}
        result: dict[str, Any] = {"changed": False}
        if params["path"]:
            change = written_folder.converge(params["path"], files, module.check_mode)
            result = {"changed": change.changed, "diff": diffs(change.before, change.after)}
    except FabricError as error:
        module.fail_json(msg=f"fabric_manifests: {error}", invocation=invocation)
    for text in found["warnings"] if not params["plan"] else ():
        module.warn(text)
    images = [line for line in files["images.txt"].splitlines() if not line.startswith("#")]
    module.exit_json(**result, files=sorted(files), images=images, table=found["table"], invocation=invocation)


def diffs(before: Mapping[str, str], after: Mapping[str, str]) -> list[dict[str, str]]:
    """Return one entry of Ansible's ``diff`` per file that differs."""
    return [
        {"before": before.get(path, ""), "after": after.get(path, ""), "before_header": path, "after_header": path}
        for path in sorted({*before, *after})
        if before.get(path) != after.get(path)
    ]


if __name__ == "__main__":
    main()
