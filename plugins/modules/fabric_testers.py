#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_testers
short_description: Run fabric testers in pods
version_added: "0.1.0"
description:
  - O(state=started) starts one tester per node as an Indexed Job in a dedicated namespace, waits until the pods run, and stores the rail
    description that each tester prints.
  - O(state=played) sends the schedule lines to each tester with one short exec, waits until the pass ends, and fetches the logs.
  - O(state=absent) removes all objects of O(run), or of all runs.
  - Testers request the huge pages that perftest needs, and the GPUs of their node for tests with GPU memory. Nodes that cannot provide
    these resources get no tester.
  - A problem on one endpoint does not affect the others. The reason is returned and stored as C(NAME.error) next to the logs.
notes:
  - Never reports a change, because all created objects are removed again and measuring changes nothing.
  - Only one run can measure in a cluster at a time. With O(run), a Lease in O(namespace) identifies it. The Lease is renewed every 10
    seconds during a step and is valid for 45 seconds plus 0.2 seconds per endpoint, which covers the time between two steps. After a run
    was killed, the next run takes over when the Lease has expired.
extends_documentation_fragment:
  - gpufabric.rdma.cluster
  - gpufabric.rdma.pods
options:
  state:
    description: Step to perform.
    type: str
    choices: [started, played, absent]
    required: true
  plan:
    description:
      - The plan, as returned by M(gpufabric.rdma.fabric_plan). Required for O(state=started). Nodes are identified by machine ID unless
        the plan contains the node name.
    type: dict
  limit:
    description: Restrict the step to these endpoints of the plan. An empty list means all endpoints.
    type: list
    elements: str
    default: []
  evidence:
    description:
      - Directory for the raw output. Required unless O(state=absent). C(describe/NAME.log) is the self-description of a tester,
        C(pass-N/NAME.log) its output in pass N, and C(NAME.error) the reason for a missing or incomplete log.
    type: path
  run:
    description:
      - ID of the run, a valid Kubernetes label value. It labels all objects, selects the pods and holds the Lease.
      - Without it, O(state=absent) removes the testers of all runs.
      - Without it, O(state=started) and O(state=played) take no Lease, and may remove or use the testers of another run.
    type: str
    default: ""
  wait:
    description: Maximum time in seconds that O(state=started) waits for a Lease held by another run.
    type: int
    default: 120
  name:
    description: Name of the Job, its ConfigMap and the Lease.
    type: str
    default: gpufabric-testers
  image:
    description: Image of the testers, with sh, coreutils and perftest. Required for O(state=started).
    type: str
  script:
    description: Path of the tester script on the controller. Required for O(state=started).
    type: path
  host_network:
    description:
      - Run privileged on the host network and measure the RDMA devices of the hosts. Use this if pods cannot use RDMA.
      - By default, a tester requests the secondary network and the RDMA resource of every rail.
    type: bool
    default: false
  gpu_resource:
    description:
      - Resource with which a tester requests all GPUs of its node if the tests use GPU memory. It requests all of them because the device
        plugin does not select GPUs by their distance to the rails.
      - If empty, no GPUs are requested, and C(NVIDIA_VISIBLE_DEVICES=all) makes the runtime class expose all GPUs.
    type: str
    default: nvidia.com/gpu
  lifetime:
    description:
      - Maximum lifetime of a tester in seconds.
      - Defaults to 4 hours plus twice the worst case duration of O(plan) with all retries.
    type: int
  slot_margin:
    description: Maximum number of seconds by which a slot exceeds the measurement in it, as for M(gpufabric.rdma.fabric_judge).
    type: int
    default: 6
  cpu:
    description:
      - CPU request of a tester, as a Kubernetes quantity. No CPU limit is set, because throttling would distort the measurement.
      - Not used with O(cpus).
    type: str
    default: 100m
  cpus:
    description:
      - Number of whole CPUs of a tester. Requests and limits of CPU and memory are then the same (QoS class Guaranteed), so that a kubelet
        with the static CPU manager policy gives the tester cores of its own.
      - V(0) requests O(cpu) without a limit.
    type: int
    default: 0
  idle:
    description: Seconds without schedule lines after which a tester exits.
    type: int
    default: 900
  timeout:
    description: Maximum time in seconds to wait until pods run, or until they are gone.
    type: int
    default: 180
  pass:
    description: Number of the pass, starting at 1. Required for O(state=played), as are O(lines), O(slot) and O(seconds).
    type: int
  lines:
    description: Schedule lines per endpoint, as returned by M(gpufabric.rdma.fabric_judge). Each list ends with C(END count).
    type: dict
  slot:
    description: Duration of a round in seconds.
    type: int
  seconds:
    description: Seconds from the first round to the end of the pass.
    type: int
  start_in:
    description:
      - Minimum time in seconds from sending the first schedule line to the first round. It is extended if distributing the lines to all
        endpoints takes longer.
    type: int
    default: 0
  rounds:
    description: Number of rounds of the pass. With it, one line per minute shows how far the pass is.
    type: int
  verdicts:
    description: Number of tests by verdict in earlier passes, shown in that line.
    type: dict
