# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as JUnit XML: one case a host and rail, so that a CI shows which port failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from ..._common.reader import and_more
from ..measure.schedule.schedule import label
from .collectives import cases as collectives
from .ports import Port, all_ports
from .summary import name_of, stops

_TAGS = {"fail": "failure", "no_data": "error"}
# A port whose every test failed says the same in each; report.json has all of them.
_LINES = 20


@dataclass(frozen=True)
class _Case:
    """``verdict``: pass, fail or no_data; ``message`` and ``text`` only matter when it is no pass."""

    classname: str
    name: str
    verdict: str
    message: str = ""
    text: str = ""


def to_junit(report: Mapping[str, Any]) -> str:
    """Return the XML text. What failed is a ``failure``, what has no data an ``error``, never a skip.

    Gates, unsteady tests, outliers and baselines that fail the whole are cases too, and so is a report without any
    result, which a CI would take for green.
    """
    cases = [_case(report, port) for port in all_ports(report).values()]
    cases += [_gate(gate) for gate in report.get("gates", [])]
    fleet = [row["text"] for row in stops(report) if "name" not in row]
    cases += [_Case("fleet", text, "fail", text, text) for text in fleet]
    cases += [_Case("nccl", *case, case[-1]) for case in collectives(report["nccl"])] if "nccl" in report else []
    if not report["results"]:
        cases.append(_Case("fabric", "measured", "no_data", "nothing was measured"))
    verdicts = [case.verdict for case in cases]
    suite = ElementTree.Element(
        "testsuite",
        {
            "name": "gpufabric.rdma",
            "tests": str(len(cases)),
            "failures": str(verdicts.count("fail")),
            "errors": str(verdicts.count("no_data")),
        },
    )
    for case in cases:
        _add(suite, case)
    ElementTree.indent(suite)
    return "<?xml version='1.0' encoding='utf-8'?>\n%s\n" % ElementTree.tostring(suite, encoding="unicode")


def _case(report: Mapping[str, Any], port: Port) -> _Case:
    name = name_of(port.host, port.rail, port.where)
    classname = "%s.%s" % (port.where, port.rail)
    if port.verdict == "pass":
        return _Case(classname, name, "pass")
    if not port.tests:
        return _Case(classname, name, port.verdict, port.reason, port.reason)
    message = "%d of %d tests did not pass" % (len(port.bad), port.tests)
    causes = _causes(report, port)
    return _Case(classname, name, port.verdict, "; ".join([message, *causes]), _reasons(port.bad))


def _causes(report: Mapping[str, Any], port: Port) -> list[str]:
    """Return the texts of the diagnoses that name the port, or its host or its rail as a whole."""
    return [
        diagnosis["text"]
        for diagnosis in report.get("diagnoses", [])
        if diagnosis["where"] == port.where
        and diagnosis["host"] in (None, port.host)
        and port.rail in _rails(diagnosis, port.rail)
        and (diagnosis["host"] or diagnosis["rail"])
    ]


def _rails(diagnosis: Mapping[str, Any], rail: str) -> tuple[str, ...]:
    """Return the rails that a diagnosis names of its host, or of no host; of all rails it names ``rail`` too."""
    both = diagnosis["host"] == diagnosis["peer"]
    return (diagnosis["rail"] or rail, *([diagnosis["peer_rail"]] if both and diagnosis.get("peer_rail") else []))


def _reasons(bad: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "%s -> %s %s: %s: %s" % (r["client"], r["server"], label(r), r["verdict"], r["reason"]) for r in bad[:_LINES]
    ]
    more = and_more(bad, _LINES)
    return "\n".join(lines + (["..." + more] if more else []))


def _gate(gate: Mapping[str, Any]) -> _Case:
    """A gate of severity warning never fails the whole, so it does not fail its case either."""
    verdict = "fail" if gate["verdict"] == "fail" and gate["severity"] == "failure" else "pass"
    return _Case("gates", gate["name"], verdict, gate["text"], "%s\nfound: %s" % (gate["query"], gate.get("found")))


def _add(suite: ElementTree.Element, case: _Case) -> None:
    element = ElementTree.SubElement(
        suite, "testcase", {"classname": _clean(case.classname), "name": _clean(case.name)}
    )
    if case.verdict != "pass":
        tag = ElementTree.SubElement(element, _TAGS[case.verdict], {"message": _clean(case.message)})
        tag.text = _clean(case.text)


def _clean(text: str) -> str:
    """Return the text without the control characters that XML cannot hold; a tool's output may have some."""
    return "".join(char for char in text if char in "\t\n\r" or (char >= " " and char not in "\ufffe\uffff"))
