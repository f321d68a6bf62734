#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_report
short_description: Write the report of a validated fabric
version_added: "0.1.0"
description:
  - Renders the results of M(gpufabric.rdma.fabric_judge) into files. It judges nothing.
  - Files are V(report.json), V(report.html), V(junit.xml), V(metrics.prom), V(report.txt) and V(plan.json).
  - Writing a report is never a change.
author:
  - Contributors to gpufabric.rdma (@gpufabric)
options:
  plan:
    description: The plan, as returned by M(gpufabric.rdma.fabric_plan).
    type: dict
    required: true
  results:
    description: Results of M(gpufabric.rdma.fabric_judge), of bare hosts and pods together.
    type: list
    elements: dict
    required: true
  path:
    description: Folder for the files, on the controller. It is made when missing.
    type: path
    required: true
  warnings:
    description: What was noticed on the way and changes no verdict.
    type: list
    elements: str
    default: []
  context:
    description: What is known about the run - times in seconds, numbers of requests, versions. Shown as it is.
    type: dict
    default: {}
  shown:
    description: How many results that did not pass are named in RV(text); the files hold all of them.
    type: int
    default: 10
attributes:
  check_mode:
    description: Can run in check mode and return what it would report, writing nothing.
    support: full
  diff_mode:
    description: Returns details on what has changed.
    support: none
"""

EXAMPLES = r"""
- name: Report what was measured
  gpufabric.rdma.fabric_report:
    plan: "{{ rdma_plan }}"
    results: "{{ step.results }}"
    path: "{{ playbook_dir }}/report"
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
verdict:
  description: V(pass) only when there are results and every one of them passed.
  returned: always
  type: str
  sample: pass
text:
  description: What did not pass, findings, warnings, and a table rail by rail.
  returned: always
  type: list
  elements: str
path:
  description: The folder of the files.
  returned: always
  type: str
files:
  description: Names of the files in the folder.
  returned: always
  type: list
  elements: str
  sample: [report.json, report.html, junit.xml, metrics.prom, report.txt, plan.json]
"""

import json
import os
import tempfile

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.errors import FabricError, InputError
from ..module_utils._fabric.report import console, html, junit, prometheus, summary

ARGUMENT_SPEC = {
    "plan": {"type": "dict", "required": True},
    "results": {"type": "list", "elements": "dict", "required": True},
    "path": {"type": "path", "required": True},
    "warnings": {"type": "list", "elements": "str", "default": []},
    "context": {"type": "dict", "default": {}},
    "shown": {"type": "int", "default": 10},
}
# Whoever may read the folder may read the report; it holds addresses and host names, so not everybody may.
MODE = 0o640


def render(plan: dict, report: dict, shown: int) -> dict[str, str]:
    """Return the content of each file by its name."""
    return {
        "report.json": json.dumps(report, indent=2) + "\n",
        "report.html": html.to_html(report),
        "junit.xml": junit.to_junit(report),
        "metrics.prom": prometheus.to_prometheus(report),
        "report.txt": console.text(report, shown),
        "plan.json": json.dumps(plan, indent=2) + "\n",
    }


def write(folder: str, files: dict[str, str]) -> None:
    """Write each file whole or not at all."""
    try:
        os.makedirs(folder, exist_ok=True)
        for name, text in files.items():
            handle, temporary = tempfile.mkstemp(dir=folder, prefix=".%s." % name)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(temporary, MODE)
            os.replace(temporary, os.path.join(folder, name))
    except OSError as exc:
        raise InputError("report: cannot write to %s: %s; choose another path" % (folder, exc.strerror)) from exc


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    params = module.params
    report = summary.build(params["plan"], params["results"], params["warnings"], params["context"])
    files = render(params["plan"], report, params["shown"])
    try:
        if not module.check_mode:
            write(params["path"], files)
    except FabricError as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(
        changed=False,
        verdict=report["verdict"],
        text=files["report.txt"].splitlines(),
        path=params["path"],
        files=list(files),
    )


if __name__ == "__main__":
    main()
