# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All files of a report from one value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from . import console, html, junit, prometheus
from .redact import Redactor


def render(report: Mapping[str, Any], plan: Mapping[str, Any], shown: int) -> dict[str, str]:
    """Return the text of each file by its name; ``shown`` as in console.text."""
    return {
        "report.json": to_json(report),
        "report.html": html.to_html(report),
        "junit.xml": junit.to_junit(report),
        "metrics.prom": prometheus.to_prometheus(report),
        "report.txt": console.text(report, shown),
        "plan.json": to_json(plan),
    }


def to_json(value: Mapping[str, Any]) -> str:
    """Return JSON with one line for each item of a list or dict on the first level: short, quick, good for grep."""
    parts = ["  %s: %s" % (json.dumps(key), _lines(item)) for key, item in value.items()]
    return "{\n%s\n}\n" % ",\n".join(parts)


def redacted(
    report: Mapping[str, Any], plan: Mapping[str, Any], wanted: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return report and plan without the kinds of values in ``wanted``, the same pseudonyms in both."""
    planned = plan.get("hosts", {})
    nodes = [host.get("node") for host in [*report["hosts"].values(), *planned.values()]]
    names = [name for name in [*report["hosts"], *planned, *nodes] if name]
    redactor = Redactor(wanted, [report, plan], names)
    return redactor.redact(report), redactor.redact(plan)


def _lines(item: Any) -> str:
    if isinstance(item, list) and item:
        return "[\n%s\n  ]" % ",\n".join("    " + json.dumps(row) for row in item)
    if isinstance(item, dict) and item:
        return "{\n%s\n  }" % ",\n".join("    %s: %s" % (json.dumps(k), json.dumps(v)) for k, v in item.items())
    return json.dumps(item)
