#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_judge
short_description: Evaluate measurement results and schedule the next pass
version_added: "0.1.0"
description:
  - Performs one step of the measurement. Reads the plan and the raw logs collected so far, and returns a verdict for every planned
    test and the schedule lines of the next pass.
  - The first pass runs the whole schedule. A schedule of six or more rounds starts with a trial pass of its first rounds, which determines
    the slot length.
  - Later passes repeat tests without data, at most C(rdma_fabric.tests.retries) times, and then run tests that locate the fault, at most
    C(rdma_fabric.tests.isolation) times.
  - The module keeps no state and writes nothing. A test without data never passes.
  - Runs on the controller.
extends_documentation_fragment:
  - gpufabric.rdma.controller
seealso:
  - module: gpufabric.rdma.fabric_plan
  - module: gpufabric.rdma.fabric_run
  - module: gpufabric.rdma.fabric_report
  - name: Role rdma_validate
    description: The role that uses this module.
    link: https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/roles/rdma_validate.md
author:
  - Contributors to gpufabric.rdma (@gpufabric)
options:
  plan:
    description: The plan, as returned by M(gpufabric.rdma.fabric_plan).
    type: dict
    required: true
  where:
    description: Whether to evaluate the measurement on the hosts or the one in pods.
    type: str
    choices: [host, pod]
    required: true
  evidence:
    description:
      - Directory with the raw output of the testers.
      - C(describe/NAME.log) is the self-description of a tester, and C(pass-N/NAME.log) its output in pass N. If a log is missing, a file
        C(NAME.error) contains the reason.
      - The number of C(pass-N) directories is the number of completed passes.
      - C(ports-before/HOST.log) and C(ports-after/HOST.log) show the ports of the hosts, for a measurement in pods.
    type: path
    required: true
  limit:
    description: Restrict the evaluation to these endpoints of the plan. An empty list means all endpoints.
    type: list
    elements: str
    default: []
  slot_margin:
    description:
      - Maximum number of seconds by which a slot exceeds the measurement in it, for startup, retries and guard time. Later passes use
        the time that clean tests needed, if that is less. Late or timed-out tests add one margin to the slot, up to three margins.
      - With tests from GPU memory, 12 seconds are added to the margin for the start of CUDA.
    type: int
    default: 6
  only:
    description:
      - Hosts (with all their partners), rails or pairs to measure. Overrides C(rdma_fabric.tests.only). Names that are not part of
        this run are rejected.
    type: dict
    default: {}
    suboptions:
      hosts:
        description: Run only tests that involve one of these hosts.
        type: list
        elements: str
        default: []
      rails:
        description: Run only tests on these rails.
        type: list
        elements: str
        default: []
      pairs:
        description: Run only these pairs, each a list of two hosts, regardless of the test mode.
        type: list
        elements: list
        default: []
  resume:
    description:
      - Path of an earlier C(report.json), or the directory of an unfinished run of M(gpufabric.rdma.fabric_run).
      - A passed result is reused if its ports are unchanged and available, it was measured with the same options, and its value passes the
        current rules. All other tests are measured again. RV(warnings_found) reports how many of them had passed and why they are repeated.
    type: path
  hosts:
    description:
      - Machine ID and ports of the hosts, as returned by M(gpufabric.rdma.fabric_run). Results are reused only for ports
        that are unchanged since the earlier report.
    type: dict
    default: {}
  failure:
    description:
      - Reason why the transport failed as a whole. It becomes the reason of all tests that did not run, and ends the
        measurement.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Evaluate the results and get the schedule of the next pass
  gpufabric.rdma.fabric_judge:
    plan: "{{ rdma_plan }}"
    where: host
    evidence: "{{ playbook_dir }}/report/evidence/host"
  delegate_to: localhost
  run_once: true
  register: step
"""

RETURN = r"""
done:
  description: Whether the measurement is complete.
  returned: always
  type: bool
pass:
  description: Number of the pass that RV(lines) describes, or of the last pass if RV(done) is true.
  returned: always
  type: int
  sample: 1
slot:
  description: Length of a slot in seconds.
  returned: always
  type: int
  sample: 16
rounds:
  description: Number of rounds of the next pass.
  returned: always
  type: int
  sample: 6
