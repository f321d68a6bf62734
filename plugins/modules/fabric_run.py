#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_run
short_description: Start and finish a measurement run
version_added: "0.1.0"
description:
  - V(decided) decides whether to measure, and returns the scope of the run.
  - V(begun) assigns an ID and a directory to the run, C(runs/ID) in O(path). The report of an earlier run is moved to the directory of
    that run. Interrupted runs that have results but no report are kept.
  - V(ended) fails unless the report in O(path) belongs to the run, or a later run has archived the report of this one.
  - V(reopened) returns what a run without a report was to measure, so that the results it has can be judged.
  - Runs on the controller. Creating a report directory is never reported as a change.
extends_documentation_fragment:
  - gpufabric.rdma.controller
seealso:
  - module: gpufabric.rdma.fabric_judge
  - module: gpufabric.rdma.fabric_report
  - module: gpufabric.rdma.report_folder
  - name: Role rdma_validate
    description: The role that uses this module.
    link: https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/roles/rdma_validate.md
author:
  - Contributors to gpufabric.rdma (@gpufabric)
options:
  state:
    description: Step of the run to perform.
    type: str
    choices: [decided, begun, ended, reopened]
    required: true
  path:
    description: Directory of the report.
    type: path
    required: true
  plan:
    description: The plan, as returned by M(gpufabric.rdma.fabric_plan). Required for V(decided) and V(begun).
    type: dict
  facts:
    description:
      - Current facts by host name, each the value of C(ansible_facts.rdma). For V(decided).
      - Hosts without facts are always measured.
    type: dict
    default: {}
  play:
    description: Hosts of the play. It is an error if O(plan) has no endpoint for one of them. For V(decided).
    type: list
    elements: str
    default: []
  when:
    description:
      - V(changed) skips the measurement if the last report has the verdict pass and the same scope, plan, versions and port state.
        For V(decided).
    type: str
    choices: [always, changed, never]
    default: always
  where:
    description: Whether to measure on hosts, in pods, or both. For V(decided).
    type: list
    elements: str
    choices: [host, pod]
    default: [host, pod]
  only:
    description: Hosts, rails or pairs to measure. An empty dictionary selects everything. For V(decided).
    type: dict
    default: {}
  limit:
    description: Value of C(--limit) of the playbook run. For V(decided).
    type: str
    default: ""
  image:
    description: Image of the testers. For V(decided).
    type: str
    default: ""
  host_network:
    description: Whether testers in pods use the host network. For V(decided).
    type: bool
    default: false
  busy_hosts:
    description:
      - What to do with hosts on which RDMA queue pairs are open, or on which that cannot be read. V(false) refuses to measure, V(true)
        measures them, and V(exclude) leaves them out. For V(decided).
    type: raw
    default: false
  scope:
    description: RV(scope) returned by V(decided). For V(begun).
    type: dict
    default: {}
  hosts:
    description: RV(hosts) returned by V(decided). For V(begun).
    type: dict
    default: {}
  earlier:
    description:
      - Paths of earlier reports that the run needs, by a name of your choice. RV(earlier) returns their paths after reports have been
        moved. For V(begun).
    type: dict
    default: {}
  keep:
    description:
      - Number of finished runs to keep, 0 or more. A report without a run ID counts as one run. For V(begun).
      - Runs in progress, unfinished runs with at least one pass, and runs named in O(earlier) are never removed. The last 10 unfinished
        runs without a pass are kept. The module only removes directories that are named like a run, or that contain nothing but a
        report without a run ID.
    type: int
    default: 5
  process:
    description:
      - The measuring process, as returned by M(gpufabric.rdma.report_folder). Later runs use it to detect whether this run is still in
        progress. For V(begun).
    type: dict
    default: {}
  run:
    description: ID of the run. For V(ended) and V(reopened). Without it, V(reopened) selects the newest run that measured something.
    type: str
attributes:
  check_mode:
    description: Can run in check mode. V(decided) then decides not to measure, and nothing is written.
    support: full
  diff_mode:
    description: The module never reports a change.
    support: none
  idempotent:
    support: partial
    details: Never reports a change, but V(begun) creates a new run each time.
"""

EXAMPLES = r"""
- name: Decide whether to measure
  gpufabric.rdma.fabric_run:
    state: decided
    path: /srv/report
    plan: "{{ rdma_plan }}"
    when: changed
  register: decision

- name: Start the run
  gpufabric.rdma.fabric_run:
    state: begun
    path: /srv/report
    plan: "{{ rdma_plan }}"
    scope: "{{ decision.scope }}"
    hosts: "{{ decision.hosts }}"
  when: decision.measure
  register: begun
