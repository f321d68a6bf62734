#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_testers
short_description: Run the testers of a fabric in pods
version_added: "0.1.0"
description:
  - O(state=started) starts one tester a node as an Indexed Job in a namespace of its own, waits until the pods run or says why not, and
    keeps what each says of its rails.
  - O(state=played) hands every tester its lines by one short exec, waits until the announced end of the pass, and brings the logs back.
  - O(state=absent) removes everything of O(run), or of all runs.
  - Testers of tests with huge pages ask for as many as perftest takes, those of GPU memory for the GPUs of their node. A node that cannot give
    that gets no tester.
  - An endpoint with a problem stops nobody else. The reason is returned, and kept as C(NAME.error) beside the logs of the others.
notes:
  - Never reports a change. What it starts it takes away again, and measuring changes nothing.
  - One run at a time measures in a cluster. With O(run) a Lease in O(namespace) says which one. It is renewed every 10 seconds during a step,
    and valid for 45 seconds and 0.2 seconds for each endpoint, which covers the time between two steps. A run that was killed is taken
    over when its Lease has expired.
extends_documentation_fragment:
  - gpufabric.rdma.cluster
options:
  state:
    description: Which step to do.
    type: str
    choices: [started, played, absent]
    required: true
  plan:
    description:
      - The plan, as returned by M(gpufabric.rdma.fabric_plan); needed for O(state=started). A host's Node is found by its machine id,
        unless the plan names it.
    type: dict
  limit:
    description: Only these endpoints of the plan; all of them when empty.
    type: list
    elements: str
    default: []
  evidence:
    description:
      - Folder for the raw output, needed unless O(state=absent). C(describe/NAME.log) is what a tester said of itself,
        C(pass-N/NAME.log) what it printed in pass N, C(NAME.error) why there is no log or no more of it.
    type: path
  namespace:
    description: Namespace of the testers. It is made with the labels that pod security asks for, and removed if it was made by us.
    type: str
    default: gpufabric-validate
  run:
    description:
      - ID of the run, a label value of Kubernetes. All objects are labeled with it, pods are selected by it, and it holds the Lease.
      - O(state=absent) without it removes the testers of all runs.
      - O(state=started) and O(state=played) without it take no Lease, and would remove or use the testers of another run.
    type: str
    default: ""
  wait:
    description: Seconds that O(state=started) waits for another run that holds the Lease.
    type: int
    default: 120
  name:
    description: Name of the Job, its ConfigMap and the Lease.
    type: str
    default: gpufabric-testers
  image:
    description: Image of the testers, needed for O(state=started). It has sh, coreutils and perftest.
    type: str
  image_pull_policy:
    description: When to pull the image.
    type: str
    choices: [Always, IfNotPresent, Never]
    default: IfNotPresent
  image_pull_secret:
    description: Name of a pull secret in O(namespace), which must be there before.
    type: str
  script:
    description: Path of the tester script on the controller, needed for O(state=started).
    type: path
  host_network:
    description:
      - Run privileged on the hosts' network and measure the hosts' own RDMA devices (where RDMA cannot be in pods).
      - Without it a tester asks for the secondary network and the RDMA resource of every rail.
    type: bool
    default: false
  tolerations:
    description: Tolerations of the pods.
    type: list
    elements: dict
    default: []
  runtime_class:
    description: RuntimeClass of the pods.
    type: str
  gpu_resource:
    description:
      - Resource by which a tester asks for all GPUs of its node when the plan's tests use their memory. All, since of fewer the device plugin
        chooses, and not by what is next to the rails.
      - When empty, nothing is asked for, and C(NVIDIA_VISIBLE_DEVICES=all) asks the runtime class to show all.
    type: str
    default: nvidia.com/gpu
  lifetime:
    description:
      - Seconds after which a tester is ended whatever happens.
      - By default 4 hours, and twice the announced worst case of O(plan) with all retries.
    type: int
  slot_margin:
    description: Seconds that a slot is longer than the measurement in it at most, as for M(gpufabric.rdma.fabric_judge).
    type: int
    default: 6
  cpu:
    description: CPU that a tester requests, as a Kubernetes quantity. It has no CPU limit, since throttling would be measured.
    type: str
    default: 100m
  idle:
    description: Seconds without lines after which a tester ends itself.
    type: int
    default: 900
  timeout:
    description: Seconds to wait until pods run, or until they are gone.
    type: int
    default: 180
  pass:
    description: Number of the pass, from 1; needed for O(state=played), as are O(lines), O(slot) and O(seconds).
    type: int
  lines:
    description: Schedule lines by endpoint, each list closed by C(END count), as returned by M(gpufabric.rdma.fabric_judge).
    type: dict
  slot:
    description: Seconds of a round.
    type: int
  seconds:
    description: Seconds from the first round to the end of the pass.
    type: int
  start_in:
    description:
      - Seconds from the first line handed out to the first round. It is more when there are so many endpoints, or handing out lines
        takes so long in this cluster, that they would not all have theirs in time.
    type: int
    default: 0
