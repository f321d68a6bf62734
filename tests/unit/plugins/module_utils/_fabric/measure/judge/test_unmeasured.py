"""Ports without any test: what is measured beside them, the verdict, all formats of the report. Cost: about 2 s."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from tests.unit.support import tester_logs
from tests.unit.support.plan_factory import fleet, rail_port
from tests.unit.support.tester_logs import ROW, frame

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge import unmeasured
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.step import Step, step
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import Evidence, Pass
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.lifetime import lifetime
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report.console import text
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report.junit import to_junit
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report.page import page
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report.prometheus import to_prometheus
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report.summary import brief, build

SCHEMA = json.loads((Path(__file__).parents[7] / "docs/report.schema.json").read_text())
LOOPBACK = {"tests": {"mode": "loopback"}, "routing": "between_rails"}
CLASSES = [{"name": "a", "hosts": ["gpu-0001", "gpu-0002", "gpu-0003"], "supernet": "172.16.0.0/16"}]


def planned(hosts: int, rails: int, lost: dict[str, set[int]], **more: Any) -> dict[str, Any]:
    made = fleet(hosts, rails)
    for name, gone in lost.items():
        facts = made[name]["facts"]
        pcis = {rail_port(rail)["pci"] for rail in gone}
        facts["ports"] = [port for port in facts["ports"] if port["pci"] not in pcis]
    return plan({"supernet": "192.168.0.0/16", "absent_hosts": "report", **more}, made)


def described(made: dict[str, Any], name: str) -> str:
    lines = [
        f'{own["rail"]} device=mlx5_0 port=1 netdev={own["netdev"]} gid=3 gid_type="RoCE v2" '
        f'address={own["address"].split("/")[0]} mtu=4096 rate="400 Gb/sec (4X NDR)" numa=0 cpus=0'
        for own in made["hosts"][name]["rails"]
    ]
    return tester_logs.described(lines, f"memlock=unlimited perftest=6.24 control=192.0.2.1 machine_id={name}")


def measured(made: dict[str, Any], **options: Any) -> Step:
    """The last step of a measurement in which everything that is tested is fast."""
    names = unmeasured.measurable(made, made["endpoints"]["host"])
    tellers = {name: described(made, name) for name in names}
    passes: list[Pass] = []
    while True:
        found = step(made, "host", Evidence(tellers, {}, tuple(passes)), **options)
        if found.done:
            return found
        assert found.lines.keys() <= set(names)
        logs = {
            name: tester_logs.log(found.number, lines, [frame(line, 0, ROW % "385.0") for line in lines[:-1]], True)
            for name, lines in found.lines.items()
        }
        passes.append(Pass(logs, {}))


def report_of(made: dict[str, Any], found: Step) -> dict[str, Any]:
    parts = {"diagnoses": found.summary["diagnoses"], "unmeasured": found.unmeasured, "schedule": [found.schedule]}
    return build(made, found.results, [], parts=parts)


def ports(found: Step) -> list[tuple[str, str, str]]:
    return [(one["host"], one["rail"], one["reason"]) for one in found.unmeasured]


def test_a_missing_port_is_no_data_and_all_others_pass() -> None:
    made = planned(4, 3, {"gpu-0003": {1}})
    found = measured(made)
    assert ports(found) == [("gpu-0003", "rail1", "it has no port 0000:28:00.0")]
    assert {result["verdict"] for result in found.results} == {"pass"}
    assert len(found.results) == 4 * 3 * 3 - 2 * 3
    assert found.summary["verdict"] == "no_data"
    report = report_of(made, found)
    jsonschema.validate(report, SCHEMA)
    assert report["verdict"] == "no_data"
    assert {name for name, host in report["hosts"].items() if host["verdict"] != "pass"} == {"gpu-0003"}
    assert {row["rail"]: row["verdict"] for row in report["rails"]} == {
        "rail0": "pass",
        "rail1": "no_data",
        "rail2": "pass",
    }
    sentence = "hosts: gpu-0003 rail1: not measured: it has no port 0000:28:00.0"
    assert report["findings"] == [sentence]
    assert brief(report, "p")["diagnoses"] == [sentence]
    assert f"NO DATA: {sentence}\n" in text(report)
    suite = ElementTree.fromstring(to_junit(report))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("12", "0", "1")
    (error,) = suite.iter("error")
    assert error.get("message") == "it has no port 0000:28:00.0"
    metrics = to_prometheus(report)
    assert 'gpufabric_rdma_port_passed{where="host",host="gpu-0003",rail="rail1"} 0' in metrics
    assert "gpufabric_rdma_fabric_passed 0" in metrics
    shown = json.dumps(page(report))
    assert "Not measured" in shown and "1 port not measured" in shown and "it has no port 0000:28:00.0" in shown


def test_a_rail_with_one_port_left_has_no_partner() -> None:
    """Not planned like this, but a host in use may be the only partner."""
    made = {**planned(3, 2, {"gpu-0001": {1}}), "excluded": {"gpu-0002": "it is in use"}}
    found = measured(made)
    assert ports(found) == [
        ("gpu-0001", "rail1", "it has no port 0000:28:00.0"),
        ("gpu-0002", "rail0", "it is in use"),
        ("gpu-0002", "rail1", "it is in use"),
        ("gpu-0003", "rail1", "there is no other host to measure it with"),
    ]
    assert {(one["client"], one["rail"]) for one in found.results} == {("gpu-0001", "rail0"), ("gpu-0003", "rail0")}
    report = report_of(made, found)
    rows = [(row["rail"], row["pairs"], row["verdict"]) for row in report["rails"]]
    assert rows == [("rail0", 2, "no_data"), ("rail1", 0, "no_data")]
    jsonschema.validate(report, SCHEMA)
    assert text(report) and to_junit(report) and page(report)


def test_a_class_of_one_host_does_not_stop_the_others() -> None:
    made = planned(4, 2, {}, classes=CLASSES)
    found = measured(made)
    alone = "there is no other host to measure it with in class default"
    assert ports(found) == [("gpu-0004", "rail0", alone), ("gpu-0004", "rail1", alone)]
    assert len(found.results) == 3 * 2 * 2 and found.summary["verdict"] == "no_data"
    report = report_of(made, found)
    assert report["hosts"]["gpu-0004"]["verdict"] == "no_data"
    assert report["findings"] == [f"hosts: gpu-0004 rail[0-1]: not measured: {alone}"]


def test_classes_of_one_host_each_are_no_measurement() -> None:
    made = planned(2, 2, {}, classes=[{**CLASSES[0], "hosts": ["gpu-0001"]}])
    with pytest.raises(InputError, match="mode all_pairs needs 2 hosts of class default, 1 given"):
        measured(made)


def test_too_few_hosts_that_are_idle() -> None:
    made = {**planned(3, 2, {}), "excluded": {"gpu-0001": "it is in use", "gpu-0003": "it is in use"}}
    with pytest.raises(InputError) as caught:
        measured(made)
    assert str(caught.value).endswith(". Left out, since they are in use: gpu-0001, gpu-0003")


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ({"rails": ["rail0"]}, []),
        ({"rails": ["rail1"]}, ["gpu-0003"]),
        ({"hosts": ["gpu-0001"]}, []),
        ({"hosts": ["gpu-0003"]}, ["gpu-0003"]),
        ({"pairs": [["gpu-0001", "gpu-0002"]]}, []),
        ({"pairs": [["gpu-0001", "gpu-0003"]]}, ["gpu-0001", "gpu-0003"]),
    ],
)
def test_only_what_is_to_be_measured_can_be_missing(only: dict[str, Any], expected: list[str]) -> None:
    made = planned(4, 2, {"gpu-0003": {1}})
    found = measured(made, only=only)
    assert [host for host, _rail, _why in ports(found)] == expected
    assert found.summary["verdict"] == ("no_data" if expected else "pass")


@pytest.mark.parametrize(
    ("lost", "more", "only", "expected"),
    [
        ({"gpu-0001": {1}}, LOOPBACK, {}, "there is no other rail of this host to measure it with"),
        (
            {"gpu-0003": {0}},
            {},
            {"pairs": [["gpu-0001", "gpu-0003"]]},
            "its partners in this run have no port of this rail",
        ),
        (
            {"gpu-0004": {1}},
            {},
            {"pairs": [["gpu-0001", "gpu-0002"], ["gpu-0003", "gpu-0004"]]},
            "its partners in this run are left out or have no port of this rail",
        ),
    ],
)
def test_why_a_port_has_no_partner(
    lost: dict[str, set[int]], more: dict[str, Any], only: dict[str, Any], expected: str
) -> None:
    made = {**planned(4, 2, lost, **more), "excluded": {"gpu-0002": "it is in use"}}
    found = measured(made, only=only)
    assert ("gpu-0001", "rail0", expected) in ports(found)


@pytest.mark.parametrize("only", [{"hosts": ["gpu-0002"]}, {"pairs": [["gpu-0001", "gpu-0002"]]}])
def test_only_a_host_that_is_left_out(only: dict[str, Any]) -> None:
    made = {**planned(4, 2, {}), "excluded": {"gpu-0002": "it is in use"}}
    with pytest.raises(InputError, match=r"are left out: gpu-0002: it is in use\. Name other hosts$"):
        measured(made, only=only)
    found = measured(made, only={"hosts": ["gpu-0001", "gpu-0002"]})
    assert found.results
    assert ports(found) == [("gpu-0002", "rail0", "it is in use"), ("gpu-0002", "rail1", "it is in use")]


def test_a_port_that_the_plan_lacks_is_not_used_though_its_host_describes_it() -> None:
    made = planned(4, 3, {"gpu-0003": {1}})
    tellers = {name: described(planned(4, 3, {}), name) for name in made["hosts"]}
    found = step(made, "host", Evidence(tellers, {}, ()))
    assert not [line for line in found.lines["gpu-0003"] if "rail1" in line]
    other = [rail["address"].split("/")[0] for rail in planned(4, 3, {})["hosts"]["gpu-0003"]["rails"]][1]
    assert found.lines and not [line for lines in found.lines.values() for line in lines if other in line]


def test_a_host_without_any_port_gets_no_tester() -> None:
    made = planned(4, 2, {"gpu-0002": {0, 1}})
    found = measured(made)
    assert [(host, rail) for host, rail, _why in ports(found)] == [("gpu-0002", "rail0"), ("gpu-0002", "rail1")]
    assert lifetime(made, ["gpu-0001", "gpu-0003", "gpu-0004"], 6) > 0


@examples(max_examples=25)
@given(st.data())
def test_nothing_that_is_missing_ever_passes(data: st.DataObject) -> None:
    hosts, rails = data.draw(st.integers(3, 7)), data.draw(st.integers(1, 3))
    names = [f"gpu-{number:04d}" for number in range(1, hosts + 1)]
    lost = data.draw(
        st.dictionaries(
            st.sampled_from(names), st.sets(st.integers(0, rails - 1), min_size=1), max_size=(hosts - 1) // 2
        )
    )
    tests = data.draw(st.sampled_from([{}, {"mode": "ring"}, {"mode": "sampled"}, {"rails_at_once": False}]))
    made = planned(hosts, rails, lost, tests=tests)
    found = measured(made)
    gone = {(name, f"rail{rail}") for name, own in lost.items() for rail in own}
    assert gone <= {(host, rail) for host, rail, _why in ports(found)}
    tested = {(result[side], result["rail"]) for result in found.results for side in ("client", "server")}
    assert not tested & {(host, rail) for host, rail, _why in ports(found)}
    # Every port of the fleet is in one or the other.
    assert len(tested) + len(found.unmeasured) == hosts * rails
    report = report_of(made, found)
    assert report["verdict"] == found.summary["verdict"] == ("no_data" if lost or found.unmeasured else "pass")
    suite = ElementTree.fromstring(to_junit(report))
    assert (int(suite.get("tests", "")), int(suite.get("errors", ""))) == (hosts * rails, len(found.unmeasured))