"""

RETURN = r"""
measure:
  description: Whether to measure.
  returned: O(state=decided)
  type: bool
text:
  description: Reason for the decision and findings, as text.
  returned: always
  type: list
  elements: str
  sample: ["rdma_validate_when is never; the last report is /srv/report/report.json: run 20261123T013000Z-3f9a2c, ended 2026-11-23 01:41 UTC, verdict pass"]
excluded:
  description: Hosts that a run leaves out by O(busy_hosts), with the reason. Set it as C(excluded) of the plan.
  returned: O(state=decided)
  type: dict
  sample: {gpu-7: "the host is in use or may be: 4 RDMA queue pairs are open (python3[4711])"}
unanswered:
  description:
    - Hosts without current facts, with the reason why no tester may start in a pod on them. Whether they are in use is unknown. Empty if
      O(busy_hosts) is V(true). Set it as C(unanswered) of the plan.
  returned: O(state=decided)
  type: dict
  sample: {gpu-8: "the host did not answer, so it is unknown whether it is in use"}
refused:
  description: Why a run must not begin by O(busy_hosts); empty if it may.
  returned: O(state=decided)
  type: str
scope:
  description: Scope of the run.
  returned: O(state=decided) and O(state=reopened)
  type: dict
  sample: {where: [host], hosts: [gpu-1, gpu-2], rails: [rail0], only: {}, limit: "", image: "", host_network: false, subset: ["pods not measured"]}
hosts:
  description: Machine ID, ports and versions of the hosts of the run.
  returned: O(state=decided) and O(state=reopened)
  type: dict
plan:
  description: The plan of the run.
  returned: O(state=reopened)
  type: dict
report:
  description: Directory for a report of what the run measured before it ended. The run has no report then, so it can be continued.
  returned: O(state=reopened)
  type: str
  sample: /srv/report/runs/20261123T013000Z-3f9a2c/so_far
run:
  description: ID of the run.
  returned: O(state=begun) and O(state=reopened)
  type: str
  sample: 20261123T013000Z-3f9a2c
folder:
  description: Directory of the run.
  returned: O(state=begun) and O(state=reopened)
  type: str
  sample: /srv/report/runs/20261123T013000Z-3f9a2c
started:
  description: Start time of the run, as Unix time.
  returned: O(state=begun) and O(state=reopened)
  type: int
ended:
  description: Time when the run wrote its last evidence, as Unix time.
  returned: O(state=reopened)
  type: int
earlier:
  description: The current paths of the reports in O(earlier).
  returned: O(state=begun) and O(state=reopened)
  type: dict
leftover:
  description:
    - The unfinished run whose logs may still be on the hosts. This is the run that C(resume) of O(earlier) names, otherwise the newest
      unfinished run. Empty if there is none.
    - C(pass) is its last pass on the hosts (0 for none), C(folder) the directory for the logs of that pass, C(hosts) the hosts without
      a complete log, C(ended) whether the run is known to have ended, and C(largest) the maximum size of a log in bytes.
  returned: O(state=begun)
  type: dict
  sample:
    run: 20261123T013000Z-3f9a2c
    pass: 2
    folder: /srv/report/runs/20261123T013000Z-3f9a2c/evidence/host/pass-2
    hosts: [gpu-1, gpu-2]
    ended: true
    largest: 327680