seconds:
  description: Duration of the next pass in seconds.
  returned: always
  type: int
  sample: 96
worst:
  description: Maximum duration of the remaining passes in seconds, with all retries and all rounds that failures can add.
  returned: always
  type: int
  sample: 4044
lead:
  description: Additional seconds to wait before the next pass, because hosts missed the start of an earlier one.
  returned: always
  type: int
  sample: 0
announce:
  description: What the next pass measures and how long it takes; empty if RV(done) is true.
  returned: always
  type: str
  sample: >-
    pass 1 (schedule), mode all_pairs: 12 tests of write_bw in 6 rounds of 16 s, 1 min 36 s; with all retries at worst
    8 min 36 s beside the start of each pass; failures add up to 36 rounds to locate faults and up to 90 rounds (budget
    standard) for ports that read low intermittently, at worst 58 min 48 s
schedule:
  description: Mode, rounds, slot, seconds, passes, the share of perftest in the slots, and the lateness of each host in seconds.
  returned: always
  type: dict
  sample: {where: host, mode: all_pairs, rounds: 6, slot: 16, seconds: 96, passes: 1, share: 0.75, lateness: {gpu-1: 0}, text: "..."}
links:
  description: Links that run below the capability of the NIC or the rest of their rail.
  returned: always
  type: list
  elements: dict
unsteady:
  description: Ports, hosts, paths and rails with low readings of which other readings pass, evaluated by C(thresholds.unsteady).
  returned: always
  type: list
  elements: dict
unmeasured:
  description:
    - Ports of the run without any test, with the reason. Their NIC is missing, their host is left out, or no other host of their class can
      be measured. They count as no_data.
  returned: always
  type: list
  elements: dict
  sample: [{where: host, host: gpu-3, rail: rail2, reason: "it has no port 0000:38:00.0"}]
outliers:
  description: Tests that passed but are worse than the rest of their rail.
  returned: always
  type: list
  elements: dict
endpoints:
  description: The measured ports, with machine ID, device, rate, PCI address and firmware by host and rail.
  returned: always
  type: dict
  sample: {where: host, hosts: {gpu-1: {rail0: {machine_id: 8d1f, pci: "0000:18:00.0", device: mlx5_0, rate: 400 Gb/sec, firmware: 28.43.2026}}}}
lines:
  description: Schedule lines per endpoint. Each list ends with C(END count).
  returned: always
  type: dict
  sample: {"gpu-1": ["0 rail0 client 192.168.0.2 18500 write_bw -F -D 10", "END 1"]}
results:
  description: One result per planned pair, rail and direction.
  returned: always
  type: list
  elements: dict
  sample:
    - where: host
      rail: rail0
      client: gpu-1
      server: gpu-2
      test: write_bw
      value: 97.9
      unit: Gb/s
      expected: 93.1
      bound_by: link
      verdict: pass
      reason: ""
      passes: [{"pass": 1, "value": 97.9, "verdict": "pass", "reason": ""}]
summary:
  description: Overall verdict, counts, one row per rail, and C(diagnoses) - the suspected causes, with evidence and the commands to reproduce them.
  returned: always
  type: dict
verdicts:
  description: Number of tests by verdict in the passes so far. A test that is measured again can still change.
  returned: always
  type: dict
  sample: {"pass": 118, "fail": 2}
warnings_found:
  description: Warnings that do not affect the verdict.
  returned: always
  type: list
  elements: str
requests:
  description: Number of API server requests made by the transport, as recorded in C(requests) in the evidence directory.
  returned: always
  type: int
