# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as Prometheus text, for node-exporter's textfile collector. Base units: bits per second, seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_PREFIX = "gpufabric_rdma_"
_FACTOR = {"Gb/s": (1e9, "bandwidth_bits_per_second"), "us": (1e-6, "latency_seconds")}


def to_prometheus(report: Mapping[str, Any]) -> str:
    """Return the metrics: one value a test, one 0 or 1 a port, counts a rail."""
    lines: list[str] = []
    for unit, (factor, name) in _FACTOR.items():
        rows = [
            (_labels(r, "where", "rail", "client", "server", "test"), r["value"] * factor)
            for r in report["results"]
            if r["unit"] == unit and r["value"] is not None
        ]
        lines += _metric(name, "What was measured between two ports.", rows)
    for verdict in ("pass", "fail", "no_data"):
        rows = [({"where": r["where"], "rail": r["rail"]}, r[verdict]) for r in report["rails"]]
        lines += _metric("tests_%s" % verdict, "Tests that ended as %s." % verdict, rows)
    passed = int(report["verdict"] == "pass")
    lines += _metric("fabric_passed", "1 when every test of the fabric passed.", [({}, passed)])
    hosts = [({"host": name}, int(host["verdict"] == "pass")) for name, host in report["hosts"].items()]
    lines += _metric("host_passed", "1 when every test of the host passed.", hosts)
    return "\n".join(lines) + "\n"


def _labels(result: Mapping[str, Any], *keys: str) -> dict[str, str]:
    return {key: str(result[key]) for key in keys}


def _metric(name: str, text: str, rows: Iterable[tuple[Mapping[str, str], float]]) -> list[str]:
    lines = ["%s%s%s %s" % (_PREFIX, name, _format(labels), "%.12g" % value) for labels, value in rows]
    if not lines:
        return []
    return ["# HELP %s%s %s" % (_PREFIX, name, text), "# TYPE %s%s gauge" % (_PREFIX, name), *lines]


def _format(labels: Mapping[str, str]) -> str:
    pairs = ['%s="%s"' % (key, _escape(value)) for key, value in labels.items()]
    return "{%s}" % ",".join(pairs) if pairs else ""


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
