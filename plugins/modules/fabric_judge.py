#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_judge
short_description: Judge what was measured so far and say what to measure next
version_added: "0.1.0"
description:
  - One step of the measurement. Reads the plan and the raw logs collected so far, returns a verdict for every planned
    test, and the schedule lines of the next pass until there is nothing left to measure.
  - The first pass is the whole schedule, or the first rounds of one of six or more, which tell how long a slot must be. Later
    ones repeat what gave no data, at most C(rdma_fabric.tests.retries) times, then ask for the tests that locate the fault, at most
    C(rdma_fabric.tests.isolation) times.
  - Nothing is remembered and nothing is written. No data is never a pass.
  - Runs on the controller.
author:
  - Contributors to gpufabric.rdma (@gpufabric)
options:
  plan:
    description: The plan, as returned by M(gpufabric.rdma.fabric_plan).
    type: dict
    required: true
  where:
    description: Whose measurement is judged, that of the bare hosts or that of the pods.
    type: str
    choices: [host, pod]
    required: true
  evidence:
    description:
      - Folder with the raw output of the testers.
      - C(describe/NAME.log) is what a tester said of itself, C(pass-N/NAME.log) what it printed in pass N. A file
        C(NAME.error) in place of a log says why there is none.
      - The number of folders C(pass-N) tells how many passes were played.
    type: path
    required: true
  limit:
    description: Only these endpoints of the plan; all of them when empty.
    type: list
    elements: str
    default: []
  slot_margin:
    description:
      - Seconds that a slot is longer than the measurement in it at most, for start, retries and the guard. Passes after
        the first take what clean tests needed, when that is less. After late or timed-out tests a slot has one margin
        more, at most three margins.
    type: int
    default: 6
  only:
    description:
      - Named hosts (with all their partners), rails or pairs, in place of C(rdma_fabric.tests.only); a name that is not in
        this run is refused.
    type: dict
    default: {}
    suboptions:
      hosts:
        description: Only tests that one of these hosts takes part in.
        type: list
        elements: str
        default: []
      rails:
        description: Only tests on these rails.
        type: list
        elements: str
        default: []
      pairs:
        description: Only these pairs, each a list of two hosts, whatever the mode.
        type: list
        elements: list
        default: []
  resume:
    description:
      - Path of an earlier C(report.json), or the folder of a run that M(gpufabric.rdma.fabric_run) began and that did not
        end. What passed there is taken over when its ports can be measured today and are the same, it was measured with the
        same options, and its value passes today's rules. Everything else is measured, and RV(warnings_found) reports how
        much of it passed there, and why it is measured again.
    type: path
  hosts:
    description:
      - Machine id and ports of the hosts, as returned by M(gpufabric.rdma.fabric_run). Results are taken over only for ports
        that are the same as in the earlier report.
    type: dict
    default: {}
  failure:
    description:
      - Why the transport failed as a whole. It becomes the reason of all tests that were not played, and ends the
        measurement.
    type: str
    default: ""
attributes:
  check_mode:
    description: Can run in check mode and return what it would otherwise, since it changes nothing.
    support: full
  diff_mode:
    description: Nothing changes, so there is no difference.
    support: none
  platform:
    description: Where the module can run.
    platforms: posix
    support: full
"""

EXAMPLES = r"""
- name: Judge, and get the lines of the next pass
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
  description: Whether there is nothing left to measure.
  returned: always
  type: bool
pass:
  description: Number of the pass that RV(lines) are for; the last one played when RV(done).
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
  description: How long the next pass takes from its start.
  returned: always
  type: int
  sample: 96
worst:
  description: How long the next pass, what waits and all retries take at most, in seconds. Passes of isolation come on top.
  returned: always
  type: int
  sample: 396
lead:
  description: How many seconds later than usual the next pass should begin, since hosts missed the begin of an earlier one.
  returned: always
  type: int
  sample: 0
announce:
  description: What is measured next and how long it takes; empty when RV(done).
  returned: always
  type: str
  sample: >-
    pass 1 (schedule), mode all_pairs: 12 tests of write_bw in 6 rounds of 16 s, 1 min 36 s; with all retries at worst
    8 min 36 s beside the start of each pass, and up to 3 additional short passes to locate the fault
schedule:
  description: Mode, rounds, slot, seconds and passes, perftest's share of the slots, and how many seconds each host was late.
  returned: always
  type: dict
  sample: {where: host, mode: all_pairs, rounds: 6, slot: 16, seconds: 96, passes: 1, share: 0.75, lateness: {gpu-1: 0}, text: "..."}
links:
  description: Links that came up below what the card or the rest of their rail can do.
  returned: always
  type: list
  elements: dict
unsteady:
  description: Tests that failed and passed when they were repeated, by rail, port or pair, as C(thresholds.unsteady) judges them.
  returned: always
  type: list
  elements: dict
outliers:
  description: Tests that passed and are worse than the rest of their rail.
  returned: always
  type: list
  elements: dict
endpoints:
  description: The ports that are measured - place, and machine id, device, rate, PCI address and firmware by host and rail.
  returned: always
  type: dict
  sample: {where: host, hosts: {gpu-1: {rail0: {machine_id: 8d1f, pci: "0000:18:00.0", device: mlx5_0, rate: 400 Gb/sec, firmware: 28.43.2026}}}}
lines:
  description: Schedule lines by endpoint, each list closed by C(END count).
  returned: always
  type: dict
  sample: {"gpu-1": ["0 rail0 client 192.168.0.2 18500 write_bw -F -D 10", "END 1"]}
results:
  description: One result for every planned pair, rail and direction.
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
  description: Verdict of all, counts, one row per rail, and C(blames) - whom the failures point at, with evidence and the commands to repeat it.
  returned: always
  type: dict
warnings_found:
  description: What was noticed and changes no verdict.
  returned: always
  type: list
  elements: str
requests:
  description: Requests to the API server that the transport made, from the lines of C(requests) in the evidence folder.
  returned: always
  type: int
"""

import gc
import json
import os

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import FabricError, InputError
from ..module_utils._fabric.measure.judge import earlier
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
    return Evidence(read_folder(described, ".log"), read_folder(described, ".error"), tuple(passes), failure)


def read_json(path: str) -> dict:
    """Return a JSON file of an earlier run."""
    try:
        with open(path, encoding="utf-8") as file:
            return dict(json.load(file))
    except OSError as exc:
        raise InputError(
            "resume: cannot read %s: %s; give the report.json or folder of an earlier run" % (path, exc.strerror)
        ) from exc


def read_earlier(path: str | None, where: str) -> dict | None:
    """Return what an earlier run measured, by its report.json or folder; None without a path."""
    if not path:
        return None
    file = os.path.join(path, "report.json") if os.path.isdir(path) else path
    try:
        if file == path or os.path.isfile(file):
            return earlier.of_report(read_json(file))
        run, plan = (read_json(os.path.join(path, name)) for name in ("run.json", "plan.json"))
        evidence = read_evidence(os.path.join(path, "evidence", where), "the run did not end")
        return earlier.of_run(run, plan, where, evidence, read_earlier(run["earlier"].get("resume"), where))
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise InputError(
            "resume: %s is neither a report.json nor a run folder of this collection; give one of an earlier run" % path
        ) from exc


def judge(params: dict) -> dict:
    """Return the next step as the module returns it."""
    found = step(
        params["plan"],
        params["where"],
        read_evidence(params["evidence"], params["failure"]),
        params["limit"],
        params["slot_margin"],
        earlier.checked(params["only"]),
        read_earlier(params["resume"], params["where"]),
        params["hosts"],
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
