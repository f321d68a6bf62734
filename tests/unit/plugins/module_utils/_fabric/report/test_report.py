"""Every format is rendered from one report, and none of them turns silence into a pass."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.unit.support import report_factory as factory
from tests.unit.support.page import to_html

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.earlier_report import EarlierReport
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report import (
    compare,
    console,
    formats,
    junit,
    ports,
    prometheus,
    summary,
)

SCHEMA = json.loads((Path(__file__).resolve().parents[6] / "docs" / "report.schema.json").read_text())
BAD = {
    ("gpu-001", "rail1"): ("no_data", "gpu-001 rail1: port is down <&>"),
    ("gpu-002", "rail0"): ("fail", "12.5 Gb/s"),
}


def report(hosts: int = 4, rails: int = 2, bad: Any = None) -> dict[str, Any]:
    return summary.build(
        factory.plan(hosts, rails), factory.results(hosts, rails, bad), ["a warning"], context={"seconds": 3}
    )


OUTLIER = {
    "where": "host",
    "rail": "rail0",
    "client": "gpu-000",
    "server": "gpu-001",
    "test": "write_bw",
    "value": 80.0,
    "median": 98.0,
    "deviations": 6.1,
    "severity": "failure",
    "text": "80 of 98 Gb/s",
}
GATE = {
    "name": "no slow pair",
    "query": "results[?value < `90`]",
    "severity": "failure",
    "verdict": "fail",
    "found": 3,
    "text": "3 pairs below 90 Gb/s",
}
BASELINE = {
    **{key: OUTLIER[key] for key in ("where", "rail", "client", "server", "test", "value", "text")},
    "before": 98.0,
    "change": -0.18,
    "severity": "failure",
}
UNSTEADY = {
    "where": "host",
    "kind": "pair",
    "rail": "rail0",
    "host": "gpu-000",
    "peer": "gpu-001",
    "count": 1,
    "tests": 2,
    "severity": "failure",
    "text": "gpu-000 and gpu-001 rail0: unsteady: 1 of 2 tests",
    "readings": [
        {"client": "gpu-000", "server": "gpu-001", "test": "write_bw", "first": 80.0, "value": 98.0, "unit": "Gb/s"}
    ],
}


def whole() -> dict[str, Any]:
    """A report with every optional part and key."""
    made = factory.fleet(4, 2, faults={("gpu-001", "rail1"): "slow", ("gpu-002", "rail0"): "pair"})
    left_out = [{"where": "host", "host": "gpu-003", "rail": "rail9", "reason": "it has no port 0000:38:00.0"}]
    made["parts"].update(outliers=[OUTLIER], unsteady=[UNSTEADY], gates=[GATE], baseline=[BASELINE])
    made["parts"]["unmeasured"] = left_out
    made["plan"]["switches"] = {"rail1": {"gpu-002": {"switch": "leaf3", "port": "Ethernet12"}}}
    made["results"][0].update(
        link={"server": {"width": 8}},
        spread={"min": 190.0, "max": 195.5, "n": 3},
        memory="cuda:dmabuf",
        gpu={"client": {"bdf": "0000:17:00.0", "path": "PXB"}},
        peer_rail="rail1",
    )
    made["results"].append(factory.result("gpu-000", "gpu-001", test="write_lat", unit="us", value=2.1, expected=4.0))
    built = summary.build(**made)
    built["comparison"] = compare.compare(built, EarlierReport.read(report(4, 2), "p"))
    return built


def test_report_with_every_part_follows_its_schema() -> None:
    jsonschema.validate(whole(), SCHEMA)
    assert set(summary.PARTS) <= set(whole())


def test_switch_ports_are_told_where_they_are_known() -> None:
    hosts = whole()["hosts"]
    assert [rail.get("switch") for rail in hosts["gpu-002"]["rails"]] == [None, "leaf3 port Ethernet12"]
    assert "switch" not in hosts["gpu-001"]["rails"][1]


def test_a_transceiver_that_was_read_in_two_places_is_one_finding() -> None:
    one = {"host": "a", "rail": "r0", "kind": "optics", "found": "71 degrees C", "expected": "at most 70 degrees C"}
    links = [
        {**one, "text": "a r0: the transceiver has 71 degrees C"},
        {**one, "kind": "signal", "text": "a r0: damaged"},
        {**one, "found": "72 degrees C", "text": "a r0: the transceiver has 72 degrees C"},
        {**one, "host": "b", "text": "b r0: the transceiver has 72 degrees C"},
    ]
    made = summary.build({}, [], parts={"links": links})
    assert made["links"] == [links[0], links[1], links[3]]
    least = {**one, "found": "no light", "expected": "at least -7 dBm"}
    both = [
        {**least, "text": f"a r0: lanes 1, 2 {verb} no light, expected at least -7 dBm"} for verb in ("send", "receive")
    ]
    again = {**least, "text": "a r0: lane 1 receives -9 dBm, expected at least -7 dBm"}
    assert summary.build({}, [], parts={"links": [*both, again]})["links"] == both


def test_parts_that_nobody_asked_for_are_absent() -> None:
    built = summary.build({}, [], parts={"diagnoses": [], "gates": None})
    assert built["diagnoses"] == [] and not {"gates", "outliers", "comparison"} & set(built)


@pytest.mark.parametrize(
    ("name", "row"), [("gates", GATE), ("outliers", OUTLIER), ("baseline", BASELINE), ("unsteady", UNSTEADY)]
)
def test_a_failure_of_a_part_fails_the_whole_and_its_junit(name: str, row: dict[str, Any]) -> None:
    passed = [factory.result("a", "b")]
    assert summary.build({}, passed, parts={name: [{**row, "severity": "warning"}]})["verdict"] == "pass"
    built = summary.build({}, passed, parts={name: [row]})
    assert built["verdict"] == "fail"
    suite = ElementTree.fromstring(junit.to_junit(built))
    assert suite.get("failures") == "1"
    assert row["text"] in console.text(built)


def test_a_gate_that_holds_fails_nothing() -> None:
    built = summary.build({}, [factory.result("a", "b")], parts={"gates": [{**GATE, "verdict": "pass"}]})
    assert built["verdict"] == "pass"


def test_latency_does_not_mix_with_rates() -> None:
    results = [factory.result("a", "b"), factory.result("a", "b", test="write_lat", unit="us", value=2.5)]
    (rail,) = summary.build({}, results)["rails"]
    assert (rail["worst"], rail["latency_worst"], rail["pairs"]) == (98.01, 2.5, 2)


def test_brief_summary_for_workflows() -> None:
    brief = summary.brief(whole(), "/srv/report")
    assert brief["gates"] == ["no slow pair"] and brief["path"] == "/srv/report" and brief["verdict"] == "fail"
    assert brief["diagnoses"][0].startswith("gpu-001 rail1: every test is slow")
    assert brief["tests"] == brief["pass"] + brief["fail"] + brief["no_data"] == 25


@pytest.mark.parametrize("bad", [None, BAD])
def test_report_follows_its_schema(bad: Any) -> None:
    jsonschema.validate(report(bad=bad), SCHEMA)


def test_how_was_measured_is_told_without_names_of_hosts() -> None:
    planned = factory.plan(3, 1)
    planned["tests"] = {"duration": 2, "groups": {"rack1": ["gpu-000"]}, "only": {"hosts": ["gpu-000"]}}
    built = summary.build(planned, factory.results(3, 1))
    jsonschema.validate(built, SCHEMA)
    assert (built["tests"]["duration"], built["tests"]["size"]) == (2, 65536)
    assert not {"only", "groups"} & built["tests"].keys() and "gpu-000" not in json.dumps(built["tests"])


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
        "gpu-000": "pass",
        "gpu-001": "pass",
        "gpu-002": "no_data",
    }


def test_hosts_are_in_the_order_of_their_numbers() -> None:
    results = [factory.result(f"gpu-{a}", b) for a, b in ((10, "gpu-9"), (100, "9-gpu"), (9, "login"))]
    assert list(summary.build({}, results)["hosts"]) == ["9-gpu", "gpu-9", "gpu-10", "gpu-100", "login"]


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


def test_console_says_causes_first_and_does_not_repeat_their_tests() -> None:
    lines = console.text(whole()).splitlines()
    assert lines[0].startswith("FAULT (confirmed): gpu-001 rail1: every test is slow")
    assert "gate no slow pair: 3 pairs below 90 Gb/s" in lines
    assert not any(" -> " in line for line in lines)
    assert lines[-1] == "verdict: fail"


@pytest.mark.parametrize("diagnosed", [True, False])
@pytest.mark.parametrize(("hosts", "rails"), [(3, 1), (12, 24)])
def test_console_stays_short_whatever_fails(hosts: int, rails: int, diagnosed: bool) -> None:
    faults = {(f"gpu-{h:03d}", f"rail{r}"): "slow" for h in range(hosts) for r in range(rails)}
    made = factory.fleet(hosts, rails, faults=faults)
    made["warnings"] = [f"warning {number}" for number in range(50)]
    made["parts"].update(gates=[GATE] * 9, outliers=[OUTLIER] * 9, links=made["parts"]["links"] * 9)
    if not diagnosed:
        del made["parts"]["diagnoses"]
    built = summary.build(**made)
    built["comparison"] = compare.compare(built, EarlierReport.read(built, "p"))
    text = console.text(built)
    assert len(text.splitlines()) <= 30
    assert text.endswith("verdict: fail\n")


def test_table_of_many_rails_shows_what_did_not_pass() -> None:
    lines = console.table(report(3, 12, {("gpu-000", "rail7"): ("fail", "slow")})).splitlines()
    assert [line.split()[1:3] for line in lines[1:3]] == [["rail7", "6"], ["11", "rails"]]
    assert lines[2].split()[3] == "66"


def test_junit_has_a_case_for_each_host_and_rail() -> None:
    suite = ElementTree.fromstring(junit.to_junit(report(bad=BAD)))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("8", "4", "4")
    case = next(c for c in suite if c.get("name") == "gpu-001 rail1 (host)")
    assert case[0].tag == "error"
    assert case[0].get("message") == "6 of 6 tests did not pass"


def test_junit_says_the_cause_at_its_port_and_limits_what_it_lists() -> None:
    built = summary.build(**factory.fleet(24, 1, faults={("gpu-007", "rail0"): "cable"}))
    suite = ElementTree.fromstring(junit.to_junit(built))
    case = next(c for c in suite if c.get("name") == "gpu-007 rail0 (host)")
    assert "the port is down" in (case[0].get("message") or "")
    assert (case[0].text or "").splitlines()[-1] == "... and 26 more"
    other = next(c for c in suite if c.get("name") == "gpu-001 rail0 (host)")
    assert "the port is down" not in (other[0].get("message") or "")


def test_junit_says_a_cause_at_its_own_rail_only() -> None:
    faults = {("gpu-001", "rail0"): "cable", ("gpu-001", "rail1"): "slow"}
    suite = ElementTree.fromstring(junit.to_junit(summary.build(**factory.fleet(4, 2, faults=faults))))
    messages = {c.get("name"): c[0].get("message") for c in suite if len(c)}
    assert messages["gpu-001 rail1 (host)"] == (
        "6 of 6 tests did not pass; gpu-001 rail1: every test is slow, at most 23 Gb/s of 186 Gb/s: "
        "NIC port, cable or PCIe slot"
    )


@pytest.mark.parametrize(
    ("diagnosed", "named"),
    [
        ({"kind": "routing", "rail": "rail0", "peer_rail": "rail1"}, {("a", "rail0"), ("b", "rail1"), ("a", "rail1")}),
        ({"kind": "pair", "rail": "rail0", "host": "a", "peer": "b", "peer_rail": "rail1"}, {("a", "rail0")}),
        (
            {"kind": "pair", "rail": "rail0", "host": "a", "peer": "a", "peer_rail": "rail1"},
            {("a", "rail0"), ("a", "rail1")},
        ),
        ({"kind": "port", "rail": "rail1", "host": "b"}, {("b", "rail1")}),
    ],
)
def test_junit_says_the_cause_at_both_rails_of_what_crosses(diagnosed: dict[str, Any], named: Any) -> None:
    bad = [factory.result(*ways, peer_rail="rail1", verdict="fail", value=5.0) for ways in (("a", "b"), ("a", "a"))]
    cause = {"where": "host", "host": None, "peer": None, "text": "the cause", **diagnosed}
    suite = ElementTree.fromstring(junit.to_junit({"results": bad, "diagnoses": [cause], "verdict": "fail"}))
    told = {(c.get("name") or "").replace(" (host)", "") for c in suite if "the cause" in (c[0].get("message") or "")}
    assert told == {" ".join(port) for port in named}


def test_junit_of_no_result_is_red() -> None:
    suite = ElementTree.fromstring(junit.to_junit(summary.build({}, [])))
    assert (suite.get("tests"), suite.get("errors")) == ("1", "1")


def test_junit_survives_what_a_tool_printed() -> None:
    built = summary.build({}, [factory.result("a", "b", verdict="fail", reason="\x1b[31mred\x00 <&>")])
    suite = ElementTree.fromstring(junit.to_junit(built))
    assert "[31mred <&>" in (suite[0][0].text or "")


SAMPLE = re.compile(r'(gpufabric_rdma_[a-z_]+)(\{(?:[a-z_]+="(?:[^"\\]|\\.)*",?)*\})? (-?[0-9.]+(?:e[+-]?[0-9]+)?)')


def test_metrics_are_in_base_units() -> None:
    lines = prometheus.to_prometheus(report(2, 1)).splitlines()
    labels = '{where="host",rail="rail0",client="gpu-000",server="gpu-001",test="write_bw"}'
    assert f"gpufabric_rdma_bandwidth_bits_per_second{labels} 98010000000" in lines
    assert "gpufabric_rdma_fabric_passed 1" in lines


def test_metrics_are_what_the_collector_reads() -> None:
    """Each family once, HELP and TYPE before its samples, no sample twice, no timestamp."""
    lines = prometheus.to_prometheus(whole()).splitlines()
    families = [line.split()[2] for line in lines if line.startswith("# TYPE ")]
    assert families == [line.split()[2] for line in lines if line.startswith("# HELP ")]
    assert max(Counter(families).values()) == 1
    family = ""
    seen = []
    for line in lines:
        if line.startswith("#"):
            family = line.split()[2]
            continue
        match = SAMPLE.fullmatch(line)
        assert match and match[1] == family, line
        seen.append((match[1], match[2]))
    assert len(seen) == len(set(seen))
    assert {
        "gpufabric_rdma_diagnosis",
        "gpufabric_rdma_gate_passed",
        "gpufabric_rdma_latency_seconds",
        "gpufabric_rdma_port_counter_growth",
        "gpufabric_rdma_port_failed_ratio",
    } <= set(families)


def test_metrics_of_a_big_fleet_have_ports_and_no_single_tests() -> None:
    text = prometheus.to_prometheus(report(4, 2), pairs=10)
    assert "client=" not in text
    assert 'gpufabric_rdma_port_passed{where="host",host="gpu-000",rail="rail0"} 1' in text


def test_ports_count_a_test_at_both_ends_and_crossed_rails_at_their_own() -> None:
    crossed = factory.result("a", "b", peer_rail="rail1", verdict="fail", value=5.0)
    inside = factory.result("a", "a", peer_rail="rail1")
    found = ports.ports([crossed, inside, factory.result("a", "a")])
    assert {key: (p.tests, p.verdict, p.worst) for key, p in found.items()} == {
        ("host", "a", "rail0"): (3, "fail", 5.0),
        ("host", "a", "rail1"): (1, "pass", 98.01),
        ("host", "b", "rail1"): (1, "fail", 5.0),
    }


def test_counters_are_summed_at_the_port_that_they_belong_to() -> None:
    results = [
        factory.result("a", "b", counters={"server": {"out_of_sequence": 5}}),
        factory.result("b", "a", counters={"client": {"out_of_sequence": 2}, "server": {"link_downed": 1}}),
    ]
    assert ports.counters(results) == [
        {"where": "host", "host": "b", "rail": "rail0", "counter": "out_of_sequence", "growth": 7, "tests": 2},
        {"where": "host", "host": "a", "rail": "rail0", "counter": "link_downed", "growth": 1, "tests": 1},
    ]


def test_several_sizes_are_told_apart_in_every_format() -> None:
    results = [
        {**r, "size": size, "value": 98.0 if size > 4096 else 60.0}
        for size in (65536, 4096, 1048576)
        for r in factory.results(3, 1)
    ]
    built = summary.build(factory.plan(3, 1), results)
    assert [r["size"] for r in built["results"]] == [4096] * 6 + [65536] * 6 + [1048576] * 6
    earlier = summary.build(factory.plan(3, 1), [{**r, "value": 98.0} for r in results])
    built["comparison"] = compare.compare(built, EarlierReport.read(earlier, "p"))
    assert built["comparison"]["compared"] == 18
    assert {row["size"] for row in built["comparison"]["worse"]} == {4096}
    jsonschema.validate(built, SCHEMA)
    samples = [line.rsplit(" ", 1)[0] for line in prometheus.to_prometheus(built).splitlines() if line[0] != "#"]
    assert len(samples) == len(set(samples))
    assert sum('size="4096"' in sample for sample in samples) == 12
    page = to_html(built)
    titles = re.findall("<figcaption>(.*?)</figcaption>", page)
    assert titles == [f"rail0, bare hosts, write_bw {size} B" for size in (4096, 65536, 1048576)]


def test_json_is_the_report_with_a_line_for_each_result() -> None:
    built = whole()
    text = formats.to_json(built)
    assert json.loads(text) == built
    assert sum('"client": ' in line and '"passes": ' in line for line in text.splitlines()) == len(built["results"])
