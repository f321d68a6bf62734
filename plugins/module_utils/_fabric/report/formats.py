# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All files of a report from one value, but the page, which the controller renders (page.py has its data)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable, NamedTuple
from urllib.parse import urlsplit

from ..._common.errors import harmless
from . import console, junit, page, prometheus
from .redact import Redactor

# Made once: a report has more than 100000 rows, and json.dumps makes one for each call.
_ENCODER = json.JSONEncoder(allow_nan=False, check_circular=False)
# A name of DNS, which an address of either kind is not.
_DOMAIN = re.compile(r"(?:[\w-]+\.)*[A-Za-z][\w-]*")


class Source(NamedTuple):
    """What formats are rendered from; ``shown`` as in console.text."""

    report: Mapping[str, Any]
    plan: Mapping[str, Any]
    shown: int


@dataclass(frozen=True)
class Format:
    """One file of a report: its name and its text. No text of others may reach a terminal from it unless it is JSON.

    ``template``: the text is JSON for a template of that name, which the controller renders (plugins/plugin_utils).
    """

    file: str
    render: Callable[[Source], str]
    template: bool = False


# None of these files keeps its name when the next measurement begins.
FORMATS: dict[str, Format] = {
    "json": Format("report.json", lambda source: to_json(source.report)),
    "html": Format("report.html", lambda source: json.dumps(page.page(source.report)), template=True),
    "junit": Format("junit.xml", lambda source: harmless(junit.to_junit(source.report))),
    "prometheus": Format("metrics.prom", lambda source: harmless(prometheus.to_prometheus(source.report))),
    "text": Format("report.txt", lambda source: harmless(console.text(source.report, source.shown))),
    "plan": Format("plan.json", lambda source: to_json(source.plan)),
}


def files() -> tuple[str, ...]:
    """Return the names of the files of a report."""
    return tuple(one.file for one in FORMATS.values())


def render(report: Mapping[str, Any], plan: Mapping[str, Any], shown: int) -> dict[str, str]:
    """Return the text of each file by its name but those of templates; ``shown`` as in console.text."""
    source = Source(report, plan, shown)
    return {one.file: one.render(source) for one in FORMATS.values() if not one.template}


def to_json(value: Mapping[str, Any]) -> str:
    """Return JSON with one line for each item of a list or dict on the first level: short, quick, good for grep.

    JSON has no infinite numbers: such a value becomes null.
    """
    parts = ["  %s: %s" % (_dumps(key), _lines(item)) for key, item in value.items()]
    return "{\n%s\n}\n" % ",\n".join(parts)


def redacted(
    report: Mapping[str, Any], plan: Mapping[str, Any], wanted: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return report and plan without the kinds of values in ``wanted``, the same pseudonyms in both."""
    planned = plan.get("hosts", {})
    nodes = [host.get("node") for host in [*report["hosts"].values(), *planned.values()]]
    names = [name for name in [*report["hosts"], *planned, *nodes] if name]
    cluster = (report.get("run") or {}).get("cluster")
    if cluster and "hosts" in wanted:
        server = urlsplit(cluster["server"]).hostname or ""
        names += [server] if _DOMAIN.fullmatch(server) else []
        report = {**report, "run": {**report["run"], "cluster": {**cluster, "name": ""}}}
    redactor = Redactor(wanted, [report, plan], names)
    return redactor.redact(report), redactor.redact(plan)


def _lines(item: Any) -> str:
    if isinstance(item, list) and item:
        return "[\n%s\n  ]" % ",\n".join("    " + _dumps(row) for row in item)
    if isinstance(item, dict) and item:
        return "{\n%s\n  }" % ",\n".join("    %s: %s" % (_dumps(k), _dumps(v)) for k, v in item.items())
    return _dumps(item)


def _dumps(value: Any) -> str:
    try:
        return _ENCODER.encode(value)
    except ValueError:
        return _ENCODER.encode(_finite(value))


def _finite(value: Any) -> Any:
    """Return the value with None for each number that is infinite or none at all."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
