#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_report
short_description: Write the validation report of a fabric
version_added: "0.1.0"
description:
  - Renders the results of M(gpufabric.rdma.fabric_judge) into files. It does not evaluate single tests. The overall verdict also fails
    because of gates, outliers or a baseline with the severity V(failure).
  - Writes V(report.json), V(report.html), V(junit.xml), V(metrics.prom), V(report.txt) and V(plan.json).
  - Runs on the controller, which renders the page. Delegate the task to C(localhost).
  - Writing a report is never reported as a change.
extends_documentation_fragment:
  - gpufabric.rdma.controller
seealso:
  - module: gpufabric.rdma.fabric_judge
  - module: gpufabric.rdma.fabric_run
  - module: gpufabric.rdma.report_folder
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
  results:
    description: Results of M(gpufabric.rdma.fabric_judge), for hosts and pods together.
    type: list
    elements: dict
    required: true
  path:
    description:
      - Directory for the files, on the controller. It is created if it does not exist.
      - With O(run), an existing report of another run is moved to the C(runs/ID) directory of that run.
    type: path
    required: true
  warnings:
    description: Warnings that do not affect the verdict.
    type: list
    elements: str
    default: []
  context:
    description: Additional information about the run, such as times in seconds, request counts and versions. Shown unchanged.
    type: dict
    default: {}
  run:
    description:
      - The run that produced the results, with C(id), C(started) (Unix time), C(folder), and C(resumed), the earlier report or run
        directory whose results were reused. The end time is added if C(ended) (Unix time) is not set.
      - C(cluster) is the measured cluster, as returned by M(gpufabric.rdma.fabric_testers). Omit it if no cluster was measured.
      - Omit this option if the results do not belong to a run started by M(gpufabric.rdma.fabric_run).
    type: dict
  scope:
    description: Scope of the run, as returned by M(gpufabric.rdma.fabric_run).
    type: dict
  versions:
    description: Machine ID, ports and versions of the hosts, as returned by M(gpufabric.rdma.fabric_run).
    type: dict
  endpoints:
    description: The measured ports as returned by M(gpufabric.rdma.fabric_judge), one item for hosts and one for pods.
    type: list
    elements: dict
  shown:
    description:
      - Maximum number of causes, or of results that did not pass, in RV(text). The files contain all of them.
      - RV(text) has at most 20 additional lines.
    type: int
    default: 10
  diagnoses:
    description:
      - Suspected and confirmed causes, with evidence and the two commands to reproduce them.
      - Omit this option if no diagnosis was made.
    type: list
    elements: dict
  unmeasured:
    description: Ports without any test, as returned by M(gpufabric.rdma.fabric_judge). Each of them counts as no_data.
    type: list
    elements: dict
  unsteady:
    description: Tests that failed and then passed when repeated.
    type: list
    elements: dict
  outliers:
    description: Tests that differ from the rest of the fleet.
    type: list
    elements: dict
  links:
    description: Links that run with less speed, width or MTU than supported.
    type: list
    elements: dict
  baseline:
    description:
      - Path of the C(report.json) of a reference run. Tests that are worse by more than O(baseline_drop) are reported.
    type: path
  baseline_drop:
    description: Fraction by which a test may be worse than in the O(baseline). The value 0.1 means 10 %.
    type: float
    default: 0.1
  baseline_severity:
    description: Whether a test that is worse by more than O(baseline_drop) fails the report or causes a warning.
    type: str
    choices: [failure, warning]
    default: failure
  schedule:
    description: Schedules of the measurement, one item for hosts and one for pods, with rounds, slot and lateness.
    type: list
    elements: dict
  compare:
    description:
      - Path of an earlier V(report.json). Regressions, improvements, and new and missing tests are listed in all human-readable formats
        and in C(comparison) of V(report.json). They do not affect the verdict.
      - The file may be the report that this run replaces.
    type: path
  redact:
    description:
      - V(true) replaces IP and MAC addresses, GIDs, GUIDs and serial numbers with consistent pseudonyms in all files and in the return
        values.
      - A list selects what to replace, V(addresses), V(serials) or V(hosts). V(hosts) also removes the name of the cluster.
      - The raw output of the testers is stored in other files and is not redacted. A redacted V(plan.json) cannot be compared
        with a plan, so write redacted reports to a separate directory.
    type: raw
    default: false
attributes:
  check_mode:
    description: Can run in check mode and return the report without writing files.
    support: full
  diff_mode:
    description: The module never reports a change.
    support: none
  idempotent:
    support: partial
    details: Never reports a change, but rewrites the files each time.
"""

EXAMPLES = r"""
- name: Write the report
  gpufabric.rdma.fabric_report:
    plan: "{{ rdma_plan }}"
    results: "{{ step.results }}"
    path: "{{ playbook_dir }}/report"
  delegate_to: localhost
  run_once: true

- name: Write a redacted report for vendor support and compare it with last week
  gpufabric.rdma.fabric_report:
    plan: "{{ rdma_plan }}"
    results: "{{ step.results }}"
    path: "{{ playbook_dir }}/report/redacted"
    compare: "{{ playbook_dir }}/last-week/report.json"
    redact: [addresses, serials, hosts]
  delegate_to: localhost
  run_once: true
  register: written

- name: Export the summary to the workflow
  ansible.builtin.set_stats:
    data:
      rdma_fabric_report: "{{ written.summary }}"
"""

RETURN = r"""
verdict:
  description: V(pass) only if there is at least one result and all results passed.
  returned: always
  type: str
  sample: pass
