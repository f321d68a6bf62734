#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_nccl
short_description: Run collectives of NCCL in pods and judge them
version_added: "0.1.0"
description:
  - Runs nccl-tests on pairs and groups of hosts, as C(tests.nccl) of the plan requests, one round of disjoint groups after another. Each
    group is an Indexed Job with one pod per host, which requests all GPUs of its node and all rails of the host.
  - The processes are started by hydra, the launcher of MPICH, without ssh.
  - A collective passes if it used RDMA on all rails, with GPUDirect where the GPUs are near the rails, its values were right, and it
    reached its bus bandwidth. NCCL does not show which port is slow, so a collective is never a diagnosis of a port.
  - Writes C(nccl.json), C(nccl.txt), C(nccl-junit.xml) and C(nccl.prom) to O(path).
  - If O(path) has the report of a measurement of these hosts by M(gpufabric.rdma.fabric_report), the collectives are added to its files,
    and its verdict is that of both. The page is rendered by an action plugin on the controller, so the module must run there.
  - All objects are removed again, also after an error.
notes:
  - Never reports a change, because all created objects are removed again and measuring changes nothing.
  - Holds the Lease of M(gpufabric.rdma.fabric_testers) meanwhile, so that only one run measures in a cluster.
extends_documentation_fragment:
  - gpufabric.rdma.cluster
  - gpufabric.rdma.pods
options:
  state:
    description:
      - V(measured) runs the collectives. O(plan), O(facts), O(image), O(script) and O(tester_script) are required.
      - V(begun) only replaces an earlier report by one that has no data, so that none stands if the run ends before its collectives.
    type: str
    choices: [measured, begun]
    default: measured
  plan:
    description: The plan, as returned by M(gpufabric.rdma.fabric_plan).
    type: dict
  limit:
    description: Restrict the run to these hosts of the plan. An empty list means all hosts.
    type: list
    elements: str
    default: []
  facts:
    description:
      - Current facts by host name, each the value of C(ansible_facts.rdma). A host without facts is left out, since it is not known
        whether it is in use.
    type: dict
  busy_hosts:
    description:
      - What to do with hosts on which RDMA queue pairs are open, or on which that cannot be read. V(false) refuses to run. V(true) runs on
        these hosts, which disturbs their jobs. V(exclude) runs on the other hosts.
    type: raw
    default: false
  path:
    description: Directory on the controller for the report, and for the raw output in C(nccl).
    type: path
    required: true
  run:
    description: ID of the run, a valid Kubernetes label value. It labels all objects and holds the Lease.
    type: str
    required: true
  wait:
    description: Maximum time in seconds to wait for a Lease held by another run.
    type: int
    default: 120
  image:
    description: Image of the pods, with nccl-tests, MPICH, iproute2 and the programs of the tester.
    type: str
  script:
    description: Path of C(nccl.sh) on the controller.
    type: path
  tester_script:
    description: Path of C(tester.sh) on the controller, which finds the RDMA devices of the rails.
    type: path
  host_network:
    description: Run privileged on the host network and use the RDMA devices of the hosts.
    type: bool
    default: false
  gpu_resource:
    description: Resource with which a pod requests all GPUs of its node.
    type: str
    default: nvidia.com/gpu
  cpu:
    description: CPU request of a pod, as a Kubernetes quantity.
    type: str
    default: "4"
  timeout:
    description: Maximum time in seconds to wait until the pods of a group run.
    type: int
    default: 300
attributes:
  check_mode:
    details: Runs nothing and writes nothing.
  diff_mode:
    description: The module never reports a change.
    support: none
  idempotent:
    support: partial
    details: Never reports a change, but measures each time.
seealso:
  - module: gpufabric.rdma.fabric_plan
  - module: gpufabric.rdma.fabric_testers
  - name: Role nccl_validate
    description: The role that uses this module.
    link: https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/roles/nccl_validate.md
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Run collectives
  gpufabric.rdma.fabric_nccl:
    plan: "{{ rdma_plan }}"
    facts: "{{ dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, ['ansible_facts', 'rdma']))) }}"
    path: /srv/rdma-report
    run: nccl-20261123t013000z
    image: registry.example.com/gpufabric-tester@sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef
    script: files/nccl.sh
    tester_script: files/tester.sh
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
verdict:
  description: V(pass), V(fail) or V(no_data). Not returned in check mode.
  returned: success
  type: str
  sample: pass
text:
  description: The lines of the table.
  returned: success
  type: list
  elements: str
  sample: ["NCCL: pass"]
findings:
  description: Where to look, one sentence each.
  returned: success
  type: list
  elements: str
  sample: []
summary:
  description: Summary of the report with the collectives, as M(gpufabric.rdma.fabric_report) returns it.
  returned: if O(path) has a report of these hosts
  type: dict
path:
  description: Directory of the report with the collectives.
  returned: if O(path) has a report of these hosts
  type: str
