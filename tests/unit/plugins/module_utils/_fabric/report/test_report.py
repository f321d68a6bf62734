"""Every format is rendered from one report, and none of them turns silence into a pass."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import report_factory as factory

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report import (
    console,
    html,
    junit,
    prometheus,
    summary,
)

SCHEMA = json.loads((Path(__file__).resolve().parents[6] / "docs" / "report.schema.json").read_text())
BAD = {
    ("gpu-001", "rail1"): ("no_data", "gpu-001 rail1: port is down <&>"),
    ("gpu-002", "rail0"): ("fail", "12.5 Gb/s"),
}


def report(hosts: int = 4, rails: int = 2, bad: Any = None) -> dict[str, Any]:
    return summary.build(factory.plan(hosts, rails), factory.results(hosts, rails, bad), ["a warning"], {"seconds": 3})


@pytest.mark.parametrize("bad", [None, BAD])
def test_report_follows_its_schema(bad: Any) -> None:
    jsonschema.validate(report(bad=bad), SCHEMA)


def test_the_schema_refuses_a_verdict_that_does_not_exist() -> None:
    broken = report()
    broken["results"][0]["verdict"] = "maybe"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, SCHEMA)


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([], "no_data"),
        ([factory.result("a", "b")], "pass"),
        ([factory.result("a", "b"), factory.result("b", "a", verdict="no_data", value=None)], "no_data"),
        ([factory.result("a", "b", verdict="no_data"), factory.result("b", "a", verdict="fail")], "fail"),
    ],
)
def test_verdict_of_the_whole(results: list[dict[str, Any]], expected: str) -> None:
    assert summary.build({}, results)["verdict"] == expected


def test_hosts_that_were_planned_and_not_measured_have_no_data() -> None:
    built = summary.build(factory.plan(3, 1), [factory.result("gpu-000", "gpu-001")])
    assert {name: host["verdict"] for name, host in built["hosts"].items()} == {
        "gpu-000": "pass", "gpu-001": "pass", "gpu-002": "no_data",
    }


def test_table() -> None:
    assert console.table(report(3, 1)).splitlines() == [
        "where  rail   pairs  pass  fail  no_data  worst Gb/s  median Gb/s  verdict",
        "host   rail0      6     6     0        0          98           98  pass",
        "verdict: pass",
    ]


def test_problems_name_the_first_and_count_the_rest() -> None:
    lines = console.problems(report(bad=BAD), shown=1)
    assert lines == [
        "host rail0 gpu-000 -> gpu-002 write_bw: fail: 12.5 Gb/s",
        "... and 11 more; report.html has all",
    ]


def test_junit_has_a_case_for_each_host_and_rail() -> None:
    suite = ElementTree.fromstring(junit.to_junit(report(bad=BAD)))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("8", "4", "4")
    case = next(c for c in suite if c.get("name") == "gpu-001 rail1 (host)")
    assert case[0].tag == "error"
    assert case[0].get("message") == "6 of 6 tests did not pass"


def test_metrics_are_in_base_units() -> None:
    lines = prometheus.to_prometheus(report(2, 1)).splitlines()
    labels = '{where="host",rail="rail0",client="gpu-000",server="gpu-001",test="write_bw"}'
    assert f"gpufabric_rdma_bandwidth_bits_per_second{labels} 98010000000" in lines
    assert "gpufabric_rdma_fabric_passed 1" in lines
    assert all(line.startswith("# ") or line.split(" ")[0].startswith("gpufabric_rdma_") for line in lines)


class Page(HTMLParser):
    """Collects what could reach a network, and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.reaches: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.reaches += [f"{tag} {name}" for name, _value in attrs if name in ("src", "href", "srcset")]
        self.reaches += [tag] if tag in ("script", "link", "iframe", "img") else []

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_page_is_one_file_and_escapes_what_it_shows() -> None:
    text = html.to_html(report(bad=BAD))
    page = Page(text)
    assert page.reaches == []
    assert "gpu-001 rail1: port is down <&>" in " ".join(page.words)
    assert "url(" not in text and "@import" not in text


def test_page_of_a_big_fleet_stays_small() -> None:
    text = html.to_html(report(64, 2))
    assert len(text) < 5_000_000
    assert "all of them are in report.json" in text
