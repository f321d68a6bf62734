#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_lint
short_description: Find known problems in objects of the network and SR-IOV operators
version_added: "0.2.0"
description:
  - Examines objects for problems that no schema shows, such as a policy that the operator ignores or a device with two owners. The
    objects come from files (O(path)) or from a cluster. They need not be made by this collection.
  - A finding has positive evidence. What is not known gives none, so an empty result does not prove that a configuration works.
  - Fails if there is a finding of severity C(error). Other findings are warnings.
  - Reads from a cluster policies, networks, pools, node states, Nodes, Deployments and PodDisruptionBudgets, one list per kind, and
    no Secrets.
  - The rules are listed in docs/lint.md of the collection.
extends_documentation_fragment:
  - gpufabric.rdma.cluster
options:
  path:
    description:
      - A file with Kubernetes objects in YAML or JSON, or a folder with such files. Documents without a kind are ignored.
      - Without it, the objects are read from the cluster.
    type: path
  facts_dir:
    description: Folder with the facts of hosts, as written by M(gpufabric.rdma.facts_folder). Some rules compare objects with hosts.
    type: path
  ignore:
    description: Names of rules that are not applied.
    type: list
    elements: str
    default: []
attributes:
  diff_mode:
    description: The module changes nothing.
    support: none
seealso:
  - module: gpufabric.rdma.fabric_manifests
  - module: gpufabric.rdma.cluster_info
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Examine manifests
  gpufabric.rdma.fabric_lint:
    path: "{{ playbook_dir }}/manifests"

- name: Examine a cluster
  gpufabric.rdma.fabric_lint:
    kubeconfig: ~/.kube/config
    ignore: [resource-ports]
"""

RETURN = r"""
findings:
  description: What was found, errors first.
  returned: always
  type: list
  elements: dict
  contains:
    rule:
      description: Name of the rule.
      type: str
      sample: policy-name
    severity:
      description: V(error) if something does not work, V(warning) if it has a cost.
      type: str
      sample: error
    object:
      description: The object.
      type: str
      sample: NicClusterPolicy mlnx
    text:
      description: What was found, and what to do.
      type: str
      sample: It reads only the policy nic-cluster-policy. Rename it
    effect:
      description: What happens otherwise.
      type: str
      sample: The operator ignores the policy
objects:
  description: Number of objects that were examined.
  returned: always
  type: int
  sample: 12
requests:
  description: Number of requests sent to the API server.
  returned: always
  type: int
  sample: 18
"""

from collections.abc import Sequence
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.yaml import yaml_load_all

from ..module_utils._common.errors import FabricError, InputError
from ..module_utils._common.reader import nearest
from ..module_utils._controller import manifest_files, recorded_facts
from ..module_utils._fabric.lint import registry
from ..module_utils._fabric.lint.objects import Objects
from ..module_utils._fabric.lint.rule import ERROR
from ..module_utils._k8s.checks import lint_objects
from ..module_utils._k8s.client import kinds
from ..module_utils._k8s.client.connection import AUTH_SPEC, connect

SPEC: dict[str, Any] = {
    "path": {"type": "path"},
    "facts_dir": {"type": "path"},
    "ignore": {"type": "list", "elements": "str", "default": []},
}


def check_names(names: Sequence[str]) -> None:
    """Raise InputError for the name of a rule that does not exist."""
    for name in names:
        if name not in registry.names():
            raise InputError(f'ignore: there is no rule "{name}"; {nearest(name, registry.names())}')


def examined(module: AnsibleModule) -> tuple[Objects, int]:
    """Return what is to be examined, and how many requests that took."""
    path, facts_dir = module.params["path"], module.params["facts_dir"]
    hosts = recorded_facts.read(facts_dir)[0] if facts_dir else {}
    facts = {name: host["facts"] for name, host in hosts.items()}
    if path:
        return Objects(manifest_files.read(path, yaml_load_all), facts), 0
    api = connect(module)
    items = lint_objects.read(api)
    return Objects(items, facts, complete=True, groups=kinds.groups(api)), api.requests


def main() -> None:
    """Read and examine; fail when something does not work."""
    module = AnsibleModule(argument_spec={**AUTH_SPEC, **SPEC}, supports_check_mode=True)
    try:
        check_names(module.params["ignore"])
        objects, requests = examined(module)
        found = registry.lint(objects, module.params["ignore"])
    except FabricError as error:
        module.fail_json(msg=f"fabric_lint: {error}")
    result = {
        "findings": [finding._asdict() for finding in found],
        "objects": len(objects.items),
        "requests": requests,
    }
    errors = [finding.line for finding in found if finding.severity == ERROR]
    for finding in found:
        if finding.severity != ERROR:
            module.warn(finding.line)
    if errors:
        listed = "\n".join(f"- {line}" for line in errors)
        summary = f"objects examined: {len(objects.items)}, errors: {len(errors)}"
        module.fail_json(msg=f"fabric_lint: {summary}\n{listed}", **result)
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
