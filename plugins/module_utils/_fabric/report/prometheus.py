# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as Prometheus text, for node-exporter's textfile collector. Base units: bits per second, seconds.

Series of single tests are written up to PAIRS results; a fleet of a thousand hosts has too many for a monitoring
system. Series of ports, rails and hosts are always there. Nothing has a timestamp: the collector refuses them, and
its own ``node_textfile_mtime_seconds`` tells the age of the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..measure.judge.verdict import VERDICTS
from ..measure.schedule.schedule import IDENTITY
from .ports import all_ports, counters

PAIRS = 5000
_UNSTEADY_LABELS = ("where", "kind", "rail", "host", "peer", "group", "peer_group", "direction", "severity")
_PREFIX = "gpufabric_rdma_"
_FACTOR = {"Gb/s": (1e9, "bandwidth_bits_per_second"), "us": (1e-6, "latency_seconds")}
Rows = Iterable[tuple[Mapping[str, str], float]]


def to_prometheus(report: Mapping[str, Any], pairs: int = PAIRS) -> str:
    """Return the metrics; ``pairs`` is the most results of which single tests get series."""
    lines: list[str] = []
    if len(report["results"]) <= pairs:
        lines += _tests(report)
    lines += [*_sums(report), *_ports(report), *_judged(report)]
    return "\n".join(lines) + "\n"


def _tests(report: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for unit, (factor, name) in _FACTOR.items():
        own = [result for result in report["results"] if result["unit"] == unit]
        for key, metric, text in (
            ("value", name, "Measured value between two ports."),
            ("expected", "expected_%s" % name, "Expected value of a test."),
        ):
            rows = [(_test_labels(r), r[key] * factor) for r in own if r[key] is not None]
            lines += gauge(metric, text, rows)
    return lines


def _test_labels(result: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(result[key]) for key in IDENTITY if result.get(key)}


def _sums(report: Mapping[str, Any]) -> list[str]:
    tests = [
        ({"where": row["where"], "rail": row["rail"], "verdict": verdict}, row[verdict])
        for row in report["rails"]
        for verdict in VERDICTS
    ]
    rates = [
        ({"where": row["where"], "rail": row["rail"], "quantile": quantile}, row[key] * 1e9)
        for row in report["rails"]
        for key, quantile in (("worst", "0"), ("median", "0.5"))
        if row[key] is not None
    ]
    hosts = [({"host": name}, int(host["verdict"] == "pass")) for name, host in report["hosts"].items()]
    passed = int(report["verdict"] == "pass")
    return [
        *gauge("fabric_passed", "1 if the verdict of the run is pass.", [({}, passed)]),
        *gauge("tests", "Tests of a rail by verdict.", tests),
        *gauge("rail_bandwidth_bits_per_second", "Worst (0) and median (0.5) of a rail's tests.", rates),
        *gauge("host_passed", "1 when every test of the host passed.", hosts),
    ]


def _ports(report: Mapping[str, Any]) -> list[str]:
    known = list(all_ports(report).values())
    named = [({"where": p.where, "host": p.host, "rail": p.rail}, p) for p in known]
    grown = [
        ({key: row[key] for key in ("where", "host", "rail", "counter")}, row["growth"])
        for row in counters(report["results"])
    ]
    worst = [(labels, p.worst * 1e9) for labels, p in named if p.worst is not None]
    return [
        *gauge(
            "port_passed",
            "1 when every test of the port passed.",
            [(labels, int(p.verdict == "pass")) for labels, p in named],
        ),
        *gauge(
            "port_failed_ratio",
            "Share of the port's tests that did not pass.",
            [(labels, p.share) for labels, p in named],
        ),
        *gauge("port_bandwidth_worst_bits_per_second", "The slowest test of the port.", worst),
        *gauge("port_counter_growth", "Increase of a port counter during the measurement.", grown),
    ]


def _judged(report: Mapping[str, Any]) -> list[str]:
    diagnoses = {
        tuple(
            (key, str(diagnosis[key] or ""))
            for key in ("where", "kind", "rail", "host", "peer", "direction", "confidence")
        ): 1
        for diagnosis in report.get("diagnoses", [])
    }
    unsteady = {
        tuple((key, str(row.get(key) or "")) for key in _UNSTEADY_LABELS): row["count"]
        for row in report.get("unsteady", [])
    }
    gates = [
        ({"gate": gate["name"], "severity": gate["severity"]}, int(gate["verdict"] == "pass"))
        for gate in report.get("gates", [])
    ]
    return [
        *gauge("diagnosis", "Cause of tests that did not pass.", [(dict(key), 1) for key in diagnoses]),
        *gauge(
            "unsteady_tests",
            "Low readings, other readings of which pass.",
            [(dict(key), count) for key, count in unsteady.items()],
        ),
        *gauge("gate_passed", "1 when an acceptance rule holds.", gates),
    ]


def gauge(name: str, text: str, rows: Rows) -> list[str]:
    """Return the lines of one metric, [] without rows."""
    lines = ["%s%s%s %s" % (_PREFIX, name, _format(labels), "%.12g" % value) for labels, value in rows]
    if not lines:
        return []
    return ["# HELP %s%s %s" % (_PREFIX, name, text), "# TYPE %s%s gauge" % (_PREFIX, name), *lines]


def _format(labels: Mapping[str, str]) -> str:
    pairs = ['%s="%s"' % (key, _escape(value)) for key, value in labels.items()]
    return "{%s}" % ",".join(pairs) if pairs else ""


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