"""

import json
import os
import secrets
import shutil
import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import FabricError, InputError
from ..module_utils._controller import earlier_reports, unfinished
from ..module_utils._controller.report_folder import check_ended, leftover, read, read_runs, real, set_aside, size_of
from ..module_utils._fabric.measure.readings.identity import read_hosts
from ..module_utils._fabric.plan.traffic import require_one
from ..module_utils._fabric.report import busy, kept, runs

ARGUMENT_SPEC: dict[str, Any] = {
    "state": {"type": "str", "choices": ["decided", "begun", "ended", "reopened"], "required": True},
    "path": {"type": "path", "required": True},
    "plan": {"type": "dict"},
    **{name: {"type": "dict", "default": {}} for name in ("facts", "only", "scope", "hosts", "earlier", "process")},
    "play": {"type": "list", "elements": "str", "default": []},
    "when": {"type": "str", "choices": ["always", "changed", "never"], "default": "always"},
    "where": {"type": "list", "elements": "str", "choices": ["host", "pod"], "default": ["host", "pod"]},
    "limit": {"type": "str", "default": ""},
    "image": {"type": "str", "default": ""},
    "host_network": {"type": "bool", "default": False},
    "busy_hosts": {"type": "raw", "default": False},
    "keep": {"type": "int", "default": 5},
    "run": {"type": "str"},
}
NEEDS = [("state", state, [name]) for state, name in (("decided", "plan"), ("begun", "plan"), ("ended", "run"))]


def decided(params: dict[str, Any], check: bool) -> dict[str, Any]:
    """Return whether to measure, why, and what a run would cover."""
    runs.check_play(params["plan"], params["play"])
    path = os.path.join(params["path"], "report.json")
    report, problem = earlier_reports.find(path)
    last = runs.Last(path, report, problem, read(os.path.join(params["path"], "plan.json")))
    now = {"scope": runs.scope_of(params["plan"], params), "hosts": read_hosts(params["plan"], params["facts"])}
    today = {**now, "plan": params["plan"], "unread": [name for name in now["hosts"] if not params["facts"].get(name)]}
    measure, text = runs.decide("check mode" if check else params["when"], last, today)
    if measure:
        require_one(params["plan"])
    known = {name: own for name, own in params["facts"].items() if name not in params["plan"].get("absent", ())}
    excluded, refused = busy.decide(params["busy_hosts"], busy.busy(known))
    silent = busy.unanswered(params["busy_hosts"], now["scope"]["hosts"], [name for name, own in known.items() if own])
    out = {"excluded": excluded, "unanswered": silent, "refused": refused}
    return {"measure": measure, "text": text, **out, **now}


def begun(params: dict[str, Any], check: bool) -> dict[str, Any]:
    """Make the folder of a new run, and return it."""
    started = int(time.time())
    name = time.strftime("%Y%m%dT%H%M%SZ-", time.gmtime(started)) + secrets.token_hex(3)
    folder = os.path.join(params["path"], "runs", name)
    made = {"run": name, "folder": folder, "started": started, "earlier": params["earlier"], "text": []}
    if params["keep"] < 0:
        raise InputError(f"run: keep is {params['keep']}, expected 0 or more")
    if check:
        return {**made, "leftover": {}}
    check_ended(params["earlier"].get("resume"), params["process"])
    for parts in ((), ("evidence",), *(("evidence", where, "describe") for where in params["scope"].get("where", []))):
        os.makedirs(os.path.join(folder, *parts), mode=0o750)
    places = set_aside(params["path"], name)
    made["earlier"] = {key: places.get(real(value), value) for key, value in params["earlier"].items()}
    about = {"run": {"id": name, "started": started}, "earlier": made["earlier"], "scope": params["scope"]}
    about.update({"hosts": params["hosts"], "process": params["process"]})
    for file, value in (("run.json", about), ("plan.json", params["plan"])):
        with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
            json.dump(value, out)
    used = [real(path) for path in made["earlier"].values()]
    known, others = read_runs(os.path.join(params["path"], "runs"), name, params["process"])
    made["text"], newest = remove_old(os.path.join(params["path"], "runs"), known, params["keep"], used=used)
    made["text"] += kept.of_other_versions(os.path.join(params["path"], "runs"), others)
    made["leftover"] = leftover(real(made["earlier"].get("resume")) or newest, params["plan"], params["process"])
    return made


def remove_old(place: str, known: dict[str, kept.Known], keep: int, *, used: list[str]) -> tuple[list[str], str]:
    """Remove runs that are not to be kept nor ``used``.

    Return sentences about the unfinished ones that stay, and the path of the newest one that measured.
    """
    old, left = kept.sorted_out(known, keep, used)
    for name in old:
        shutil.rmtree(os.path.join(place, name))
    # What this run continues needs no hint.
    others = [name for name in left if os.path.join(real(place), name) not in used]
    measured = [os.path.join(place, name) for name in left if known[name].passes and not known[name].running]
    return kept.unfinished(place, {name: known[name] for name in others}, size_of(place, others)), "".join(
        measured[-1:]
    )


def ended(params: dict[str, Any], _check: bool) -> dict[str, Any]:
    """Fail unless the run has a report: the current one, or one that another run has set aside since."""
    own = os.path.join(params["path"], "runs", params["run"])
    found, aside = (runs.name_of(read(os.path.join(place, "report.json"))) for place in (params["path"], own))
    if params["run"] not in (found, aside):
        raise InputError(runs.no_report(params["path"], params["run"], found))
    return {"text": []}


def reopened(params: dict[str, Any], _check: bool) -> dict[str, Any]:
    """Return what a run without a report was to measure."""
    return unfinished.reopen(os.path.join(params["path"], "runs"), params["run"] or "", params["process"])


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, required_if=NEEDS, supports_check_mode=True)
    steps = {"decided": decided, "begun": begun, "ended": ended, "reopened": reopened}
    try:
        result = steps[module.params["state"]](module.params, module.check_mode)
    except (FabricError, OSError) as exc:
        module.fail_json(msg=runs.told_error(exc))
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