attributes:
  check_mode:
    details: Measures nothing and writes nothing to O(evidence).
  diff_mode:
    description: The module never reports a change.
    support: none
  idempotent:
    support: partial
    details: Never reports a change, but V(played) measures each time.
seealso:
  - module: gpufabric.rdma.fabric_plan
  - module: gpufabric.rdma.fabric_judge
  - module: gpufabric.rdma.host_testers
  - name: Role rdma_validate
    description: The role that uses this module.
    link: https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/roles/rdma_validate.md
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

- name: Run a pass
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
  description: Node per selected endpoint, for nodes that provide the resources of a tester.
  returned: O(state=started) or O(state=played)
  type: dict
  sample: {gpu-1: node-a}
cluster:
  description:
    - The cluster, with C(name) (in the kubeconfig), C(server) (URL of the API server) and C(version). Unknown values are empty strings.
    - Empty if the API server did not respond. Also returned if the testers could not be started.
  returned: O(state=started)
  type: dict
  sample: {name: lab, server: "https://10.0.0.1:6443", version: v1.35.4}
problems:
  description: Reasons per endpoint without a tester or a complete log.
  returned: O(state=started) or O(state=played)
  type: dict
  sample: {gpu-2: "no tester on node node-b: pod gpufabric-testers-1-x2v cannot be scheduled: 0/3 nodes are available"}
start_in:
  description: Seconds from sending the first schedule line to the first round.
  returned: O(state=played)
  type: int
removed:
  description: The removed objects. In check mode, the objects that would be removed.
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
from ..module_utils._k8s.testers.pod_options import POD_SPEC

SPEC: dict[str, Any] = {
    **POD_SPEC,
    "state": {"type": "str", "choices": ["started", "played", "absent"], "required": True},
    "plan": {"type": "dict"},
    "limit": {"type": "list", "elements": "str", "default": []},
    "evidence": {"type": "path"},
    "run": {"type": "str", "default": ""},
    "wait": {"type": "int", "default": 120},
    "name": {"type": "str", "default": "gpufabric-testers"},
    "image": {"type": "str"},
    "script": {"type": "path"},
    "host_network": {"type": "bool", "default": False},
    "gpu_resource": {"type": "str", "default": "nvidia.com/gpu"},
    "lifetime": {"type": "int"},
    "slot_margin": {"type": "int", "default": 6},
    "cpu": {"type": "str", "default": "100m"},
    "cpus": {"type": "int", "default": 0},
    "idle": {"type": "int", "default": 900},
    "timeout": {"type": "int", "default": 180},
    "pass": {"type": "int", "no_log": False},
    "lines": {"type": "dict"},
    "slot": {"type": "int"},
    "seconds": {"type": "int"},
    "start_in": {"type": "int", "default": 0},
    "rounds": {"type": "int"},
    "verdicts": {"type": "dict"},
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
        result = STEPS[module.params["state"]](api, module.params, module.check_mode, clock=Clock())
    except FabricError as error:
        module.fail_json(msg=f"fabric_testers: {error}", cluster=cluster, invocation=invocation)
    if module.params["evidence"] and not module.check_mode:
        note_requests(module.params["evidence"], api.requests)
    module.exit_json(changed=False, requests=api.requests, cluster=cluster, invocation=invocation, **result)


if __name__ == "__main__":
    main()
