#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_olm
short_description: Install or remove the network operator with the Operator Lifecycle Manager
version_added: "0.2.0"
description:
  - Applies namespace, OperatorGroup and Subscription, approves the InstallPlan of exactly the requested release, and waits until its
    ClusterServiceVersion has succeeded. Later releases are never installed by themselves.
  - An InstallPlan that also installs or upgrades other operators of the namespace is approved with O(olm_approve_others) only.
  - Fails early, with the reasons that OLM reports, if waiting cannot help. A later run continues the installation.
  - A Subscription, OperatorGroup or namespace that this collection did not make is neither changed nor removed. An OperatorGroup that
    selects only O(namespace) is used.
  - With O(state=absent), removes the Subscription, then the ClusterServiceVersion, and the OperatorGroup and namespace if they hold
    nothing else. OLM leaves the custom resource definitions of the operator, and so does this module.
extends_documentation_fragment:
  - gpufabric.rdma.cluster
options:
  release:
    description: Release of the operator.
    type: str
    required: true
  namespace:
    description: Namespace of the operator.
    type: str
    default: nvidia-network-operator
  platform:
    description: Kind of cluster, C(rdma_plan.operator.platform). It determines the catalog, which only V(openshift) has.
    type: str
    choices: [kubernetes, openshift]
    default: openshift
  existing:
    description: >-
      How to handle a Subscription that this collection did not make. V(refuse) fails, V(adopt) manages it from now on.
      A Subscription of another catalog is not adopted. V(use) is for O(state=absent) only. An account without permissions for
      OLM then removes nothing and gets a note.
    type: str
    choices: [refuse, use, adopt]
    default: refuse
  olm_approve_others:
    description: >-
      Approve an InstallPlan that also installs or upgrades other operators. Also install in a namespace with Subscriptions that are
      updated automatically; OLM then updates them only with approval.
    type: bool
    default: false
  state:
    description: Whether the operator must be installed.
    type: str
    choices: [present, absent]
    default: present
  timeout:
    description: Maximum time in seconds to wait for the installation, or for each removed object.
    type: int
    default: 600
attributes:
  check_mode:
    details: Uses a server-side dry run. Nothing is approved, and the installation of the release is predicted.
  diff_mode:
    description: Returns the fields that this collection owns, and the phase of the release, before and after.
seealso:
  - module: gpufabric.rdma.cluster_info
  - module: gpufabric.rdma.fabric_objects
  - name: Role network_operator
    description: The role that uses this module.
    link: https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/roles/network_operator.md
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Install the network operator on OpenShift
  gpufabric.rdma.fabric_olm:
    kubeconfig: ~/.kube/config
    release: "26.7.1"
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
objects:
  description: Action taken per object, in order, as M(gpufabric.rdma.fabric_objects) returns it.
  returned: success
  type: list
  elements: dict
csv:
  description: Name of the ClusterServiceVersion of the release.
  returned: success
  type: str
  sample: nvidia-network-operator.v26.7.1
install_plan:
  description: Name of the InstallPlan that was approved, or in check mode would be; empty if none.
  returned: success
  type: str
others:
  description: Other releases that this InstallPlan installs. Also returned as a warning.
  returned: success
  type: list
  elements: str
notes:
  description: What a removal leaves, and why.
  returned: success
  type: list
  elements: str
requests:
  description: Number of requests sent to the API server.
  returned: success
  type: int
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import ConflictError, FabricError, InputError
from ..module_utils._fabric.intent import platforms
from ..module_utils._fabric.intent.intent import EXISTING
from ..module_utils._fabric.operator.olm import Aim, aim_of
from ..module_utils._k8s.checks import survey
from ..module_utils._k8s.client.api import Api
from ..module_utils._k8s.client.connection import AUTH_SPEC, connect
from ..module_utils._k8s.client.poll import Clock
from ..module_utils._k8s.objects import olm as found_olm
from ..module_utils._k8s.objects.apply import Options, told
from ..module_utils._k8s.ready import olm

SPEC: dict[str, Any] = {
    "release": {"type": "str", "required": True},
    "namespace": {"type": "str", "default": "nvidia-network-operator"},
    "platform": {"type": "str", "choices": list(platforms.PLATFORMS), "default": "openshift"},
    "existing": {"type": "str", "choices": list(EXISTING), "default": "refuse"},
    "olm_approve_others": {"type": "bool", "default": False},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "timeout": {"type": "int", "default": 600},
}


def aim(params: dict[str, Any]) -> Aim:
    """Return what is to be installed."""
    own = platforms.get(params["platform"])
    if own.catalog is None:
        raise InputError(f"platform: {own.title} has no catalog of OLM. Set openshift, or install the chart with Helm")
    existing, others = params["existing"], params["olm_approve_others"]
    if existing == "use" and params["state"] == "present":
        raise InputError("existing: use is for state absent. Set refuse or adopt")
    return aim_of(params["namespace"], params["release"], own.catalog, existing=existing, others=others)


def run(api: Api, params: dict[str, Any], options: Options, *, clock: Clock) -> dict[str, Any]:
    """Bring the operator to the wanted state and return the module's result."""
    wanted = aim(params)
    notes: list[str] = []
    done = olm.Installed(())
    if params["state"] == "absent":
        removed = found_olm.remove(api, wanted, options, clock=clock)
        outcomes, notes = removed.outcomes, list(removed.notes)
    else:
        operators = survey.operators(survey.listed(api, "apps/v1", "deployments"))
        decision = found_olm.decided(api, wanted, operators)
        if decision.problems:
            raise ConflictError("; ".join(decision.problems))
        done = olm.install(api, wanted, decision, options=options, clock=clock)
        outcomes = done.outcomes
    return {
        **told(outcomes),
        "csv": wanted.csv,
        "install_plan": done.plan,
        "others": list(done.others),
        "notes": notes,
        "requests": api.requests,
    }


def main() -> None:
    """Install or remove, and say what differed."""
    module = AnsibleModule(argument_spec={**AUTH_SPEC, **SPEC}, supports_check_mode=True)
    params = module.params
    try:
        options = Options(module.check_mode, timeout=params["timeout"], adopt=params["existing"] == "adopt")
        result = run(connect(module), params, options, clock=Clock())
    except FabricError as error:
        module.fail_json(msg=f"fabric_olm: {error}")
    if result["others"]:
        names = ", ".join(result["others"])
        module.warn(f"consented by olm_approve_others: InstallPlan {result['install_plan']} also installs {names}")
    for text in result["notes"]:
        module.warn(text)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