"""

import gc
import os

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import FabricError, InputError
from ..module_utils._controller import earlier_reports
from ..module_utils._fabric.measure.judge import earlier
from ..module_utils._fabric.measure.judge.earlier_report import EarlierReport
from ..module_utils._fabric.measure.judge.step import step
from ..module_utils._fabric.measure.readings.tester_log import LARGEST_FILE, Evidence, Pass

ARGUMENT_SPEC = {
    "plan": {"type": "dict", "required": True},
    "where": {"type": "str", "choices": ["host", "pod"], "required": True},
    "evidence": {"type": "path", "required": True},
    "limit": {"type": "list", "elements": "str", "default": []},
    "slot_margin": {"type": "int", "default": 6},
    "only": {
        "type": "dict",
        "default": {},
        "options": {
            "hosts": {"type": "list", "elements": "str", "default": []},
            "rails": {"type": "list", "elements": "str", "default": []},
            "pairs": {"type": "list", "elements": "list", "default": []},
        },
    },
    "resume": {"type": "path"},
    "hosts": {"type": "dict", "default": {}},
    "failure": {"type": "str", "default": ""},
}

_ACTION = f"Give the {earlier_reports.RESUMABLE} of an earlier run"


def read_folder(folder: str, suffix: str) -> dict[str, str]:
    """Return the content of the files with a suffix by their name without it; empty for a missing folder."""
    found = {}
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if name.endswith(suffix):
            # What a dying tester wrote need not be text to its end.
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                found[name[: -len(suffix)]] = file.read(LARGEST_FILE)
    return found


def count_requests(folder: str) -> int:
    """Return the sum of the numbers in the file ``requests``, one a line; 0 without the file."""
    path = os.path.join(folder, "requests")
    if not os.path.isfile(path):
        return 0
    with open(path, encoding="utf-8") as file:
        return sum(int(line) for line in file if line.strip().isdigit())


def read_evidence(folder: str, failure: str) -> Evidence:
    """Return what the evidence folder holds; passes are counted without a gap from 1."""
    passes: list[Pass] = []
    while os.path.isdir(os.path.join(folder, f"pass-{len(passes) + 1}")):
        played = os.path.join(folder, f"pass-{len(passes) + 1}")
        passes.append(Pass(read_folder(played, ".log"), read_folder(played, ".error")))
    described = os.path.join(folder, "describe")
    # Only of pods, whose testers do not see the ports of their hosts.
    ports = [os.path.join(folder, f"ports-{when}") for when in ("before", "after")]
    read = tuple(read_folder(path, ".log") for path in ports) if all(map(os.path.isdir, ports)) else ()
    return Evidence(read_folder(described, ".log"), read_folder(described, ".error"), tuple(passes), failure, read)


def read_earlier(path: str | None, where: str, seen: tuple[str, ...] = ()) -> EarlierReport | None:
    """Return what an earlier run measured, by its report.json or folder; None without a path.

    ``seen``: the runs that resumed this one, of which it cannot be one.
    """
    if not path:
        return None
    file = os.path.join(path, "report.json") if os.path.isdir(path) else path
    if file == path or os.path.isfile(file):
        return earlier_reports.read("resume", file, earlier_reports.RESUMABLE)
    folder = os.path.realpath(path)
    if folder in seen:
        raise InputError(f"resume: {path} is a run folder that resumes itself. {_ACTION}")
    return read_run(path, where, (*seen, folder))


def read_run(folder: str, where: str, seen: tuple[str, ...]) -> EarlierReport:
    """Return what a run without a report measured, by its folder."""
    try:
        run, plan = (earlier_reports.read_part(folder, name) for name in ("run.json", "plan.json"))
        resumed = read_earlier(run["earlier"].get("resume"), where, seen)
        evidence = read_evidence(os.path.join(folder, "evidence", where), "the run did not end")
        return earlier.of_run(run, plan, where, folder=folder, evidence=evidence, resumed=resumed)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise InputError(
            f"resume: {folder} has no report.json and is not a run folder of this collection: run.json or plan.json is"
            f" damaged. {_ACTION}"
        ) from exc


def judge(params: dict) -> dict:
    """Return the next step as the module returns it."""
    found = step(
        params["plan"],
        params["where"],
        read_evidence(params["evidence"], params["failure"]),
        limit=params["limit"],
        slot_margin=params["slot_margin"],
        only=earlier.checked(params["only"]),
        earlier=read_earlier(params["resume"], params["where"]),
        hosts=params["hosts"],
    ).to_dict()
    # "warnings" is Ansible's own key.
    found["warnings_found"] = found.pop("warnings")
    return found


def main() -> None:
    # Results of a big fleet are millions of objects without cycles: to look for some again and again takes a tenth of
    # the time. The process ends soon.
    gc.disable()
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    try:
        found = judge(module.params)
    except FabricError as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(changed=False, requests=count_requests(module.params["evidence"]), **found)


if __name__ == "__main__":
    main()
