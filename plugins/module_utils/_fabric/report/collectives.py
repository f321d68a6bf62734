# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collectives of NCCL in the report of the rails: a section of their own, and one verdict for both."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..measure.judge.verdict import FAIL, NO_DATA, PASS
from .redact import DEFAULT, Redactor

_KEPT = ("unit", "scope", "hosts", "collective", "path", "size", "value", "expected", "expected_from", "verdict")
_RESULT = (*_KEPT, "reason", "transports", "nccl", "gpu")
Report = Mapping[str, Any]


def joined(report: Report, made: Report, hosts: Collection[str]) -> dict[str, Any]:
    """Return the report of the rails with the collectives of ``made`` (report/nccl.py), {} if ``hosts`` are others.

    If the report is a redacted one, addresses in what programs printed are replaced too.
    """
    rails = of_rails(report)
    if not set(hosts) <= set(report["hosts"]):
        return {}
    results = [{key: result[key] for key in _RESULT} for result in made["results"]]
    section = {key: made[key] for key in ("run", "verdict", "left_out", "findings")}
    section.update(rails=rails, results=results)
    both = {section["rails"], section["verdict"]}
    verdict = FAIL if FAIL in both else NO_DATA if NO_DATA in both else PASS
    if _is_redacted(report):
        section = Redactor(DEFAULT, [section], ()).redact(section)
    return {**report, "verdict": verdict, "nccl": section}


def _is_redacted(report: Report) -> bool:
    addresses = (str(rail.get("address")) for host in report["hosts"].values() for rail in host["rails"])
    return any(address.startswith("address-") for address in addresses)


def of_rails(report: Report) -> str:
    """Return the verdict of the rails alone."""
    return str(report["nccl"]["rails"] if "nccl" in report else report["verdict"])


def name(result: Report) -> str:
    """Return how a collective is called."""
    where = "network alone" if result["path"] == "network" else "all GPUs"
    return f"{result['collective']}, {where}, {result['unit']}"


def cases(made: Report) -> list[tuple[str, str, str]]:
    """Return (name, verdict, reason) of each collective and each host that was left out; at least one."""
    found = [(name(result), result["verdict"], result["reason"]) for result in made["results"]]
    found += [(host or "run", NO_DATA, reason) for host, reason in made["left_out"].items()]
    return found or [("run", NO_DATA, "nothing was measured")]


def lines(report: Report) -> list[str]:
    """Return what is told of the collectives in one line, and why they did not pass; [] without any."""
    made = report.get("nccl")
    if not made:
        return []
    passed = sum(result["verdict"] == PASS for result in made["results"])
    return [f"NCCL: {made['verdict']}, {passed} of {len(made['results'])} collectives passed", *made["findings"]]


def transports(result: Report) -> str:
    """Return the connections of a collective by transport, as NCCL logged them."""
    return ", ".join(f"{kind} {count}" for kind, count in result["transports"].items()) or "-"