text:
  description: Failed tests, findings, warnings, the scope of the measurement, and a table per rail.
  returned: always
  type: list
  elements: str
summary:
  description: Short summary for C(set_stats), with verdict, counts, first causes, failed gates, report directory and cluster.
  returned: always
  type: dict
  sample:
    verdict: fail
    hosts: 3
    tests: 12
    pass: 8
    fail: 4
    no_data: 0
    diagnoses: ["gpu-2 rail0: none of its 4 tests passed"]
    gates: []
    path: /srv/report
    run: 20261123T013000Z-3f9a2c
    subset: []
    release: 26.7.1
    cluster: lab (https://10.0.0.1:6443, Kubernetes v1.35.4)
path:
  description: Directory of the files.
  returned: always
  type: str
files:
  description: Names of the files in the directory.
  returned: always
  type: list
  elements: str
  sample: [report.json, report.html, junit.xml, metrics.prom, report.txt, plan.json]
"""

import contextlib
import gc
import json
import os
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.parsing.convert_bool import BOOLEANS, boolean

from ..module_utils._common.errors import FabricError, InputError, harmless
from ..module_utils._controller import earlier_reports, report_folder, text_files
from ..module_utils._fabric.intent import gates
from ..module_utils._fabric.measure.judge import baseline
from ..module_utils._fabric.report import formats, runs
from ..module_utils._fabric.report.compare import compare
from ..module_utils._fabric.report.formats import redacted, render
from ..module_utils._fabric.report.page import page
from ..module_utils._fabric.report.redact import kinds
from ..module_utils._fabric.report.summary import brief, build, with_gates

# What fabric_judge found beside the results.
JUDGED = ("diagnoses", "unmeasured", "unsteady", "outliers", "links", "schedule", "endpoints")
ARGUMENT_SPEC = {
    "plan": {"type": "dict", "required": True},
    "results": {"type": "list", "elements": "dict", "required": True},
    "path": {"type": "path", "required": True},
    "warnings": {"type": "list", "elements": "str", "default": []},
    "context": {"type": "dict", "default": {}},
    "shown": {"type": "int", "default": 10},
    **{name: {"type": "list", "elements": "dict"} for name in JUDGED},
    "run": {"type": "dict"},
    "scope": {"type": "dict"},
    "versions": {"type": "dict"},
    "baseline": {"type": "path"},
    "baseline_drop": {"type": "float", "default": 0.1},
    "baseline_severity": {"type": "str", "choices": ["failure", "warning"], "default": "failure"},
    "compare": {"type": "path"},
    "redact": {"type": "raw", "default": False},
}
# node-exporter runs as a user of its own and must read metrics.prom, which has names of hosts and rails and no
# addresses.
MODES = {"metrics.prom": 0o644}


def made(params: dict) -> tuple[dict, dict]:
    """Return the report and the plan as they are to be written."""
    wanted = kinds(redact_option(params["redact"]))
    runs.check_measured(params["results"], report_folder.standing((params["run"] or {}).get("resumed")))
    parts = {name: params[name] for name in (*JUDGED, "scope", "versions")}
    ended = int((params["run"] or {}).get("ended") or time.time())
    parts["run"] = runs.run_of(params["run"], params["plan"], ended)
    if params["baseline"]:
        before = earlier_reports.read("baseline", params["baseline"])
        drop, severity = params["baseline_drop"], params["baseline_severity"]
        parts["baseline"] = baseline.compare(params["results"], before, drop, severity=severity)
    report = build(params["plan"], params["results"], params["warnings"], context=params["context"], parts=parts)
    if params["plan"].get("gates"):
        report = with_gates(report, gates.judge(report, params["plan"]["gates"]))
    if params["compare"]:
        report["comparison"] = compare(report, earlier_reports.read("compare", params["compare"]))
    return redacted(report, params["plan"], wanted) if wanted else (report, params["plan"])


def redact_option(value: object) -> object:
    """Return the option with the words for booleans that Ansible knows as booleans."""
    if isinstance(value, str) and value.strip().lower() in ("", *BOOLEANS):
        return bool(value.strip()) and boolean(value)
    return value


def write(folder: str, files: dict[str, str], run: str) -> None:
    """Write each file whole or not at all; the report of another run than ``run`` ("" for none) is set aside before."""
    try:
        os.makedirs(folder, exist_ok=True)
        if run:
            report_folder.set_aside(folder, run)
        for name, text in files.items():
            text_files.write(os.path.join(folder, name), text, MODES.get(name, report_folder.MODE))
        # That of an earlier report; the action plugin writes the new one.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, report_folder.PAGE))
    except OSError as exc:
        raise InputError("report: cannot write to %s: %s; choose another path" % (folder, exc.strerror)) from exc


def main() -> None:
    # Results of a big fleet are millions of objects without cycles: to look for some again and again takes a tenth of
    # the time. The process ends soon.
    gc.disable()
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    params = module.params
    try:
        report, plan = made(params)
        files = render(report, plan, params["shown"])
        if not module.check_mode:
            write(params["path"], files, str((params["run"] or {}).get("id", "")))
    except FabricError as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(
        changed=False,
        verdict=report["verdict"],
        text=files["report.txt"].splitlines(),
        summary={
            **(short := brief(report, params["path"])),
            "diagnoses": [harmless(text) for text in short["diagnoses"]],
        },
        path=params["path"],
        files=list(formats.files()),
        **({} if module.check_mode else {"page": json.dumps(page(report))}),
    )


if __name__ == "__main__":
    main()