requests:
  description: Number of requests sent to the API server.
  returned: success
  type: int
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import FabricError, InputError
from ..module_utils._controller import joined_report, report_folder, text_files
from ..module_utils._fabric.measure.nccl import judge
from ..module_utils._fabric.measure.nccl.output import parse
from ..module_utils._fabric.measure.nccl.units import collectives
from ..module_utils._fabric.plan.traffic import require_one
from ..module_utils._fabric.report import busy
from ..module_utils._fabric.report import collectives as joined
from ..module_utils._fabric.report import nccl as report
from ..module_utils._k8s.checks import access
from ..module_utils._k8s.client.connection import AUTH_SPEC, connect
from ..module_utils._k8s.client.poll import Clock
from ..module_utils._k8s.testers import nccl
from ..module_utils._k8s.testers.pod_options import POD_SPEC

SPEC: dict[str, Any] = {
    **POD_SPEC,
    "state": {"type": "str", "choices": ["measured", "begun"], "default": "measured"},
    "plan": {"type": "dict"},
    "facts": {"type": "dict"},
    "busy_hosts": {"type": "raw", "default": False},
    "limit": {"type": "list", "elements": "str", "default": []},
    "path": {"type": "path", "required": True},
    "run": {"type": "str", "required": True},
    "wait": {"type": "int", "default": 120},
    "image": {"type": "str"},
    "script": {"type": "path"},
    "tester_script": {"type": "path"},
    "host_network": {"type": "bool", "default": False},
    "gpu_resource": {"type": "str", "default": "nvidia.com/gpu"},
    "cpu": {"type": "str", "default": "4"},
    "timeout": {"type": "int", "default": 300},
}
NEEDS = [("state", "measured", ["plan", "facts", "image", "script", "tester_script"])]
# What the testers of fabric_testers need beside; the Lease is theirs.
TESTERS = {"name": "gpufabric-testers", "lifetime": 1, "idle": 0, "slot_margin": 0, "cpus": 0}
# As node-exporter reads the metrics of the measurement.
MODES = {"nccl.prom": 0o644}


def write(params: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    """Write the files of a report, and add it to the report of the rails, of which is returned what the module returns."""
    folder = params["path"]
    try:
        os.makedirs(folder, exist_ok=True)
        for name, text in report.files(made).items():
            text_files.write(os.path.join(folder, name), text, MODES.get(name, report_folder.MODE))
    except OSError as error:
        raise InputError(f"report: cannot write to {folder}: {error.strerror}. Choose another path") from None
    if params["state"] == "begun":
        # The report of the rails is still that of an earlier run.
        return {}
    return joined_report.write(folder, made, params["limit"] or params["plan"]["endpoints"]["pod"])


def measured(api: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Return the report of a run."""
    require_one(params["plan"])
    excluded = busy.left_out(params["plan"], params["facts"], params["busy_hosts"])
    plan, what = {**params["plan"], "excluded": excluded}, collectives(params["plan"])
    rails = joined_report.of_rails(params["path"])
    verbs = {"verdict": joined.of_rails(rails), "run": (rails.get("run") or {}).get("id", "")} if rails else {}
    ran, problems = nccl.measured(api, {**params, "plan": plan}, clock=Clock())
    results = []
    for one in ran:
        reasons = "; ".join(f"{host}: {why}" for host, why in one.problems.items())
        if reasons:
            results += judge.unmeasured(one.unit, what, reasons)
        else:
            pods = {host: parse(text) for host, text in one.output.items()}
            results += judge.judge(plan, one.unit, what, pods=pods, gpus=one.gpus)
    return report.build(results, verbs=verbs, run=params["run"], left_out={**problems, **excluded})


def shown(made: dict[str, Any]) -> dict[str, Any]:
    """Return what the module returns of a report."""
    return {"verdict": made["verdict"], "findings": made["findings"], "text": report.text(made).splitlines()}


def main() -> None:
    """Run the collectives of the plan."""
    module = AnsibleModule(argument_spec={**AUTH_SPEC, **SPEC}, required_if=NEEDS, supports_check_mode=True)
    params = module.params
    given = {**params, **TESTERS, "evidence": params["path"]}
    invocation = {"module_args": {key: params[key] for key in ("limit", "namespace", "path", "run")}}
    if module.check_mode:
        module.exit_json(changed=False, invocation=invocation)
    both: dict[str, Any] = {}
    try:
        made = report.started(params["run"])
        both = write(params, made)
        if params["state"] == "begun":
            module.exit_json(changed=False, invocation=invocation, **shown(made))
        access.refuse_impersonation(params)
        api = connect(module)
        both = write(params, made := measured(api, given))
    except FabricError as error:
        module.fail_json(msg=f"fabric_nccl: {error}", invocation=invocation, **both)
    module.exit_json(changed=False, requests=api.requests, invocation=invocation, **shown(made), **both)


if __name__ == "__main__":
    main()
