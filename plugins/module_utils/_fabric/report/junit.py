# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as JUnit XML: one case a host and rail, so that a CI shows which port failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from ..measure.verdict import overall
from .summary import name_of

_TAGS = {"fail": "failure", "no_data": "error"}


def to_junit(report: Mapping[str, Any]) -> str:
    """Return the XML text. A port that failed is a ``failure``, one without data an ``error``, never a skip."""
    cases = _cases(report)
    verdicts = [overall(results) for results in cases.values()]
    suite = ElementTree.Element(
        "testsuite",
        {
            "name": "gpufabric.rdma",
            "tests": str(len(cases)),
            "failures": str(verdicts.count("fail")),
            "errors": str(verdicts.count("no_data")),
        },
    )
    for (where, host, rail), results in cases.items():
        _add_case(suite, where, host, rail, results)
    ElementTree.indent(suite)
    return "<?xml version='1.0' encoding='utf-8'?>\n%s\n" % ElementTree.tostring(suite, encoding="unicode")


def _cases(report: Mapping[str, Any]) -> dict[tuple[str, str, str], list[Mapping[str, Any]]]:
    cases: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for result in report["results"]:
        for host in (result["client"], result["server"]):
            cases.setdefault((result["where"], host, result["rail"]), []).append(result)
    return dict(sorted(cases.items()))


def _add_case(suite: ElementTree.Element, where: str, host: str, rail: str, results: list[Mapping[str, Any]]) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", {"classname": "%s.%s" % (where, rail), "name": name_of(host, rail, where)}
    )
    verdict = overall(results)
    if verdict == "pass":
        return
    bad = [result for result in results if result["verdict"] != "pass"]
    message = "%d of %d tests did not pass" % (len(bad), len(results))
    element = ElementTree.SubElement(case, _TAGS[verdict], {"message": message})
    element.text = "\n".join(
        "%s -> %s %s: %s: %s" % (r["client"], r["server"], r["test"], r["verdict"], r["reason"]) for r in bad
    )
