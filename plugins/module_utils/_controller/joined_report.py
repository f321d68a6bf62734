# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of the rails in a folder, and its files again with the collectives of NCCL in it."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Mapping
from typing import Any

from .._common.errors import InputError, harmless
from .._fabric.report import collectives
from .._fabric.report.formats import render
from .._fabric.report.page import page
from .._fabric.report.summary import brief
from . import earlier_reports, report_folder, text_files

# As fabric_report has them: node-exporter reads the metrics.
MODES = {"metrics.prom": 0o644}
_SHOWN = 10


def of_rails(folder: str) -> dict[str, Any]:
    """Return the report of the rails in a folder, {} without one that this version of the collection can use."""
    path = os.path.join(folder, "report.json")
    found, _why = earlier_reports.find(path)
    return report_folder.read(path) if found else {}


def write(folder: str, made: Mapping[str, Any], hosts: Collection[str]) -> dict[str, Any]:
    """Write the report of the rails with the collectives ``made``; return its ``summary``, ``path`` and ``page``.

    {} where it does not have these ``hosts``, or there is none. The controller renders the page from its data.
    """
    report = of_rails(folder)
    try:
        both = collectives.joined(report, made, hosts) if report else {}
        if not both:
            return {}
        files = render(both, {}, _SHOWN)
        data = json.dumps(page(both))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(
            f"report: {folder}/report.json was changed after it was written, so the collectives cannot be added to it."
            " Measure the rails again"
        ) from None
    del files["plan.json"]
    try:
        # That of the earlier verdict; the action plugin writes the new one, unless this run is ended before.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, report_folder.PAGE))
        for name, text in files.items():
            text_files.write(os.path.join(folder, name), text, MODES.get(name, report_folder.MODE))
    except OSError as error:
        raise InputError(f"report: cannot write to {folder}: {error.strerror}. Choose another path") from None
    summary = brief(both, folder)
    told = [harmless(text) for text in summary["diagnoses"]]
    return {"summary": {**summary, "diagnoses": told}, "path": folder, "page": data}