attributes:
  check_mode:
    details: Nothing is measured, so nothing is written to O(evidence).
  diff_mode:
    description: Nothing changes, so there is no difference.
    support: none
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Start the testers
  gpufabric.rdma.fabric_testers:
    state: started
    plan: "{{ rdma_plan }}"
    evidence: /tmp/evidence/pod
    image: registry.example.com/perftest@sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef
    script: files/tester.sh
  delegate_to: localhost
  run_once: true

- name: Play a pass
  gpufabric.rdma.fabric_testers:
    state: played
    evidence: /tmp/evidence/pod
    pass: "{{ judged['pass'] }}"
    lines: "{{ judged.lines }}"
    slot: "{{ judged.slot }}"
    seconds: "{{ judged.seconds }}"
  delegate_to: localhost
  run_once: true

- name: Remove the testers
  gpufabric.rdma.fabric_testers:
    state: absent
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
endpoints:
  description: Node of every endpoint that was asked for and has one that can give what a tester needs.
  returned: O(state=started) or O(state=played)
  type: dict
  sample: {gpu-1: node-a}
cluster:
  description:
    - The cluster, with C(name) (in the kubeconfig), C(server) (URL of the API server) and C(version); empty text for what is unknown.
    - It is empty when the API server did not answer. It is returned also when the testers could not be started.
  returned: O(state=started)
  type: dict
  sample: {name: lab, server: "https://10.0.0.1:6443", version: v1.35.4}
problems:
  description: Endpoints without a tester or without a complete log, and why.
  returned: O(state=started) or O(state=played)
  type: dict
  sample: {gpu-2: "no tester on node node-b: pod gpufabric-testers-1-x2v cannot be scheduled: 0/3 nodes are available"}
start_in:
  description: Seconds from the first line handed out to the first round.
  returned: O(state=played)
  type: int
removed:
  description: What was there and was removed; in check mode what would be.
  returned: O(state=absent)
  type: list
  elements: str
requests:
  description: Number of requests sent to the API server.
  returned: success
  type: int
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import FabricError
from ..module_utils._k8s.checks import access, survey
from ..module_utils._k8s.client.connection import AUTH_SPEC, cluster_name, connect
from ..module_utils._k8s.client.poll import Clock
from ..module_utils._k8s.testers import steps as testers_steps

SPEC: dict[str, Any] = {
    "state": {"type": "str", "choices": ["started", "played", "absent"], "required": True},
    "plan": {"type": "dict"},
    "limit": {"type": "list", "elements": "str", "default": []},
    "evidence": {"type": "path"},
    "namespace": {"type": "str", "default": "gpufabric-validate"},
    "run": {"type": "str", "default": ""},
    "wait": {"type": "int", "default": 120},
    "name": {"type": "str", "default": "gpufabric-testers"},
    "image": {"type": "str"},
    "image_pull_policy": {"type": "str", "choices": ["Always", "IfNotPresent", "Never"], "default": "IfNotPresent"},
    "image_pull_secret": {"type": "str", "no_log": False},
    "script": {"type": "path"},
    "host_network": {"type": "bool", "default": False},
    "tolerations": {"type": "list", "elements": "dict", "default": []},
    "runtime_class": {"type": "str"},
    "gpu_resource": {"type": "str", "default": "nvidia.com/gpu"},
    "lifetime": {"type": "int"},
    "slot_margin": {"type": "int", "default": 6},
    "cpu": {"type": "str", "default": "100m"},
    "idle": {"type": "int", "default": 900},
    "timeout": {"type": "int", "default": 180},
    "pass": {"type": "int", "no_log": False},
    "lines": {"type": "dict"},
    "slot": {"type": "int"},
    "seconds": {"type": "int"},
    "start_in": {"type": "int", "default": 0},
}
NEEDS = [
    ("state", "started", ["plan", "evidence", "image", "script"]),
    ("state", "played", ["evidence", "pass", "lines", "slot", "seconds"]),
]
STEPS = {"started": testers_steps.started, "played": testers_steps.played, "absent": testers_steps.absent}


def note_requests(folder: str, requests: int) -> None:
    """Add a line to the file from which fabric_judge sums up what the transport cost the API server."""
    if os.path.isdir(folder):
        with open(os.path.join(folder, "requests"), "a", encoding="utf-8") as file:
            file.write("%d\n" % requests)


def main() -> None:
    """Do one step of the transport."""
    module = AnsibleModule(argument_spec={**AUTH_SPEC, **SPEC}, required_if=NEEDS, supports_check_mode=True)
    # Plan and lines of a whole fleet must not come back with the result.
    invocation = {"module_args": {key: module.params[key] for key in ("state", "namespace", "name", "limit")}}
    cluster: dict[str, str] = {}
    try:
        if module.params["state"] != "absent":
            access.refuse_impersonation(module.params)
        api = connect(module)
        if module.params["state"] == "started":
            cluster = survey.cluster(api, cluster_name(module.params))
        result = STEPS[module.params["state"]](api, module.params, module.check_mode, Clock())
    except FabricError as error:
        module.fail_json(msg=f"fabric_testers: {error}", cluster=cluster, invocation=invocation)
    if module.params["evidence"] and not module.check_mode:
        note_requests(module.params["evidence"], api.requests)
    module.exit_json(changed=False, requests=api.requests, cluster=cluster, invocation=invocation, **result)


if __name__ == "__main__":
    main()
